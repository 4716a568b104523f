//go:build unix

package process_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/workspace"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/turn"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// coding is the standard driver, but a reply that begins with "run " is a code cell.
type coding struct{ standard.Driver }

func (d coding) Reply(v turn.View, reply provider.Reply) []turn.Action {
	msg := reply.Message()
	code, ok := strings.CutPrefix(msg.Answer(), "run ")
	if !ok {
		return d.Driver.Reply(v, reply)
	}
	return []turn.Action{turn.Append(msg), turn.StartCode(turn.Cell{Language: "words", Source: code, AcceptFinish: true})}
}

func (coding) Cell(_ turn.View, reply turn.CellReply) []turn.Action {
	part := protocol.Part{Kind: protocol.PartOutput, Text: "printed " + reply.Printed + " error " + reply.Error}
	return []turn.Action{
		turn.Append(protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{part}}),
		turn.CheckpointThen(protocol.BoundaryAfterWork, nil),
	}
}

var coder = plugin.Static("coder", func(r *plugin.Registrar) error {
	r.Protocol().Driver(coding{})
	return nil
})

// coded is a daemon whose model has a word run in each turn, by a process.
func coded(t *testing.T, dir, plugin string, c process.Config) *builtintest.Daemon {
	t.Helper()
	c.ID, c.Contributes = plugin, process.Contributions{Executor: &process.CodeExecutor{}}
	model := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "run word;"}, {Text: "done"}}}})
	return builtintest.StartWith(t, coder, dir, 0, model, begin(t, c))
}

// cell runs a turn with a cell and returns what the model reads of it.
func cell(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) string {
	t.Helper()
	if r := d.Turn(t, id, "go"); r.Outcome.Text != "done" || len(r.Issues) > 0 {
		t.Errorf("the turn ends with %+v %+v", r.Outcome, r.Issues)
	}
	told := ""
	for _, n := range builtintest.Must(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id}))(t).Data {
		if n.Message != nil && n.Message.Parts[0].Kind == protocol.PartOutput {
			told = n.Message.Parts[0].Text
		}
	}
	return told
}

func TestCells(t *testing.T) {
	t.Run("plugin/PR-07 a process runs code cells, and their state survives the process and the daemon", func(t *testing.T) {
		dir := t.TempDir()
		d := coded(t, dir, "first", config(t, "good", process.Contributions{}))
		id, other := d.Session(t, nil), d.Session(t, nil)
		for _, want := range []string{"word;", "word;word;"} {
			if got := cell(t, d, id); got != "printed "+want+" error " {
				t.Errorf("the model reads %q", got)
			}
		}
		if got := cell(t, d, other); got != "printed word; error " {
			t.Errorf("in another session it reads %q", got)
		}
		d.Stop()
		d = coded(t, dir, "again", config(t, "good", process.Contributions{}))
		if got := cell(t, d, id); got != "printed word;word;word; error " {
			t.Errorf("after a restart of both it reads %q", got)
		}
	})
	for what, want := range map[string]process.Code{"exit": process.Crashed, "hang": process.TimedOut, "strange": process.Protocol} {
		t.Run("plugin/PR-07 reliability/P14 a cell of a misbehaving process fails, and the turn continues: "+what, func(t *testing.T) {
			dir := t.TempDir()
			d := coded(t, dir, "first", config(t, "good", process.Contributions{}))
			id := d.Session(t, nil)
			cell(t, d, id)
			d.Stop()
			c := config(t, "code/execute:"+what, process.Contributions{})
			if what == "hang" {
				c.Deadlines.Code = time.Second
			}
			d = coded(t, dir, "bad", c)
			if got := cell(t, d, id); !strings.Contains(got, string(want)) {
				t.Errorf("the model reads %q, want %q", got, want)
			}
			d.Stop()
			d = coded(t, dir, "last", config(t, "good", process.Contributions{}))
			if got := cell(t, d, id); got != "printed word;word; error " {
				t.Errorf("afterwards it reads %q, want what was kept before", got)
			}
		})
	}
}

