package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// slot is a place where plugin code is called, what calls it there, and how that must fail.
type slot struct {
	name string
	use  func(*testing.T, *daemon, protocol.SessionID) error
	hang string        // what the error says that comes of a hang; empty: it is not one of this request
	most time.Duration // that it may take
}

const (
	briefly  = 11 * time.Second // longer than the default time limit of plugins
	halfHour = 31 * time.Minute
)

// turned runs a turn, and gives what is wrong with it.
func turned(input string) func(*testing.T, *daemon, protocol.SessionID) error {
	return func(t *testing.T, d *daemon, id protocol.SessionID) error {
		turn, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: text(input)})
		if err != nil {
			return err
		}
		report, err := d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: turn.TurnID})
		if err != nil {
			return err
		}
		for _, issue := range report.Issues {
			err = errors.Join(err, errors.New(issue.Message))
		}
		for _, call := range report.ToolCalls {
			if f := call.Output.Failure; f != nil {
				err = errors.Join(err, errors.New(f.Message))
			}
		}
		return err
	}
}

// stopped begins a turn, and interrupts it once it waits.
func stopped(t *testing.T, d *daemon, id protocol.SessionID) error {
	turn := d.begin(t, id, "run x").TurnID
	time.Sleep(time.Second)
	d.interrupt(t, turn)
	report, err := d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: turn})
	if err == nil {
		err = fmt.Errorf("it ended as %s", report.State)
	}
	return err
}

func toolList(t *testing.T, d *daemon, id protocol.SessionID) error { return d.tools(t, id) }

func commanded(t *testing.T, d *daemon, id protocol.SessionID) error {
	p := d.operation(id, "faulty.command")
	p.IdempotencyKey = "once"
	_, err := d.Operations.Command(t.Context(), p)
	_, again := d.Operations.Command(t.Context(), p)
	if err != nil && (again == nil || again.Error() != err.Error()) {
		t.Errorf("the same request again: %v, not %v", again, err)
	}
	return err
}

// tasked runs a task, and cancels it after a minute.
func tasked(t *testing.T, d *daemon, id protocol.SessionID) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := d.operation(id, "faulty.task")
	p.IdempotencyKey = "once"
	_, err := d.Operations.Task(ctx, p)
	_, again := d.Operations.Task(t.Context(), p)
	if err != nil && (again == nil || again.Error() != err.Error()) {
		t.Errorf("the same request again: %v, not %v", again, err)
	}
	return err
}

func configured(t *testing.T, d *daemon, id protocol.SessionID) error {
	prompt := "other"
	_, err := d.Sessions.Configure(t.Context(), &protocol.SessionConfigureParams{SessionID: id, Prompt: &prompt})
	return err
}

