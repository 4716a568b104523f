//go:build unix

package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// call makes a direct call of the tool.
func call(t testing.TB, d *builtintest.Daemon, id protocol.SessionID, args string) protocol.ToolOutput {
	t.Helper()
	return builtintest.Must(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "note", Args: json.RawMessage(args)}))(t).Output
}

func noted(t testing.TB, d *builtintest.Daemon, id protocol.SessionID) string {
	t.Helper()
	return string(builtintest.Must(d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: "notes.list"}))(t).Output)
}

func noting(args string) *builtintest.Recorder {
	return &builtintest.Recorder{Provider: builtintest.Calling(scripted.Call{ID: "c1", Name: "note", Args: json.RawMessage(args)})}
}

func TestTurn(t *testing.T) {
	each(t, "issue/4-9 a plugin takes part in a turn at every hook, and what it keeps outlives it", func(t *testing.T, c process.Config) {
		dir, model := t.TempDir(), noting(`{"text":" milk "}`)
		d := builtintest.Start(t, dir, 0, model, begin(t, c))
		id := d.Session(t, nil)
		report := d.Turn(t, id, "note milk")
		if report.Outcome.Text != "DONE" || len(report.Issues) > 0 {
			t.Errorf("outcome %+v %+v, want the text as the stream hook leaves it", report.Outcome, report.Issues)
		}
		if got := d.Result(t, id); got.Text != "milk" {
			t.Errorf("the tool says %+v, want its arguments prepared", got)
		}
		if s := model.Last(t).System; !strings.Contains(s, "1 notes") {
			t.Errorf("the system prompt %q lacks the text of the plugin", s)
		}
		d.Stop()
		d = builtintest.Start(t, dir, 0, model, begin(t, c))
		if got := noted(t, d, id); got != `["milk"]` {
			t.Errorf("after a restart of both there are the notes %s", got)
		}
	})
	each(t, "issue/4-9 directives end a turn, and change and deny calls", func(t *testing.T, c process.Config) {
		f := begin(t, c)
		for text, want := range map[string]string{"a secret": "masked", "forbidden": "no"} {
			d := builtintest.Start(t, t.TempDir(), 0, noting(fmt.Sprintf(`{"text":%q}`, text)), f)
			id := d.Session(t, nil)
			d.Turn(t, id, "go")
			if got := d.Result(t, id); got.Text != want || (got.Failure != nil) != (want == "no") {
				t.Errorf("the call with %q: got %+v %+v", text, got, got.Failure)
			}
			if r := d.Turn(t, id, "past curfew"); r.Outcome.Kind != protocol.OutcomePluginAbort || r.Issues[0].Code != "curfew" {
				t.Errorf("outcome %+v %+v", r.Outcome, r.Issues)
			}
		}
	})
	each(t, "issue/4-9 a tool ends the turn with a value", func(t *testing.T, c process.Config) {
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{"mode":"finish"}`), begin(t, c))
		r := d.Turn(t, d.Session(t, nil), "go")
		if string(r.Outcome.Value) != `{"n":1}` {
			t.Errorf("outcome %+v", r.Outcome)
		}
	})
}

func TestCalls(t *testing.T) {
	each(t, "issue/4-9 what is printed does not break the protocol, nor does what children print", func(t *testing.T, c process.Config) {
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{}`), begin(t, c))
		id := d.Session(t, nil)
		if got := call(t, d, id, `{"mode":"print","text":"x"}`); got.Text != "x" {
			t.Errorf("%+v %+v", got, got.Failure)
		}
	})
	each(t, "issue/4-9 what a handler throws is the error of its call, and of no other", func(t *testing.T, c process.Config) {
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{}`), begin(t, c))
		id := d.Session(t, nil)
		got := call(t, d, id, `{"mode":"raise"}`)
		if got.Failure == nil || got.Failure.Code != "plugin_failed" || !strings.Contains(got.Failure.Message, "boom") {
			t.Errorf("%+v %+v", got, got.Failure)
		}
		if got := call(t, d, id, `{"text":"x"}`); got.Text != "x" {
			t.Errorf("%+v %+v", got, got.Failure)
		}
	})
	each(t, "issue/4-9 a call waits for no other, and learns that it is cancelled", func(t *testing.T, c process.Config) {
		f := begin(t, c)
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{"mode":"wait"}`), f)
		slow, quick := d.Session(t, nil), d.Session(t, nil)
		began := builtintest.Must(d.Turns.Start(t.Context(), &protocol.TurnStartParams{
			SessionID: slow, Input: []protocol.InputPart{{Type: protocol.InputText, Text: "go"}},
		}))(t)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { call(t, d, quick, `{"text":"x"}`) })
		}
		all.Wait()
		if got := noted(t, d, quick); strings.Count(got, `"x"`) != 8 {
			t.Errorf("of eight calls at once there are the notes %s", got)
		}
		builtintest.Must(d.Turns.Interrupt(t.Context(), "", &protocol.TurnInterruptParams{TurnID: began.TurnID}))(t)
		builtintest.Must(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: began.TurnID}))(t)
		wait.Until(t, "the task learns of it", func() bool { return noted(t, d, slow) == `["cancelled"]` })
	})
	each(t, "issue/4-9 a call gets what it is granted, and an error for the rest", func(t *testing.T, c process.Config) {
		c.Uses = []process.Capability{process.UsesState, process.UsesDecisions}
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{}`), begin(t, c))
		id := d.Session(t, nil)
		if got := call(t, d, id, `{"mode":"host","text":"toolCatalog"}`); !strings.Contains(got.Text, `"name":"note"`) && !strings.Contains(got.Text, `"name": "note"`) {
			t.Errorf("toolCatalog: %+v %+v", got, got.Failure)
		}
		if got := call(t, d, id, `{"mode":"host","text":"ask"}`); got.Text != "refused: invalidParams" {
			t.Errorf("ask: %+v %+v", got, got.Failure)
		}
		if got := call(t, d, id, `{"mode":"host","text":"createSession"}`); got.Text != "refused: denied" {
			t.Errorf("createSession: %+v %+v", got, got.Failure)
		}
	})
	each(t, "issue/4-9 a changed list of tools is announced, and read", func(t *testing.T, c process.Config) {
		changed := make(chan protocol.SessionID, 1)
		c.ToolsChanged = func(_ context.Context, id protocol.SessionID) { changed <- id }
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{}`), begin(t, c))
		id := d.Session(t, nil)
		call(t, d, id, `{"mode":"grow"}`)
		select {
		case got := <-changed:
			if got != id {
				t.Errorf("the tools of %s have changed", got)
			}
		case <-time.After(patience):
			t.Fatal("no notice arrived")
		}
		builtintest.Must(d.Tools.Refresh(t.Context(), &protocol.SessionMutationParams{SessionID: id}))(t)
		var names []string
		for _, r := range builtintest.Must(d.Tools.List(t.Context(), &protocol.SessionParams{SessionID: id}))(t).Data {
			names = append(names, r.Name)
		}
		if len(names) != 2 {
			t.Errorf("the tools are %q", names)
		}
	})
}

