package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"lashd/engine"
	"lashd/engine/driver/rlm"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// desk is calc with more words: call calls the tool note, history prints the number of messages, and wait waits until the cell is
// cancelled or the test lets it go on.
type desk struct {
	calc
	*deskControl
}

// deskControl is what a test has of the executors of its daemons.
type deskControl struct {
	replays bool
	deaf    bool          // wait does not return when the cell is cancelled
	arrived chan struct{} // receives when a cell waits
	goOn    chan struct{} // closed: cells do not wait
	cells   atomic.Int32
}

func (x *desk) ReplaysCells() bool { return x.replays }

func (x *desk) Execute(ctx context.Context, call *plugin.CodeCall, host plugin.CellHost) (r turn.CellReply, err error) {
	x.cells.Add(1)
	for line := range strings.SplitSeq(call.Source, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "call":
			out, err := host.Call(ctx, []tool.Request{note(rest)})
			if err != nil {
				return turn.CellReply{Printed: r.Printed, Error: err.Error()}, nil
			}
			r.Printed += "note: " + out[0].Text + "\n"
		case "history":
			r.Printed += fmt.Sprintf("%d messages\n", len(host.History()))
		case "wait":
			if err := x.wait(ctx); err != nil {
				return r, err
			}
		default:
			next, err := x.calc.Execute(ctx, &plugin.CodeCall{Source: line}, host)
			next.Printed, next.Changed = r.Printed+next.Printed, append(r.Changed, next.Changed...)
			if r = next; err != nil || r.Error != "" {
				return r, err
			}
		}
	}
	return r, nil
}