func slots() []slot {
	query := func(t *testing.T, d *daemon, id protocol.SessionID) error {
		_, err := d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: "faulty.query"})
		return err
	}
	compact := func(t *testing.T, d *daemon, id protocol.SessionID) error {
		_, err := d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id})
		return err
	}
	appends := func(t *testing.T, d *daemon, id protocol.SessionID) error {
		if err := d.tools(t, id); err != nil {
			t.Error(err)
		}
		_, err := d.History.Append(t.Context(), &protocol.GraphAppendParams{SessionID: id, Nodes: summary("more")})
		return err
	}
	extends := func(t *testing.T, d *daemon, id protocol.SessionID) error {
		_, err := d.Sessions.ApplyExtension(t.Context(), &protocol.SessionExtensionParams{SessionID: id, Extension: []byte(`{}`)})
		return err
	}
	validates := func(t *testing.T, d *daemon, id protocol.SessionID) error {
		options := turnOptions(`{}`)
		_, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: text("go"), TurnOptions: &options})
		return err
	}
	snapshots := func(t *testing.T, d *daemon, id protocol.SessionID) error {
		if _, err := d.Operations.Command(t.Context(), d.operation(id, "faulty.command")); err != nil {
			t.Error(err)
		}
		_, err := d.Snapshots.Create(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "x"})
		return err
	}
	closes := func(t *testing.T, d *daemon, id protocol.SessionID) error {
		if err := d.tools(t, id); err != nil {
			t.Error(err)
		}
		_, err := d.Sessions.Close(t.Context(), &protocol.SessionMutationParams{SessionID: id})
		return errors.Join(err, d.tools(t, id))
	}
	return []slot{
		{"build", toolList, "plugin faulty: build", briefly},
		{"register", toolList, "plugin faulty: register", briefly},
		{"ready", toolList, "plugin faulty: ready", briefly},
		{"tools", toolList, "plugin faulty: tools", briefly},
		{"initialize", toolList, "plugin scheme: protocol_session", briefly},
		{"restore", toolList, "plugin faulty: restore", briefly},
		{"code_executor_restore", toolList, "plugin scheme: code_executor_restore", briefly},
		{"restored", toolList, "plugin scheme: protocol_session", briefly},
		{"sessionRestored", toolList, "plugin faulty: session_restored", briefly},
		{"materialize", toolList, "plugin scheme: protocol_session", briefly},
		{"tool_catalog", toolList, "plugin faulty: tool_catalog", briefly},
		{"revision", toolList, "plugin faulty: revision", briefly},
		{"contract", toolList, "", briefly},
		{"preamble", turned("go"), "plugin scheme: preamble", briefly},
		{"build", turned("go"), "plugin faulty: build", briefly},
		{"driver", turned("go"), "did not capture the state of scheme", briefly},
		{"visible", turned("go"), "did not capture the state of scheme", 21 * time.Second},
		{"prose", turned("go"), "plugin faulty: prose_projector", briefly},
		{"query", query, "plugin faulty: query", halfHour},
		{"command", commanded, "plugin faulty: command", halfHour},
		{"task", tasked, "plugin faulty: task", 2 * time.Minute},
		{"snapshot", snapshots, "", briefly},
		{"close", closes, "", briefly},
		{"prompt", turned("go"), "plugin faulty: prompt", halfHour},
		{"before_turn", turned("go"), "plugin faulty: before_turn", halfHour},
		{"context_transform", turned("go"), "plugin faulty: context_transform", halfHour},
		{"before_llm_call", turned("go"), "plugin scheme: before_llm_call", halfHour},
		{"assistant_stream", turned("go"), "plugin faulty: assistant_stream", halfHour},
		{"assistant_response", turned("go"), "plugin faulty: assistant_response", halfHour},
		{"assistant_stream_finished", turned("go"), "did not capture the state of faulty", halfHour},
		{"before_tool_call", turned("look"), "plugin faulty: before_tool_call", halfHour},
		{"prepare", turned("look"), "exceeded its time limit", halfHour},
		{"tool", turned("look"), "exceeded its time limit", halfHour},
		{"after_tool_call", turned("look"), "plugin faulty: after_tool_call", halfHour},
		{"tool_result_projector", turned("look"), "did not capture the state of faulty", halfHour},
		{"checkpoint", turned("go"), "plugin faulty: checkpoint", halfHour},
		{"after_turn", turned("go"), "plugin faulty: after_turn", halfHour},
		{"turnFinalized", turned("go"), "plugin faulty: turn_finalized", halfHour},
		{"turnPersisted", turned("go"), "", halfHour},
		{"code_executor", stopped, "it ended as cancelled", halfHour},
		// The globals of a cell are stored before the next model call. The driver of that call is of the same plugin.
		{"code_executor_snapshot", turned("run x"), "did not capture the state of scheme", briefly},
		{"code_executor_stored", turned("run x"), "code_executor_stored did not return", briefly},
		{"compactor", compact, "plugin faulty: compactor", halfHour},
		{"config_mutator", configured, "", halfHour},
		{"sessionConfigChanged", configured, "", halfHour},
		{"append", appends, "plugin scheme: protocol_session", briefly},
		{"extension", extends, "plugin scheme: protocol_session", briefly},
		{"validate", validates, "plugin scheme: protocol_session", briefly},
	}
}

// faultily is a daemon with a session that has run a turn and a command, and that is not in memory.
func faultily(t *testing.T, f *faulty) (*daemon, protocol.SessionID) {
	t.Helper()
	d := start(t, setup{model: looking(), driver: f.protocol(), plugins: []plugin.Factory{f}})
	id := d.session(t)
	for _, input := range []string{"look", "run x"} {
		if err := turned(input)(t, d, id); err != nil {
			t.Fatal(err)
		}
	}
	must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), d.operation(id, "faulty.command")))
	must[*protocol.SeqResult](t)(d.Sessions.Close(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
	return d, id
}

// commands is how many commands the plugin has run, as it remembers.
func (d *daemon) commands(t *testing.T, id protocol.SessionID) string {
	t.Helper()
	return string(must[*protocol.OperationQueryResult](t)(d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: "faulty.query"})).Output)
}

func TestHangingPlugins(t *testing.T) {
	for _, s := range slots() {
		t.Run("plugin/HK-01 plugin/HK-28 plugin/OP-09 "+s.name+" that hangs and answers late fails alone", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { hangs(t, s) })
		})
		t.Run("runtime/T22 plugin/HK-28 "+s.name+" that panics fails alone", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &faulty{panics: true}
				d, id := faultily(t, f)
				f.where.Store(&s.name)
				// Revision is found out when the state is captured.
				if err := s.use(t, d, id); strings.HasPrefix(s.hang, "plugin ") && s.name != "revision" && err == nil {
					t.Error("no client got the event")
				}
				f.where.Store(nil)
				usable(t, d, id)
			})
		})
	}
}

