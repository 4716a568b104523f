package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// scheme is a protocol plugin built by tests. Absent functions behave as in the standard protocol.
type scheme struct {
	driver    plugin.Driver
	callbacks func(plugin.BuildContext) plugin.ProtocolSession
	executor  func() plugin.CodeExecutor
	more      func(*plugin.Registrar)
}

func (scheme) ID() string { return "scheme" }

func (s scheme) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	return plugin.Static("scheme", func(r *plugin.Registrar) error {
		if s.driver == nil {
			s.driver = standard.Driver{}
		}
		r.Protocol().Driver(s.driver)
		if s.callbacks != nil {
			r.Protocol().Session(s.callbacks(ctx))
		}
		if s.executor != nil {
			r.Execution().Executor(s.executor())
		}
		if s.more != nil {
			s.more(r)
		}
		return nil
	}).Build(ctx)
}

// all returns the records so far.
func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

// prefaced is the standard driver that records the catalogs of its preambles.
type prefaced struct {
	standard.Driver
	*notes
}

func (p prefaced) Preamble(in plugin.PreambleInput) string {
	var names []string
	for _, m := range in.Tools {
		names = append(names, m.Name)
	}
	for _, e := range in.Triggers {
		names = append(names, e.SourceType())
	}
	p.add(fmt.Sprintf("%s %s", strings.Join(names, " "), in.Extensions["dialect"]))
	return "preamble"
}

// offering is a plugin with an extension.
type offering struct{ hooked }

func (offering) Extensions() []plugin.Extension {
	return []plugin.Extension{{ID: "dialect", Payload: []byte(`1`)}}
}

func TestPreamble(t *testing.T) {
	offers := offering{hooked{"offers", func(r *plugin.Registrar) {
		r.Triggers().Event(plugin.TriggerEvent{ResourceType: "file", Alias: "disk", Event: "changed"})
	}}}
	hook := hooked{"hook", func(r *plugin.Registrar) {
		r.Prompt().Hook(func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) { return nil, nil })
	}}
	for name, more := range map[string][]plugin.Factory{"prompts that stay the same": nil, "prompt hooks": {hook}} {
		t.Run("plugin/PR-05 with "+name+" the driver builds one preamble for each catalog", func(t *testing.T) {
			asked := &notes{}
			d := start(t, setup{
				model: replies(calls("look"), scripted.Reply{Text: "ok"}), tools: []tool.Provider{says("look", "x")},
				driver: scheme{driver: prefaced{notes: asked}}, plugins: append(more, offers),
			})
			id := d.session(t)
			d.turn(t, id, "one")
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: new("be brief")}))
			d.turn(t, id, "two")
			must[*protocol.DebugPromptResult](t)(d.Sessions.PreviewPrompt(t.Context(), &protocol.DebugPromptParams{SessionID: id}))
			must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"look": false}}))
			d.turn(t, id, "three")
			if want := []string{"look disk.changed [1]", "disk.changed [1]"}; !slices.Equal(asked.all(), want) {
				t.Errorf("asked with %q, want %q", asked.all(), want)
			}
		})
	}
}