func (x *desk) wait(ctx context.Context) error {
	x.arrived <- struct{}{}
	if x.deaf {
		<-x.goOn
		return nil
	}
	select {
	case <-x.goOn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// desks is a setup whose model answers each input with these texts, one after the other. The tool note remembers its texts in made.
func desks(made *notes, texts ...string) (setup, *deskControl) {
	control := &deskControl{replays: true, arrived: make(chan struct{}, 10), goOn: make(chan struct{})}
	s := noting(&words{}, made, nil)
	s.model, s.driver = inOrder(texts...), rlm.Factory{}
	s.plugins = []plugin.Factory{plugin.Static("desk", func(r *plugin.Registrar) error {
		r.Execution().Executor(&desk{calc{globals: map[string]string{}}, control})
		return nil
	})}
	return s, control
}

// look runs a cell that may not write, and returns its result.
func (d *daemon) look(t *testing.T, id protocol.SessionID, source string) protocol.CodeResult {
	t.Helper()
	return must[*protocol.CodeExecuteResult](t)(d.Code.Execute(t.Context(), &protocol.CodeExecuteParams{SessionID: id, Source: source})).Result
}

// writing is a request that may write.
func writing(id protocol.SessionID, source, key string) *protocol.CodeExecuteParams {
	return &protocol.CodeExecuteParams{Mutation: protocol.Mutation{IdempotencyKey: key}, SessionID: id, Source: source, Write: true}
}

// globals returns the variables of a session as "name=size" in order.
func (d *daemon) globals(t *testing.T, id protocol.SessionID) string {
	t.Helper()
	r := must[*protocol.CodeStateResult](t)(d.Code.State(t.Context(), &protocol.SessionParams{SessionID: id}))
	var all []string
	for _, g := range r.Globals {
		all = append(all, fmt.Sprintf("%s=%d", g.Name, g.Size))
	}
	return strings.Join(all, " ")
}

// inBackground runs a cell and returns a function that waits for its outcome.
func (d *daemon) inBackground(ctx context.Context, p *protocol.CodeExecuteParams) func() (*protocol.CodeExecuteResult, error) {
	type outcome struct {
		r   *protocol.CodeExecuteResult
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := d.Code.Execute(ctx, p)
		done <- outcome{r, err}
	}()
	return func() (*protocol.CodeExecuteResult, error) { o := <-done; return o.r, o.err }
}

func TestCodeState(t *testing.T) {
	t.Run("runtime/R07 a client lists the variables of a session that is not loaded", func(t *testing.T) {
		s, _ := desks(&notes{}, calcCell("", "set a 12345"), "done")
		d := start(t, s)
		id := d.session(t)
		d.turn(t, id, "go")
		d = d.restart(t, nil)
		got := must[*protocol.CodeStateResult](t)(d.Code.State(t.Context(), &protocol.SessionParams{SessionID: id}))
		if got.Driver != "rlm" || got.Executor != "desk" || got.Language != "calc" || got.Stale || fmt.Sprint(got.Globals) != "[{a text 5}]" {
			t.Errorf("the state is %+v", got)
		}
	})
	t.Run("runtime/R02 a session whose driver runs no code says so, also while a turn runs", func(t *testing.T) {
		d := start(t, setup{model: runs()})
		id := d.session(t)
		_, err := d.Code.State(t.Context(), &protocol.SessionParams{SessionID: id})
		_, other := d.Code.Execute(t.Context(), &protocol.CodeExecuteParams{SessionID: id, Source: "x"})
		for _, err := range []error{err, other} {
			if !errors.As(err, new(*engine.NoCodeError)) || !strings.Contains(err.Error(), "its driver is standard; start a session with another driver") {
				t.Errorf("it says %v", err)
			}
		}
	})
	t.Run("runtime/R07 while a cell runs a client gets the stored variables", func(t *testing.T) {
		s, control := desks(&notes{}, calcCell("", "set a 12345"), "done")
		d := start(t, s)
		id := d.session(t)
		d.turn(t, id, "go")
		wait := d.inBackground(t.Context(), writing(id, "set b 1\nwait", ""))
		<-control.arrived
		got := must[*protocol.CodeStateResult](t)(d.Code.State(t.Context(), &protocol.SessionParams{SessionID: id}))
		if !got.Stale || fmt.Sprint(got.Globals) != "[{a  5}]" {
			t.Errorf("the state is %+v", got)
		}
		close(control.goOn)
		if _, err := wait(); err != nil {
			t.Error(err)
		}
		if got := d.globals(t, id); got != "a=5 b=1" {
			t.Errorf("afterwards it has %s", got)
		}
	})
}

func TestLookingCells(t *testing.T) {
	t.Run("runtime/R07 a cell that only looks sees variables and the conversation, and its changes are forgotten", func(t *testing.T) {
		s, _ := desks(&notes{}, calcCell("", "set a 12345"), "done")
		d := start(t, s)
		id := d.session(t)
		d.turn(t, id, "go")
		before := must[persistence.Session](t)(d.store.Session(t.Context(), id)).Seq
		for source, want := range map[string]string{
			"show a\nhistory":          "12345\n4 messages\n",
			"set a 1\nset b 2\nshow a": "1\n",
			"set a 2\nnonsense":        "Error in line 1, column 1: unknown word nonsense",
			"set a 3\nfinish 1":        "Error: The code ends a turn, and no turn is running.",
		} {
			if r := d.look(t, id, source); !strings.HasPrefix(r.Printed+r.ErrorText(), want) {
				t.Errorf("%q printed %q, error %q", source, r.Printed, r.ErrorText())
			}
			if got := d.look(t, id, "show a\nshow b").Printed; got != "12345\n\n" {
				t.Errorf("after %q the variables are %q", source, got)
			}
		}
		if after := must[persistence.Session](t)(d.store.Session(t.Context(), id)).Seq; after != before {
			t.Errorf("%d commits were made", after-before)
		}
	})
	t.Run("runtime/R02 a cell that only looks may call no tools, and its error names write", func(t *testing.T) {
		made := &notes{}
		s, _ := desks(made)
		d := start(t, s)
		if r := d.look(t, d.session(t), "call x"); !strings.Contains(r.Error, "run it with write") || len(made.all()) > 0 {
			t.Errorf("the error is %q, and the tool ran for %q", r.Error, made.all())
		}
	})
	for _, deaf := range []bool{false, true} {
		t.Run(fmt.Sprintf("runtime/R07 after a cell was cancelled the variables are as before it; deaf: %t", deaf), func(t *testing.T) {
			s, control := desks(&notes{}, calcCell("", "set a 12345"), "done")
			control.deaf = deaf
			d := start(t, s)
			id := d.session(t)
			d.turn(t, id, "go")
			for _, write := range []bool{false, true} {
				ctx, cancel := context.WithCancel(t.Context())
				wait := d.inBackground(ctx, &protocol.CodeExecuteParams{SessionID: id, Source: "set a 1\nset b 2\nwait", Write: write})
				<-control.arrived
				cancel()
				if _, err := wait(); !errors.Is(err, context.Canceled) || errors.As(err, new(*engine.InterruptedError)) != write {
					t.Errorf("write %t: it returned %v", write, err)
				}
				if got := d.look(t, id, "show a\nshow b").Printed; got != "12345\n\n" {
					t.Errorf("write %t: the variables are %q", write, got)
				}
			}
			close(control.goOn)
		})
	}
}

func TestWritingCells(t *testing.T) {
	t.Run("runtime/R07 a cell that may write calls tools, and its variables are stored once per key", func(t *testing.T) {
		made := &notes{}
		s, control := desks(made)
		d := start(t, s)
		id := d.session(t)
		p := writing(id, "call x\nset a 12345", "key")
		r := must[*protocol.CodeExecuteResult](t)(d.Code.Execute(t.Context(), p))
		if r.Language != "calc" || r.Result.Printed != "note: x\n" || fmt.Sprint(r.Result.Changed) != "[a]" || len(r.Calls) != 1 || r.Calls[0].Name != "note" || r.Calls[0].Parent != r.CellID {
			t.Errorf("the result is %+v", r)
		}
		d = d.restart(t, nil)
		if got := d.globals(t, id); got != "a=5" {
			t.Errorf("after a restart it has %s", got)
		}
		again := must[*protocol.CodeExecuteResult](t)(d.Code.Execute(t.Context(), p))
		if !again.Duplicate || again.CellID != r.CellID || control.cells.Load() != 1 || len(made.all()) != 1 {
			t.Errorf("the repetition is %+v, after %d cells and calls for %q", again, control.cells.Load(), made.all())
		}
		if _, err := d.Code.Execute(t.Context(), writing(id, "set a 1", "key")); !errors.Is(err, persistence.ErrReceiptConflict) {
			t.Errorf("another request with the key: %v", err)
		}
	})
	t.Run("runtime/S06 a cell that stores variables settles the language of the session, and another executor is refused", func(t *testing.T) {
		s, _ := desks(&notes{})
		d := start(t, s)
		id := d.session(t)
		d.look(t, id, "set a 1")
		if got := d.languageOf(t, id); got != "" {
			t.Errorf("a cell that only looks settled %q", got)
		}
		must[*protocol.CodeExecuteResult](t)(d.Code.Execute(t.Context(), writing(id, "set a 1", "")))
		if got := d.languageOf(t, id); got != "calc" {
			t.Errorf("the language is %q", got)
		}
		d = d.speaking(t, "other", nil)
		_, err := d.Code.State(t.Context(), &protocol.SessionParams{SessionID: id})
		_, other := d.Code.Execute(t.Context(), writing(id, "set a 1", ""))
		if !errors.As(err, new(*engine.LanguageChangedError)) || !errors.As(other, new(*engine.LanguageChangedError)) {
			t.Errorf("with an executor of another language: %v, %v", err, other)
		}
	})
	t.Run("runtime/R07 an error of the code keeps the assignments before it", func(t *testing.T) {
		s, _ := desks(&notes{})
		d := start(t, s)
		id := d.session(t)
		r := must[*protocol.CodeExecuteResult](t)(d.Code.Execute(t.Context(), writing(id, "set a 12345\nnonsense", "")))
		if got := d.globals(t, id); r.Result.Error == "" || got != "a=5" {
			t.Errorf("after %+v it has %s", r.Result, got)
		}
	})
	t.Run("runtime/R10 a repetition after a crash runs the cell again, and its calls do not run twice", func(t *testing.T) {
		made := &notes{}
		s, control := desks(made)
		d := start(t, s)
		id := d.session(t)
		p := writing(id, "call x\nset a 12345\nwait\ncall y", "key")
		wait := d.inBackground(t.Context(), p)
		<-control.arrived
		d.stop()
		if _, err := wait(); !errors.As(err, new(*engine.InterruptedError)) {
			t.Errorf("the first request returned %v", err)
		}
		close(control.goOn)
		d = d.restart(t, nil)
		r := must[*protocol.CodeExecuteResult](t)(d.Code.Execute(t.Context(), p))
		if r.Result.Printed != "note: x\nnote: y\n" || fmt.Sprint(made.all()) != "[x y]" || d.globals(t, id) != "a=5" {
			t.Errorf("the result is %+v, and the tool ran for %q", r, made.all())
		}
	})
	t.Run("runtime/R10 a repetition after a crash is refused if the executor does not repeat cells", func(t *testing.T) {
		s, control := desks(&notes{})
		control.replays = false
		d := start(t, s)
		id := d.session(t)
		p := writing(id, "set a 1\nwait", "key")
		wait := d.inBackground(t.Context(), p)
		<-control.arrived
		d.stop()
		_, _ = wait()
		close(control.goOn)
		d = d.restart(t, nil)
		if _, err := d.Code.Execute(t.Context(), p); !errors.Is(err, engine.ErrCellInterrupted) || control.cells.Load() != 1 || d.globals(t, id) != "" {
			t.Errorf("the repetition returned %v after %d cells", err, control.cells.Load())
		}
	})
	t.Run("runtime/R10 a repetition that makes another call than before the crash makes none and is refused", func(t *testing.T) {
		made := &notes{}
		s, control := desks(made)
		d := start(t, s)
		id := d.session(t)
		must[*protocol.CodeExecuteResult](t)(d.Code.Execute(t.Context(), writing(id, "set a before", "")))
		p := writing(id, "call x\nwait\nset a 1", "key")
		wait := d.inBackground(t.Context(), p)
		<-control.arrived
		d.stop()
		_, _ = wait()
		close(control.goOn)
		d = d.restart(t, func(s *setup) {
			s.plugins = []plugin.Factory{plugin.Static("desk", func(r *plugin.Registrar) error {
				r.Execution().Executor(&renaming{calc{globals: map[string]string{}}})
				return nil
			})}
		})
		if _, err := d.Code.Execute(t.Context(), p); !errors.Is(err, engine.ErrCellInterrupted) || fmt.Sprint(made.all()) != "[x]" || d.globals(t, id) != "a=6" {
			t.Errorf("the repetition returned %v, and the tool ran for %q", err, made.all())
		}
	})
	for _, c := range []struct {
		name    string
		ceiling *protocol.Ceiling
		mode    protocol.ApprovalMode
		runs    bool
	}{
		{"allowed by the session", nil, protocol.ApproveAllow, true},
		{"asked about by the session", nil, protocol.ApproveAsk, true},
		{"denied by the session", nil, protocol.ApproveDeny, false},
		{"of a session in plan mode", &protocol.Ceiling{ReadOnly: true}, protocol.ApproveAllow, false},
	} {
		t.Run("outside/1 a call of a client's cell is judged like a call of the client: "+c.name, func(t *testing.T) {
			made := &notes{}
			s, _ := desks(made)
			s.config = func(cfg *engine.Config) { cfg.Defaults.Approval.Mode = c.mode }
			d := start(t, s)
			new := &protocol.SessionNewParams{Cwd: t.TempDir(), Authority: protocol.Authority{Ceiling: c.ceiling}}
			id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), new)).SessionID
			direct := must[*protocol.ToolCallResult](t)(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "note", Args: []byte(`{"text":"direct"}`)}))
			r, err := d.Code.Execute(t.Context(), writing(id, "call x", ""))
			if err != nil || (len(made.all()) == 2) != c.runs || r.Result.Error == "" && r.Calls[0].Output.Status != direct.Output.Status {
				t.Errorf("the cell returned %+v, %v; the call %+v; the tool ran for %q", r, err, direct.Output, made.all())
			}
		})
	}
}

