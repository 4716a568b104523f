package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// coding is the standard driver, with a code cell for each reply that begins with "run ".
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
	if reply.Control != nil {
		return []turn.Action{turn.Finish(protocol.TurnOutcome{Kind: protocol.OutcomeFrameSwitch, Frame: reply.Control.Frame})}
	}
	part := protocol.Part{Kind: protocol.PartOutput, Text: "printed " + reply.Printed + " error " + reply.Error}
	return []turn.Action{
		turn.Append(protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{part}}),
		turn.CheckpointThen(protocol.BoundaryAfterWork, nil),
	}
}

// words is what the executors of a test share. An executor remembers each word that it ran.
type words struct {
	notes
	mu       sync.Mutex
	captures int
	broken   error // of capturing
	began    chan struct{}
}

// memory is an executor.
type memory struct {
	*words
	mu        sync.Mutex
	text, was string
}

func (m *memory) Execute(ctx context.Context, call *plugin.CodeCall, _ plugin.CellHost) (turn.CellReply, error) {
	m.add(call.Source)
	switch call.Source {
	case "crash":
		panic("clumsy")
	case "fail":
		return turn.CellReply{}, errors.New("no such word")
	case "wait":
		if len(m.all()) > 1 { // it was to be run once
			break
		}
		m.began <- struct{}{}
		<-ctx.Done()
		return turn.CellReply{}, ctx.Err()
	case "odd":
		return turn.CellReply{Printed: "odd", Value: []byte("{")}, nil
	case "switch":
		return turn.CellReply{Control: switchTo("next", "go on")}, nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text += call.Source
	return turn.CellReply{Printed: m.text}, nil
}

func (m *memory) Dirty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.text != m.was
}

func (m *memory) Snapshot(context.Context) (plugin.ExecutionChange, error) {
	m.words.mu.Lock()
	defer m.words.mu.Unlock()
	m.captures++
	return plugin.ExecutionChange{Changed: map[string][]byte{"text": []byte(m.text)}}, m.broken
}

func (m *memory) Stored() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.was = m.text
}

func (m *memory) Restore(_ context.Context, values map[string][]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.text = string(values["text"])
	m.was = m.text
	if m.text == "rotten" {
		return errors.New("rotten")
	}
	return nil
}

func switchTo(key, task string) *protocol.ToolControl {
	return &protocol.ToolControl{Kind: protocol.ControlSwitchFrame, Frame: &protocol.FrameSwitch{Key: key, Task: task}}
}

