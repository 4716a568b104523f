package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lashd/engine"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// shelf is a provider whose tools the test changes.
type shelf struct{ words string }

func (s *shelf) Tools() []tool.Tool {
	var tools []tool.Tool
	for word := range strings.FieldsSeq(s.words) {
		name, kind, _ := strings.Cut(word, ":")
		tools = append(tools, tool.Tool{Manifest: protocol.ToolManifest{Name: name, Kind: protocol.ToolKind(kind)}})
	}
	return tools
}

func (*shelf) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	return tool.Result{Output: protocol.Succeed("shelf " + call.Name)}, nil
}

// told returns the tools in the model's request, in order.
func (d *daemon) told(t *testing.T, id protocol.SessionID) string {
	t.Helper()
	var names []string
	for _, m := range must[*protocol.DebugPromptResult](t)(d.Sessions.PreviewPrompt(t.Context(), &protocol.DebugPromptParams{SessionID: id})).Tools {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}

func TestToolState(t *testing.T) {
	begin := func(t *testing.T, words string) (*daemon, *shelf, protocol.SessionID) {
		s := &shelf{words}
		d := start(t, setup{model: replies(), tools: []tool.Provider{s}})
		return d, s, d.session(t)
	}
	state := func(t *testing.T, d *daemon, id protocol.SessionID) protocol.ToolState {
		t.Helper()
		return must[*protocol.ToolStateResult](t)(d.Tools.State(t.Context(), &protocol.SessionParams{SessionID: id})).State
	}
	members := func(t *testing.T, d *daemon, id protocol.SessionID, members map[string]bool) *protocol.ToolStateResult {
		t.Helper()
		return must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: members}))
	}

	t.Run("plugin/TL-06 settings survive a restart, also those of a tool that is missing for a while", func(t *testing.T) {
		d, s, id := begin(t, "a b c")
		members(t, d, id, map[string]bool{"a": false})
		levels := &protocol.ToolSetAvailabilityParams{SessionID: id, Names: []string{"b"}, Availability: protocol.ToolSearchable}
		before := must[*protocol.ToolStateResult](t)(d.Tools.SetAvailability(t.Context(), levels)).State
		s.words = "b c"
		d = d.restart(t, nil)
		gone := state(t, d, id)
		if got := gone.Tools["a"]; !got.Orphaned || got.IsMember() || gone.Generation != before.Generation+1 || d.told(t, id) != "c" {
			t.Errorf("without a: %+v, told %q", gone, d.told(t, id))
		}
		s.words = "a b c"
		d = d.restart(t, nil)
		back := state(t, d, id)
		if back.Generation != before.Generation || back.Tools["a"].IsMember() || back.Tools["b"].Override != protocol.ToolSearchable {
			t.Errorf("state %+v, want %+v", back, before)
		}
	})
	t.Run("plugin/S-11 settings apply to the next prompt, together with a client's tools, and the generation is valid for the next change", func(t *testing.T) {
		d, _, id := begin(t, "a b")
		overlay := &protocol.SessionOverlayParams{SessionID: id, Tools: []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "mine"}}}}
		must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", overlay))
		if got := d.told(t, id); got != "a b mine" {
			t.Errorf("told %q", got)
		}
		s := members(t, d, id, map[string]bool{"a": false}).State
		if got := d.told(t, id); got != "b mine" || s.Generation != state(t, d, id).Generation {
			t.Errorf("told %q at generation %d", got, s.Generation)
		}
		apply := func(generation int64) (*protocol.ToolStateResult, error) {
			next := protocol.ToolState{Generation: generation, Tools: map[string]protocol.ToolSetting{"a": {Manifest: s.Tools["a"].Manifest}}}
			return d.Tools.ApplyState(t.Context(), &protocol.ToolApplyStateParams{SessionID: id, State: next})
		}
		must[*protocol.ToolStateResult](t)(apply(s.Generation))
		if got := d.told(t, id); got != "a mine" {
			t.Errorf("told %q", got)
		}
		_, err := apply(s.Generation)
		if stale, ok := errors.AsType[*engine.GenerationError](err); !ok || stale.Current != s.Generation+1 {
			t.Errorf("stale: %v", err)
		}
	})
	t.Run("plugin/TL-13 a client's tool replaces one of the same name until the client leaves", func(t *testing.T) {
		d, _, id := begin(t, "a b")
		sources := func() string {
			var words []string
			for _, r := range must[*protocol.ToolListResult](t)(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id})).Data {
				words = append(words, r.Name+" of "+r.Source)
			}
			return strings.Join(words, ", ")
		}
		overlay := &protocol.SessionOverlayParams{SessionID: id, Tools: []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "a"}}}}
		for _, c := range []struct {
			params *protocol.SessionOverlayParams
			want   string
		}{
			{overlay, "a of client:cli_a, b of test-tools"},
			{&protocol.SessionOverlayParams{SessionID: id, IncludeBaseTools: new(false)}, ""},
			{&protocol.SessionOverlayParams{SessionID: id}, "a of test-tools, b of test-tools"},
		} {
			must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", c.params))
			if got := sources(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		}
	})
	t.Run("plugin/TL-03 a refresh asks the plugins again and emits an event only if something changed", func(t *testing.T) {
		d, s, id := begin(t, "a")
		o := d.observe(t, id)
		refresh := func() protocol.ToolState {
			return must[*protocol.ToolStateResult](t)(d.Tools.Refresh(t.Context(), &protocol.SessionMutationParams{SessionID: id})).State
		}
		if got := refresh(); got.Generation != 1 {
			t.Errorf("generation %d", got.Generation)
		}
		s.words = "a b"
		if got := d.told(t, id); got != "a" {
			t.Errorf("before: told %q", got)
		}
		if got := refresh(); got.Generation != 2 || d.told(t, id) != "a b" {
			t.Errorf("after: generation %d, told %q", got.Generation, d.told(t, id))
		}
		if e := o.typed(protocol.EventToolsChanged); e.Tools.Generation != 2 {
			t.Errorf("event %+v", e)
		}
	})
	t.Run("plugin/TL-09 an unknown availability is rejected", func(t *testing.T) {
		d, _, id := begin(t, "a")
		_, err := d.Tools.SetAvailability(t.Context(), &protocol.ToolSetAvailabilityParams{SessionID: id, Names: []string{"a"}, Availability: "maybe"})
		if p, ok := errors.AsType[*param.Error](err); !ok || p.Pointer != "/availability" {
			t.Errorf("error %v", err)
		}
	})
	t.Run("plugin/TL-02 a session whose plugins have two tools of the same name cannot be opened", func(t *testing.T) {
		d := start(t, setup{model: replies(), tools: []tool.Provider{&shelf{"a"}, &shelf{"b a"}}})
		p := &protocol.SessionNewParams{SessionID: "ses_a", Cwd: t.TempDir()}
		if _, err := d.Sessions.New(t.Context(), p); !errors.As(err, new(*plugin.BuildError)) || d.exists(t, p.SessionID) {
			t.Errorf("error %v", err)
		}
	})
}