// renaming is a desk whose calls have other arguments.
type renaming struct{ calc }

func (x *renaming) ReplaysCells() bool { return true }

func (x *renaming) Execute(ctx context.Context, _ *plugin.CodeCall, host plugin.CellHost) (turn.CellReply, error) {
	x.globals["a"] = "after"
	_, err := host.Call(ctx, []tool.Request{note("other")})
	return turn.CellReply{Printed: fmt.Sprint(err)}, nil
}

func TestCellsOfClientsAndTurns(t *testing.T) {
	t.Run("runtime/R02 a client's cell is refused while a turn runs", func(t *testing.T) {
		s, control := desks(&notes{}, calcCell("", "wait"), "done")
		d := start(t, s)
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-control.arrived
		for _, write := range []bool{false, true} {
			_, err := d.Code.Execute(t.Context(), &protocol.CodeExecuteParams{SessionID: id, Source: "show a", Write: write})
			if active, ok := errors.AsType[*engine.TurnActiveError](err); !ok || active.TurnID != turn {
				t.Errorf("write %t: it returned %v", write, err)
			}
		}
		close(control.goOn)
		d.wait(t, turn)
	})
	t.Run("runtime/R02 a turn waits while a client's cell runs, and another cell is refused", func(t *testing.T) {
		s, control := desks(&notes{}, "done")
		d := start(t, s)
		id := d.session(t)
		wait := d.inBackground(t.Context(), &protocol.CodeExecuteParams{SessionID: id, Source: "wait"})
		<-control.arrived
		began := d.begin(t, id, "go")
		if began.State != protocol.TurnQueued {
			t.Errorf("the turn is %s", began.State)
		}
		if _, err := d.Code.Execute(t.Context(), &protocol.CodeExecuteParams{SessionID: id, Source: "show a"}); !errors.As(err, new(*engine.TurnActiveError)) {
			t.Errorf("another cell returned %v", err)
		}
		if got := must[*protocol.TurnReport](t)(d.Turns.Read(t.Context(), &protocol.TurnParams{TurnID: began.TurnID})).State; got != protocol.TurnQueued {
			t.Errorf("while the cell runs the turn is %s", got)
		}
		close(control.goOn)
		if _, err := wait(); err != nil {
			t.Error(err)
		}
		if r := d.wait(t, began.TurnID); r.State != protocol.TurnCompleted {
			t.Errorf("the turn ended as %s", r.State)
		}
	})
}
