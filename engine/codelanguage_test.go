package engine_test

import (
	"context"
	"strings"
	"testing"

	"lashd/engine"
	"lashd/engine/driver/rlm"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// languageOf returns the language of a session's code cells, as clients read it.
func (d *daemon) languageOf(t testing.TB, id protocol.SessionID) string {
	t.Helper()
	return must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).CodeLanguage
}

// speaking restarts the daemon with an executor whose language has this name.
func (d *daemon) speaking(t testing.TB, language string, model provider.Provider) *daemon {
	t.Helper()
	return d.restart(t, func(s *setup) { s.plugins, s.model = []plugin.Factory{calcIn(language, nil)}, model })
}

// refusesLanguage expects that a turn failed because its executor runs another language, before anything ran.
func refusesLanguage(t testing.TB, report *protocol.TurnReport) {
	t.Helper()
	const want = "the code cells of this session are in calc, but the executor runs other: configure the executor for calc again, or start a new session"
	if report.State != protocol.TurnFailed || len(report.Issues) != 1 || report.Issues[0].Code != "code_language_changed" || report.Issues[0].Message != want {
		t.Errorf("the turn ended as %s with %+v", report.State, report.Issues)
	}
}

// requestCount counts the requests to a model that answers "ok".
type requestCount struct{ n int }

func (m *requestCount) model() provider.Provider {
	return modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
		m.n++
		_ = yield(provider.Chunk{Text: "ok"}, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
	})
}

func TestCodeLanguage(t *testing.T) {
	t.Run("runtime/S06 the first turn with code cells settles their language, before the model is called", func(t *testing.T) {
		var d *daemon
		var id protocol.SessionID
		var early string
		d = start(t, calculating(modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			early = d.languageOf(t, id)
			_ = yield(provider.Chunk{Text: "ok"}, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
		})))
		id = d.session(t)
		before := d.languageOf(t, id)
		d.turn(t, id, "go")
		d = d.restart(t, nil)
		if late := d.languageOf(t, id); before != "" || early != "calc" || late != "calc" {
			t.Errorf("the language is %q, with the first request %q, after a restart %q", before, early, late)
		}
	})
	t.Run("runtime/S06 a session whose model writes no code has no language", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: []plugin.Factory{calcIn("", nil)}})
		id := d.session(t)
		d.turn(t, id, "go")
		if got := d.languageOf(t, id); got != "" {
			t.Errorf("the language is %q", got)
		}
	})
	t.Run("runtime/S06 with an executor for another language a turn fails before the model is called, until the first executor is back", func(t *testing.T) {
		d := start(t, calculating(inOrder(calcCell("", "set a 1"), "done")))
		id := d.session(t)
		d.turn(t, id, "go")
		other := &requestCount{}
		d = d.speaking(t, "other", other.model())
		refusesLanguage(t, d.turn(t, id, "and?"))
		if fresh := d.session(t); d.turn(t, fresh, "go").State != protocol.TurnCompleted || d.languageOf(t, fresh) != "other" || d.languageOf(t, id) != "calc" {
			t.Errorf("a new session has the language %q, the first one %q", d.languageOf(t, fresh), d.languageOf(t, id))
		}
		if other.n != 1 {
			t.Errorf("the model was called %d times, expected one call of the new session", other.n)
		}
		d = d.speaking(t, "", inOrder(calcCell("", "show a"), "done"))
		if report := d.turn(t, id, "and now?"); report.State != protocol.TurnCompleted {
			t.Errorf("with the first executor: %+v", report.Issues)
		}
		if all := d.history(t, id); !strings.Contains(strings.Join(all, "\n"), "codeCell: show a") {
			t.Errorf("history has %q", all)
		}
	})
	t.Run("runtime/S06 a turn that is resumed in its first model call compares the language", func(t *testing.T) {
		reached := make(chan struct{})
		d := start(t, calculating(modelFunc(func(ctx context.Context, _ *provider.Request, _ func(provider.Chunk, error) bool) {
			close(reached)
			<-ctx.Done()
		})))
		turn := d.begin(t, d.session(t), "go").TurnID
		<-reached
		other := &requestCount{}
		d = d.speaking(t, "other", other.model())
		refusesLanguage(t, d.wait(t, turn))
		if other.n != 0 {
			t.Errorf("the model was called %d times", other.n)
		}
	})
	t.Run("runtime/S06 a cell that a restart interrupted does not run with an executor for another language", func(t *testing.T) {
		waiting := make(chan struct{})
		s := calculating(inOrder(calcCell("", "set a 1\nwait")))
		s.plugins = []plugin.Factory{calcIn("", waiting)}
		d := start(t, s)
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-waiting
		d = d.speaking(t, "other", replies())
		refusesLanguage(t, d.wait(t, turn))
		all := d.graph(t, id).Data
		if got := all[len(all)-1].Message.Parts[0].Text; got != "The turn ended while the code ran. It is unknown how far the code ran." {
			t.Errorf("the cell ended with %q", got)
		}
	})
}

func TestCodeLanguageOfRelatives(t *testing.T) {
	d := start(t, calculating(inOrder("done")))
	id := d.session(t)
	d.turn(t, id, "go")
	other := &requestCount{}
	d = d.speaking(t, "other", other.model())
	created := func(t *testing.T, p protocol.SessionNewParams) protocol.SessionID {
		t.Helper()
		return must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &p)).SessionID
	}
	child := protocol.Relation{Kind: protocol.RelationChild, Parent: id, Cause: "test"}
	t.Run("runtime/S06 a fork writes the language of its source", func(t *testing.T) {
		fork := must[*protocol.SessionNewResult](t)(d.History.Fork(t.Context(), &protocol.SessionForkParams{SessionID: id})).SessionID
		if got := d.languageOf(t, fork); got != "calc" {
			t.Errorf("the language is %q", got)
		}
		refusesLanguage(t, d.turn(t, fork, "go"))
	})
	t.Run("runtime/S06 a child writes the language of its parent, from its creation", func(t *testing.T) {
		made := created(t, protocol.SessionNewParams{Relation: child})
		if got := d.languageOf(t, made); got != "calc" {
			t.Errorf("the language is %q", got)
		}
		refusesLanguage(t, d.turn(t, made, "go"))
	})
	t.Run("runtime/S06 a child that continues a session without a language writes that of its parent", func(t *testing.T) {
		blank := d.session(t)
		made := created(t, protocol.SessionNewParams{Relation: child, Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: blank}})
		if got := d.languageOf(t, made); got != "calc" {
			t.Errorf("the language is %q", got)
		}
	})
	t.Run("runtime/S06 a child that continues a session writes the language of that session", func(t *testing.T) {
		spoken := d.session(t)
		d.turn(t, spoken, "go")
		made := created(t, protocol.SessionNewParams{Relation: child, Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: spoken}})
		if got := d.languageOf(t, made); got != "other" {
			t.Errorf("the language is %q", got)
		}
	})
	t.Run("runtime/S06 a child whose model writes no code has no language", func(t *testing.T) {
		d = d.restart(t, func(s *setup) {
			s.model = replies(scripted.Reply{Text: "ok"})
			s.config = func(cfg *engine.Config) {
				host, err := plugin.NewHost([]plugin.Factory{rlm.Factory{}, standard.Factory{}}, []plugin.Factory{calcIn("", nil)})
				if err != nil {
					t.Fatal(err)
				}
				cfg.Plugins = host
			}
		})
		made := created(t, protocol.SessionNewParams{Relation: child, Driver: "standard"})
		if got := d.languageOf(t, made); got != "" {
			t.Errorf("the language is %q", got)
		}
	})
}
