package history_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/history"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// big is a tool whose output is 500 tokens long.
type big struct{}

func (big) Tools() []tool.Tool { return []tool.Tool{{Manifest: protocol.ToolManifest{Name: "big"}}} }

func (big) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{Output: protocol.Succeed(strings.Repeat("long", 500))}, nil
}

var bigTool = plugin.Static("tools", func(r *plugin.Registrar) error {
	r.Tools().Add(big{})
	return nil
})

const shorten = `{"shorten":true}`

func pruned(messages []protocol.Message) (n int) {
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Prune != nil {
				n++
			}
		}
	}
	return n
}

func TestOldOutputs(t *testing.T) {
	model := &builtintest.Recorder{Provider: builtintest.Calling(scripted.Call{Name: "big"})}
	d := builtintest.Start(t, t.TempDir(), 5000, model, history.Factory{}, bigTool)
	id := d.Session(t, protocol.PluginOptions{history.ID: []byte(shorten)})
	var got []int
	var before []protocol.Message
	for range 11 {
		model.Asked = nil
		d.Turn(t, id, "go")
		asked := model.Asked[0].Messages
		got = append(got, pruned(asked))
		if n := len(got); n > 1 && got[n-1] == got[n-2] {
			if diff := cmp.Diff(encode(t, before), encode(t, asked)[:len(before)]); diff != "" {
				t.Errorf("runtime/S13 before turn %d the beginning has changed: %s", n, diff)
			}
		}
		before = asked
	}
	// A turn has about 504 tokens. At 3000 tokens three outputs are shortened, and 2000 tokens remain.
	if want := []int{0, 0, 0, 0, 0, 0, 3, 3, 3, 6, 6}; !slices.Equal(got, want) {
		t.Errorf("runtime/S11 outputs that are not shown: %d, want %d", got, want)
	}
	for _, n := range builtintest.Must(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id}))(t).Data {
		if n.Message != nil && pruned([]protocol.Message{*n.Message}) > 0 {
			t.Errorf("runtime/S11 a stored message was changed: %+v", n)
		}
	}
}

func encode(t *testing.T, messages []protocol.Message) []string {
	t.Helper()
	list := make([]string, len(messages))
	for i, m := range messages {
		list[i] = string(builtintest.Must(json.Marshal(m))(t))
	}
	return list
}

// open returns a session that has only this plugin.
func open(t *testing.T, options string) *plugin.Session {
	t.Helper()
	host := builtintest.Must(plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{history.Factory{}}))(t)
	return builtintest.Must(host.Open(t.Context(), standard.ID, protocol.PluginOptions{history.ID: []byte(options)}, plugin.BuildContext{Cwd: t.TempDir()}))(t)
}

func input(parts ...protocol.Part) protocol.Message {
	return protocol.Message{Role: protocol.RoleUser, Parts: append([]protocol.Part{{Kind: protocol.PartText, Text: "go"}}, parts...)}
}

func result(out protocol.ToolOutput) protocol.Message {
	return protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{CallID: "c", Name: "big", Output: out}}}}
}

func TestElide(t *testing.T) {
	long := strings.Repeat("x", 401)
	attachment := protocol.Part{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Name: "a.png", Type: "image/png", Data: []byte("x")}}
	failed := protocol.Fail(protocol.FailIO, "io", long, protocol.FromTool)
	for name, c := range map[string]struct {
		old    protocol.Message
		window int64
		want   string // the note that replaces the old part; empty: the part is shown
	}{
		"an attachment":                    {input(attachment), 1500, "[The attachment a.png is no longer shown.]"},
		"an output":                        {result(protocol.Succeed(long)), 100, "[This call ended with success. Its output (401 bytes) is no longer shown; call big again if you need it.]"},
		"the output of a call that failed": {result(failed), 100, "[This call ended with failure. Its output (401 bytes) is no longer shown; call big again if you need it.]"},
		"an output that is a value":        {result(protocol.ToolOutput{Status: protocol.OutputSuccess, Value: []byte(`"` + long + `"`)}), 100, "[This call ended with success. Its output (403 bytes) is no longer shown; call big again if you need it.]"},
		"a small output":                   {result(protocol.Succeed(long[:400])), 100, ""},
		"with room enough":                 {input(attachment), 4100, ""},
		"in a context of unknown size":     {input(attachment), 0, ""},
	} {
		t.Run("runtime/S11 "+name, func(t *testing.T) {
			history := []protocol.Message{input(), c.old, input(), input(attachment)}
			if c.window == 100 {
				history[3] = input()
			}
			pc := builtintest.Must(open(t, shorten).Transform(t.Context(), &plugin.ContextView{View: &plugin.View{Window: c.window}}, plugin.PreparedContext{Messages: history}))(t)
			got := ""
			for _, p := range pc.Messages[1].Parts {
				if p.Prune != nil {
					got = p.Prune.Breadcrumb
				}
			}
			if got != c.want || pruned(pc.Messages) > 1 {
				t.Errorf("%q stands for it, %d parts are pruned", got, pruned(pc.Messages))
			}
		})
	}
}

// BenchmarkTransform measures one turn in a session of 2000 messages.
func BenchmarkTransform(b *testing.B) {
	var messages []protocol.Message
	for range 1000 {
		messages = append(messages, input(), result(protocol.Succeed(strings.Repeat("x", 1000))))
	}
	host := builtintest.Must(plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{history.Factory{}}))(b)
	s := builtintest.Must(host.Open(b.Context(), standard.ID, protocol.PluginOptions{history.ID: []byte(shorten)}, plugin.BuildContext{Cwd: b.TempDir()}))(b)
	view := &plugin.ContextView{View: &plugin.View{Window: 100_000}}
	b.ReportAllocs()
	for b.Loop() {
		builtintest.Must(s.Transform(b.Context(), view, plugin.PreparedContext{Messages: messages}))(b)
	}
}
