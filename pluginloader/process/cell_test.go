//go:build unix

package process_test

import (
	"strings"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
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