func TestState(t *testing.T) {
	each(t, "issue/4-9 state too large for a message goes in pieces, there and back", func(t *testing.T, c process.Config) {
		c.Limits.Line = 2 << 20 // in one message it would be 4 MiB
		dir, model := t.TempDir(), noting(`{"mode":"bulk","text":"x"}`)
		d := builtintest.Start(t, dir, 0, model, begin(t, c))
		id := d.Session(t, nil)
		d.Turn(t, id, "go")
		d.Stop()
		d = builtintest.Start(t, dir, 0, model, begin(t, c))
		fork := builtintest.Must(d.History.Fork(t.Context(), &protocol.SessionForkParams{SessionID: id}))(t).SessionID
		if got := call(t, d, fork, `{"mode":"size"}`); got.Text != "3145728" {
			t.Errorf("of 3145728 bytes there are, after a restart, %+v", got)
		}
	})
	each(t, "issue/4-9 state of another version is refused", func(t *testing.T, c process.Config) {
		h := builtintest.Must(plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{begin(t, c)}))(t)
		s := builtintest.Must(h.Open(t.Context(), standard.ID, nil, plugin.BuildContext{SessionID: "ses_1", Cwd: t.TempDir(), StateDir: t.TempDir()}))(t)
		defer s.Close()
		if _, err := s.BeforeTurn(t.Context(), &plugin.TurnContext{}); err != nil { // it runs
			t.Fatal(err)
		}
		for version, want := range map[string]string{"0": "cannot read state", "1": ""} {
			meta := plugin.Meta{PluginID: "notes", Version: version, State: json.RawMessage(`["a"]`)}
			_, err := s.Restore(t.Context(), plugin.Snapshot{Entries: map[string]plugin.Entry{"notes": {Meta: meta}}})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("version %s: %v", version, err)
			}
		}
	})
}