// runs is a model that has code run for each input that begins with "run ", and then answers.
func runs() provider.Provider {
	return modelFunc(func(_ context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		text := "done"
		if last := req.Messages[len(req.Messages)-1].Parts[0]; last.Kind == protocol.PartText && strings.HasPrefix(last.Text, "run ") {
			text = last.Text
		}
		_ = yield(provider.Chunk{Text: text}, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
	})
}

func coded(w *words) setup {
	w.began = make(chan struct{}, 10)
	return setup{model: runs(), driver: scheme{driver: coding{}, executor: func() plugin.CodeExecutor { return &memory{words: w} }}}
}

// ran runs a word in a session and returns the result that the model sees.
func (d *daemon) ran(t *testing.T, id protocol.SessionID, word string) string {
	t.Helper()
	report := d.turn(t, id, "run "+word)
	if report.State != protocol.TurnCompleted || !report.HadCode {
		t.Errorf("%s: the turn ended as %s %+v", word, report.State, report.Issues)
	}
	all := d.graph(t, id).Data
	return all[len(all)-2].Message.Parts[0].Text
}

func TestCells(t *testing.T) {
	t.Run("plugin/PR-07 code runs, and its errors are the cell's result", func(t *testing.T) {
		w := &words{}
		d := start(t, coded(w))
		id := d.session(t)
		for word, want := range map[string]string{
			"a": "printed a error ", "crash": "panicked: clumsy", "fail": "no such word", "odd": "printed odd error The code ran, but its result cannot be stored",
		} {
			if got := d.ran(t, id, word); !strings.Contains(got, want) {
				t.Errorf("%s: the model sees %q", word, got)
			}
		}
	})
	t.Run("plugin/PR-07 without an executor a cell returns an error", func(t *testing.T) {
		d := start(t, setup{model: runs(), driver: scheme{driver: coding{}}})
		if got := d.ran(t, d.session(t), "a"); got != "printed  error code execution unavailable" {
			t.Errorf("the model sees %q", got)
		}
	})
	t.Run("plugin/PR-07 changed executor state is captured and survives a restart", func(t *testing.T) {
		w := &words{}
		d := start(t, coded(w))
		id := d.session(t)
		big := strings.Repeat("b", 5000)
		d.ran(t, id, big)
		d.turn(t, id, "nothing is run")
		if w.captures != 1 {
			t.Errorf("captured %d times", w.captures)
		}
		d = d.restart(t, nil)
		if got := d.ran(t, id, "c"); got != "printed "+big+"c error " {
			t.Errorf("after the restart %d bytes are printed", len(got))
		}
	})
	t.Run("plugin/PR-07 a failed capture is an issue, and the stored state stays", func(t *testing.T) {
		w := &words{}
		d := start(t, coded(w))
		id := d.session(t)
		d.ran(t, id, "a")
		w.broken = errors.New("no")
		report := d.turn(t, id, "run b")
		if report.State != protocol.TurnCompleted || len(report.Issues) != 1 || report.Issues[0].Code != "execution_snapshot" {
			t.Errorf("report %s %+v", report.State, report.Issues)
		}
		d = d.restart(t, nil)
		if got := d.ran(t, id, "c"); got != "printed ac error " {
			t.Errorf("after the restart the model sees %q", got)
		}
	})
	t.Run("plugin/PR-07 forks and snapshots include the executor state", func(t *testing.T) {
		d := start(t, coded(&words{}))
		id := d.session(t)
		d.ran(t, id, "a")
		name := &protocol.SnapshotMutationParams{SessionID: id, Name: "s"}
		must[*protocol.SnapshotResult](t)(d.Snapshots.Create(t.Context(), name))
		fork := d.fork(t, id, "").SessionID
		d.ran(t, fork, "f")
		if got := d.ran(t, id, "b"); got != "printed ab error " {
			t.Errorf("the source has %q", got)
		}
		must[*protocol.SnapshotRestoreResult](t)(d.Snapshots.Restore(t.Context(), name))
		if got := d.ran(t, id, "c"); got != "printed ac error " {
			t.Errorf("after the restore there is %q", got)
		}
		if got := d.ran(t, fork, "g"); got != "printed afg error " {
			t.Errorf("the fork has %q", got)
		}
	})
	t.Run("plugin/PR-07 plugins do not open if the executor rejects its state", func(t *testing.T) {
		w := &words{}
		d := start(t, coded(w))
		id := d.session(t)
		d.ran(t, id, "rotten")
		d = d.restart(t, nil)
		if err := d.tools(t, id); !errors.As(err, new(*plugin.HookError)) {
			t.Errorf("opened with %v", err)
		}
	})
	t.Run("plugin/PR-07 a cell that was running when the daemon stopped does not run again", func(t *testing.T) {
		w := &words{}
		d := start(t, coded(w))
		id := d.session(t)
		turn := d.begin(t, id, "run wait").TurnID
		<-w.began
		d = d.restart(t, nil)
		if report := d.wait(t, turn); report.State != protocol.TurnCompleted {
			t.Errorf("the turn ended as %s %+v", report.State, report.Issues)
		}
		all := d.graph(t, id).Data
		if told := all[len(all)-2].Message.Parts[0].Text; !strings.Contains(told, "not run again") || len(w.all()) != 1 {
			t.Errorf("the model sees %q, and %q ran", told, w.all())
		}
	})
	t.Run("plugin/PR-07 the result of a cell survives a restart", func(t *testing.T) {
		w, held, asked := &words{}, make(chan struct{}), make(chan struct{}, 10)
		s := coded(w)
		s.model = pausing(s.model, asked, held)
		d := start(t, s)
		id := d.session(t)
		turn := d.begin(t, id, "run a").TurnID
		<-asked
		d = d.restart(t, nil)
		close(held)
		if report := d.wait(t, turn); report.State != protocol.TurnCompleted || !slices.Equal(w.all(), []string{"a"}) {
			t.Errorf("the turn ended as %s %+v, and %q ran", report.State, report.Issues, w.all())
		}
	})
	t.Run("plugin/PR-07 cancelling the turn ends its cell, even if the cell does not return", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			s := setup{model: replies(scripted.Reply{Text: "run x"}), driver: scheme{driver: coding{}, executor: func() plugin.CodeExecutor { return deaf(hang) }}}
			d := start(t, s)
			id := d.session(t)
			turn := d.begin(t, id, "go").TurnID
			synctest.Wait()
			d.interrupt(t, turn)
			if report := d.wait(t, turn); report.State != protocol.TurnCancelled {
				t.Errorf("the turn ended as %s", report.State)
			}
			close(hang)
		})
	})
}

// deaf is an executor that does not care about its context.
type deaf chan struct{}

func (s deaf) Execute(context.Context, *plugin.CodeCall, plugin.CellHost) (turn.CellReply, error) {
	<-s
	return turn.CellReply{}, nil
}