func TestToolsOfCells(t *testing.T) {
	var script scripted.Script
	for _, word := range []string{"tools;", "fail;", "exit;"} {
		script.Turns = append(script.Turns, scripted.Turn{Match: &scripted.Match{LastUserContains: word}, Replies: []scripted.Reply{{Text: "run " + word}, {Text: "done"}}})
	}
	c := config(t, "good", process.Contributions{Executor: &process.CodeExecutor{}})
	d := builtintest.StartWith(t, coder, t.TempDir(), 0, scripted.New(&script), new(workspace.Factory), begin(t, c))
	id := d.Session(t, nil)
	after := func(t *testing.T, want string, words ...string) {
		t.Helper()
		for _, word := range words {
			d.Turn(t, id, word)
		}
		d.Turn(t, id, "tools;")
		all := builtintest.Must(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id}))(t).Data
		if got := all[len(all)-2].Message.Parts[0].Text; got != "printed "+want+" error " {
			t.Errorf("the process got %s, want %q", got, want)
		}
	}
	members := func(t *testing.T, member bool) {
		t.Helper()
		p := &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"read": member}}
		builtintest.Must(d.Tools.SetMembership(t.Context(), p))(t)
	}
	n := len(builtintest.Must(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}))(t).Data)
	every := fmt.Sprintf("%d tools", n)
	t.Run("plugin/PR-07 a process gets the tools with its first cell only", func(t *testing.T) {
		after(t, every)
		after(t, "no tools")
		after(t, "no tools")
	})
	t.Run("plugin/PR-07 a process gets the tools again after they changed", func(t *testing.T) {
		members(t, false)
		after(t, fmt.Sprintf("%d tools", n-1))
		after(t, "no tools")
		members(t, true)
		after(t, every)
	})
	t.Run("plugin/PR-07 a process gets the tools again after a cell that it rejected", func(t *testing.T) {
		after(t, every, "fail;")
		after(t, "no tools")
	})
	t.Run("plugin/PR-07 a process that was restarted gets the tools with its first cell", func(t *testing.T) {
		after(t, every, "exit;")
		after(t, "no tools")
	})
}

// toolbox is the host of a cell that only looks at its tools.
type toolbox struct {
	plugin.CellHost
	tools []protocol.ToolManifest
	fresh bool // each cell gets another list with the same tools, so that they are sent
}

func (h *toolbox) Tools() []protocol.ToolManifest {
	if h.fresh {
		return slices.Clone(h.tools)
	}
	return h.tools
}

// BenchmarkCellStart is a cell without effects in a warm Starlark worker, from lashd to the process and back: without tools, with 100
// tools, and with 100 tools that are sent with each cell.
func BenchmarkCellStart(b *testing.B) {
	var tools []protocol.ToolManifest
	for i := range 100 {
		tools = append(tools, protocol.ToolManifest{
			Name: fmt.Sprintf("server%d.tool%d", i%10, i), Description: "Does something useful with a file of the workspace, and returns what it found.",
			Input: []byte(`{"type":"object","properties":{"path":{"type":"string","description":"The file."},"limit":{"type":"integer"}},"required":["path"]}`),
		})
	}
	for name, host := range map[string]*toolbox{"NoTools": {}, "Tools": {tools: tools}, "SentTools": {tools: tools, fresh: true}} {
		b.Run(name, func(b *testing.B) {
			c := config(b, "starlark", process.Contributions{Executor: &process.CodeExecutor{Replay: true}})
			s := session(b, "ses_1", begin(b, c))
			for b.Loop() {
				r, err := s.Execute(b.Context(), &plugin.CodeCall{TurnID: "trn_1", CellID: "c1", Language: "starlark", Source: "1"}, host)
				if err != nil || string(r.Value) != "1" {
					b.Fatal(r, err)
				}
			}
		})
	}
}