func hangs(t *testing.T, s slot) {
	f := &faulty{free: make(chan struct{})}
	d, id := faultily(t, f)
	other := d.session(t)
	f.where.Store(&s.name)
	began := time.Now()
	done := later(func() (struct{}, error) { return struct{}{}, s.use(t, d, id) })
	synctest.Wait()
	if f.away.Load() == 0 {
		time.Sleep(s.most)
	}
	f.where.Store(nil)
	if f.away.Load() == 0 {
		t.Error("it was never called")
	}
	attachable(t, d, id)
	usable(t, d, other)
	err := <-done
	if took := time.Since(began); took > s.most {
		t.Errorf("it took %v", took)
	}
	if s.hang == "" && err != nil || s.hang != "" && (err == nil || !strings.Contains(err.Error(), s.hang)) {
		t.Errorf("it came to %v, want %q", err, s.hang)
	}
	usable(t, d, id)
	ran, seq := d.commands(t, id), d.seq(t, id)
	close(f.free)
	synctest.Wait()
	if late := d.commands(t, id); f.away.Load() != 0 || late != ran || d.seq(t, id) != seq {
		t.Errorf("%d calls are still away, it has run %s commands after %s, seq %d after %d", f.away.Load(), late, ran, d.seq(t, id), seq)
	}
	d = d.restart(t, nil)
	if stored := d.commands(t, id); stored != ran {
		t.Errorf("after a restart it has run %s commands, not %s", stored, ran)
	}
	usable(t, d, id)
}

// attachable sees to it that a session can be read and attached to at once.
func attachable(t *testing.T, d *daemon, id protocol.SessionID) {
	t.Helper()
	began := time.Now()
	_, sub, err := d.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	sub.Close()
	must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("to attach took %v", took)
	}
}

// usable sees to it that a session runs turns, of every kind, at once.
func usable(t *testing.T, d *daemon, id protocol.SessionID) {
	t.Helper()
	began := time.Now()
	for _, input := range []string{"look", "run x"} {
		if err := turned(input)(t, d, id); err != nil {
			t.Errorf("a turn with %q: %v", input, err)
		}
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("two turns took %v", took)
	}
}

// TestAbandonedPlugins sees to it that half of what a command has done is not kept, although its session goes on.
func TestAbandonedPlugins(t *testing.T) {
	t.Run("plugin/OP-09 plugin/SN-04 a plugin that was abandoned during a command restarts with the stored state", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{free: make(chan struct{})}
			d, id := faultily(t, f)
			if ran := d.commands(t, id); ran != "1" {
				t.Fatalf("it has run %s commands", ran)
			}
			slot := "command"
			f.where.Store(&slot)
			done := later(func() (*protocol.OperationReceipt, error) {
				return d.Operations.Command(t.Context(), d.operation(id, "faulty.command"))
			})
			synctest.Wait()
			f.where.Store(nil)
			if ran := d.commands(t, id); ran != "2" {
				t.Errorf("while the command runs it has run %s commands", ran)
			}
			e, ok := errors.AsType[*plugin.OperationError](<-done)
			if !ok || e.Code != plugin.OperationAbandoned || !strings.Contains(e.Message, "plugin faulty: command") {
				t.Errorf("it came to %+v", e)
			}
			if ran := d.commands(t, id); ran != "1" {
				t.Errorf("after it was left alone it has run %s commands", ran)
			}
			must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), d.operation(id, "faulty.command")))
			close(f.free)
			synctest.Wait()
			if ran := d.commands(t, id); ran != "2" || len(pluginNodes(d.graph(t, id).Data)) != 2 {
				t.Errorf("it has run %s commands, and history has %d events", ran, len(pluginNodes(d.graph(t, id).Data)))
			}
		})
	})
	t.Run("plugin/OP-09 a session whose task does not return can be deleted, and the daemon stopped", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			f := &faulty{free: make(chan struct{})}
			defer close(f.free)
			d, id := faultily(t, f)
			other := d.session(t)
			slot := "task"
			f.where.Store(&slot)
			var done []<-chan error
			for _, id := range []protocol.SessionID{id, other} {
				p := d.operation(id, "faulty.task")
				p.IdempotencyKey = string(id)
				done = append(done, later(func() (*protocol.OperationReceipt, error) { return d.Operations.Task(t.Context(), p) }))
			}
			time.Sleep(24 * time.Hour) // a task may take its time
			if f.away.Load() != 2 {
				t.Fatalf("%d tasks run", f.away.Load())
			}
			began := time.Now()
			must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
			left := func(err error) {
				t.Helper()
				if e, ok := errors.AsType[*plugin.OperationError](err); !ok || e.Code != plugin.OperationAbandoned {
					t.Errorf("the task came to %v", err)
				}
			}
			left(<-done[0])
			d.halt()
			left(<-done[1])
			d = d.restart(t, nil)
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %v", took)
			}
			p := d.operation(other, "faulty.task")
			p.IdempotencyKey = string(other)
			_, err := d.Operations.Task(patiently(t), p)
			left(err)
			if f.away.Load() != 2 {
				t.Errorf("%d tasks run: it was run again", f.away.Load())
			}
			f.where.Store(nil)
			usable(t, d, other)
		})
	})
}

func (d *daemon) seq(t *testing.T, id protocol.SessionID) protocol.Seq {
	t.Helper()
	first, sub, err := d.Sessions.Attach(t.Context(), &protocol.SessionAttachParams{SessionID: id})
	if err != nil {
		t.Fatal(err)
	}
	sub.Close()
	return first.Seq
}
