//go:build unix

package process_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

func noting(args string) *builtintest.Recorder {
	return &builtintest.Recorder{Provider: builtintest.Calling(scripted.Call{ID: "c1", Name: "note", Args: json.RawMessage(args)})}
}

func notes(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) string {
	t.Helper()
	r := builtintest.Must(d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: "notes.list"}))(t)
	return string(r.Output)
}

func TestTurn(t *testing.T) {
	t.Run("issue/4-2 a process runs every hook of a turn, and its state survives the process and the daemon", func(t *testing.T) {
		dir, model := t.TempDir(), noting(`{"text":"milk"}`)
		d := builtintest.Start(t, dir, 0, model, begin(t, config(t, "good", everything())))
		id := d.Session(t, nil)
		report := d.Turn(t, id, "note milk")
		if report.Outcome.Text != "DONE" {
			t.Errorf("outcome %+v %+v, want the text as the stream hook leaves it", report.Outcome, report.Issues)
		}
		if !strings.Contains(model.Last(t).System, "You take notes.") || !strings.Contains(model.Last(t).System, "1 notes") {
			t.Errorf("system prompt %q lacks a text of the plugin", model.Last(t).System)
		}
		if got := d.Result(t, id); got.Text != "milk" {
			t.Errorf("the tool says %+v", got)
		}
		d.Stop()

		f := begin(t, config(t, "good", everything()))
		d = builtintest.Start(t, dir, 0, model, f)
		if got := notes(t, d, id); got != `["milk"]` {
			t.Errorf("after a restart of both there are the notes %s", got)
		}
	})
	t.Run("issue/4-2 a hook of a process ends a turn, and changes and denies calls", func(t *testing.T) {
		f := begin(t, config(t, "good", everything()))
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{"text":"secret"}`), f)
		id := d.Session(t, nil)
		if r := d.Turn(t, id, "past curfew"); r.Outcome.Kind != protocol.OutcomePluginAbort || r.Issues[0].Code != "curfew" {
			t.Errorf("outcome %+v %+v", r.Outcome, r.Issues)
		}
		d.Turn(t, id, "go")
		if got := d.Result(t, id); got.Text != "masked" {
			t.Errorf("the tool says %+v, want what the hook made of its arguments", got)
		}
		d = builtintest.Start(t, t.TempDir(), 0, noting(`{"text":"forbidden"}`), begin(t, config(t, "good", everything())))
		id = d.Session(t, nil)
		d.Turn(t, id, "go")
		if got := d.Result(t, id); got.Failure == nil || got.Failure.Code != "forbidden" {
			t.Errorf("the call returned %+v, want it denied", got)
		}
	})
	t.Run("issue/4-7 a lazy plugin starts on first use", func(t *testing.T) {
		c := everything()
		c.Hooks = nil
		f := begin(t, config(t, "good", c))
		d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), f)
		d.Turn(t, d.Session(t, nil), "hello")
		if left := pids(t, "notes"); len(left) > 0 {
			t.Errorf("a turn that does not use the plugin starts %d", left)
		}
	})
}

func TestChangingTools(t *testing.T) {
	t.Run("issue/4-2 a changed list of tools is fetched and used in the next turn", func(t *testing.T) {
		model, changed := noting(`{"grow":true}`), make(chan error, 1)
		var d *builtintest.Daemon
		c := config(t, "good", everything())
		c.ToolsChanged = func(ctx context.Context, id protocol.SessionID) {
			_, err := d.Tools.Refresh(ctx, &protocol.SessionMutationParams{SessionID: id})
			changed <- err
		}
		d = builtintest.Start(t, t.TempDir(), 0, model, begin(t, c))
		id := d.Session(t, nil)
		d.Turn(t, id, "grow")
		if err := <-changed; err != nil {
			t.Fatal(err)
		}
		d.Turn(t, id, "again")
		<-changed
		var names []string
		for _, m := range model.Last(t).Tools {
			names = append(names, m.Name)
		}
		if !slices.Equal(names, []string{"grown", "note"}) {
			t.Errorf("the model has the tools %q", names)
		}
	})
}

func TestCrash(t *testing.T) {
	t.Run("reliability/P14 a crash fails only its own calls, and the next use restarts the process with the stored state", func(t *testing.T) {
		f := begin(t, config(t, "tool/execute:exit", everything()))
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{"text":"boom"}`), f)
		one, two := d.Session(t, nil), d.Session(t, nil)
		add := func(id protocol.SessionID, key string) {
			builtintest.Must(d.Operations.Command(t.Context(), &protocol.OperationParams{
				Mutation: protocol.Mutation{IdempotencyKey: key}, SessionID: id, Name: "notes.add", Args: json.RawMessage(`{"n":1}`),
			}))(t)
		}
		add(one, "a")
		add(two, "b")
		report := d.Turn(t, one, "go")
		if got := d.Result(t, one); got.Failure == nil || got.Failure.Code != "plugin_crashed" {
			t.Errorf("the call returned %+v", got)
		}
		if report.Outcome.Text != "DONE" {
			t.Errorf("the turn ends with %+v, want it to go on", report.Outcome)
		}
		for _, id := range []protocol.SessionID{one, two} {
			if got := notes(t, d, id); got != `["{\"n\":1}"]` {
				t.Errorf("after the crash session %s has the notes %s", id, got)
			}
		}
	})
	t.Run("reliability/P14 the effect of a failed hook depends on onError", func(t *testing.T) {
		for policy, want := range map[process.OnError]string{"": "plugin_crashed", process.Deny: "plugin_crashed", process.Fail: "before_tool_call_failed", process.Allow: ""} {
			c := config(t, "hook/beforeToolCall:exit", only(process.Hook{Name: process.BeforeToolCall, OnError: policy}))
			c.ID = "notes-" + string(policy)
			f := begin(t, c)
			d := builtintest.Start(t, t.TempDir(), 0, noting(`{"text":"x"}`), f)
			id := d.Session(t, nil)
			d.Turn(t, id, "go")
			got := ""
			if out := d.Result(t, id); out.Failure != nil {
				got = out.Failure.Code
			}
			if got != want {
				t.Errorf("with onError %q the call fails with %q, want %q", policy, got, want)
			}
		}
	})
	t.Run("reliability/P14 a crash loses only state that was not stored", func(t *testing.T) {
		f := begin(t, config(t, "hook/checkpoint:exit", everything()))
		s := session(t, "ses_1", f)
		add := func() {
			t.Helper()
			if _, err := s.Command(t.Context(), "notes.add", &plugin.OperationCall{Args: json.RawMessage(`{"n":1}`)}, plugin.Target{Current: true}); err != nil {
				t.Fatal(err)
			}
		}
		add()
		stored, err := s.Capture(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		add()
		if printOf(t, s) == stored.Fingerprint {
			t.Error("the fingerprint is that of what is stored, but there is more")
		}
		_, _ = s.Checkpoint(t.Context(), &plugin.CheckpointContext{View: &plugin.View{}})
		out, err := s.Query(t.Context(), "notes.list", &plugin.OperationCall{}, plugin.Target{Current: true})
		if err != nil || string(out) != `["{\"n\":1}"]` {
			t.Errorf("after the crash: %s, %v; want what was stored", out, err)
		}
		if printOf(t, s) != stored.Fingerprint {
			t.Error("the fingerprint is not that of what is stored, and there is nothing else")
		}
	})
	t.Run("issue/4-2 state too large for a message goes in pieces", func(t *testing.T) {
		c := config(t, "bulky", everything())
		c.Deadlines.State = patience
		f := begin(t, c)
		s := session(t, "ses_1", f)
		if err := turnHook(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		snap, err := s.Capture(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		artifacts := snap.Entries["notes"].Artifacts
		if len(artifacts) != 2 || artifacts[0].Name != "bulk" || string(artifacts[0].Data) != strings.Repeat("x", 3<<20) {
			t.Errorf("%d artifacts", len(artifacts))
		}
	})
	t.Run("plugin/SN-07 a plugin can reject a restored state", func(t *testing.T) {
		f := begin(t, config(t, "refuses", everything()))
		s := session(t, "ses_1", f)
		if err := turnHook(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		_, err := s.Restore(t.Context(), plugin.Snapshot{Entries: map[string]plugin.Entry{"notes": {Meta: plugin.Meta{State: json.RawMessage(`{"notes":["a"]}`)}}}})
		if err == nil || !strings.Contains(err.Error(), "cannot read that") {
			t.Errorf("restore: %v", err)
		}
	})
	t.Run("issue/4-2 two instances of one session do not share state", func(t *testing.T) {
		f := begin(t, config(t, "good", everything()))
		one, two := session(t, "ses_1", f), session(t, "ses_1", f)
		if _, err := one.Command(t.Context(), "notes.add", &plugin.OperationCall{Args: json.RawMessage(`{"n":1}`)}, plugin.Target{Current: true}); err != nil {
			t.Fatal(err)
		}
		out, err := two.Query(t.Context(), "notes.list", &plugin.OperationCall{}, plugin.Target{Current: true})
		if err != nil || string(out) != "null" {
			t.Errorf("the other has %s, %v", out, err)
		}
		out, err = one.Query(t.Context(), "notes.list", &plugin.OperationCall{}, plugin.Target{Current: true})
		if err != nil || string(out) != `["{\"n\":1}"]` {
			t.Errorf("the first has %s, %v", out, err)
		}
	})
}

func TestGrants(t *testing.T) {
	f := begin(t, config(t, "good", everything()))
	ask := func(t *testing.T, method, params string) string {
		t.Helper()
		args := fmt.Sprintf(`{"host":%q,"params":%s}`, method, params)
		d := builtintest.Start(t, t.TempDir(), 0, noting(args), f)
		defer d.Stop()
		id := d.Session(t, nil)
		d.Turn(t, id, "go")
		return d.Result(t, id).Text
	}
	t.Run("plugin/HC-02 a plugin can do what its call grants", func(t *testing.T) {
		if got := ask(t, "host/snapshotCurrent", `{}`); !strings.Contains(got, `"messages":`) || !strings.Contains(got, `"sessionId":"ses_`) {
			t.Errorf("snapshotCurrent: %.300s", got)
		}
		if got := ask(t, "host/toolCatalog", `{}`); !strings.Contains(got, `"name":"note"`) {
			t.Errorf("toolCatalog: %.300s", got)
		}
		if got := ask(t, "host/createSession", `{"session":{"start":{"kind":"empty"},"idempotencyKey":"k"}}`); !strings.Contains(got, `"sessionId":"ses_`) {
			t.Errorf("createSession: %.300s", got)
		}
		if got := ask(t, "host/artifactWrite", `{"type":"text/plain","data":"aGVsbG8="}`); !strings.Contains(got, `"artifact":{"digest":"2cf24dba`) {
			t.Errorf("artifactWrite: %.300s", got)
		}
		if got := ask(t, "host/emitTrace", `{"name":"x"}`); got != "{}" {
			t.Errorf("emitTrace: %.300s", got)
		}
	})
	t.Run("reliability/P14 3.4-28 and nothing else", func(t *testing.T) {
		for _, c := range []struct{ method, params, want string }{
			{"host/snapshotCurrent", `{"grant":""}`, `"kind":"denied"`},
			{"host/snapshotCurrent", `{"grant":"guessed"}`, `"kind":"denied"`},
			{"host/snapshotCurrent", `{"extra":1}`, `"kind":"invalidParams"`},
			{"host/appendNodes", `{"sessionId":"","nodes":[]}`, `"kind":"denied"`},
			{"host/taskStart", `{}`, `"kind":"invalidParams"`},
			{"host/monitorStart", `{}`, `"kind":"invalidParams"`},
			{"host/ask", `{}`, `"kind":"invalidParams"`},
			{"host/artifactRead", `{"name":"x"}`, `"kind":"denied"`},
			{"host/sudo", `{}`, "unknown method"},
		} {
			if got := ask(t, c.method, c.params); !strings.HasPrefix(got, "refused: ") || !strings.Contains(got, c.want) {
				t.Errorf("%s %s: %.300s, want %s", c.method, c.params, got, c.want)
			}
		}
	})
	t.Run("reliability/P14 3.4-28 a grant ends with its call", func(t *testing.T) {
		f := begin(t, config(t, "remembers", everything()))
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{"host":"host/snapshotCurrent"}`), f)
		id := d.Session(t, nil)
		d.Turn(t, id, "go")
		if got := d.Result(t, id).Text; !strings.Contains(got, `"kind":"denied"`) {
			t.Errorf("with the grant of a call before: %.300s", got)
		}
	})
}

func TestGrantOfAnother(t *testing.T) {
	t.Run("issue/4-8 reliability/T10 the grant of another plugin's running call is not valid", func(t *testing.T) {
		lent := filepath.Join(t.TempDir(), "grant")
		plugins := map[string]string{"note": "lends", "borrow": "borrows"}
		var factories []plugin.Factory
		var calls []scripted.Call
		for name, role := range plugins {
			c := config(t, role, process.Contributions{Tools: []tool.Tool{{Manifest: protocol.ToolManifest{Name: name, Description: "x"}}}})
			c.ID, c.Set["LENT"] = role, lent
			factories = append(factories, begin(t, c))
			calls = append(calls, scripted.Call{ID: protocol.CallID(role), Name: name, Args: json.RawMessage(`{"host":"host/snapshotCurrent"}`)})
		}
		both := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{ToolCalls: calls}, {Text: "done"}}}})
		d := builtintest.Start(t, t.TempDir(), 0, both, factories...)
		report := d.Turn(t, d.Session(t, nil), "go")
		said := map[string]string{}
		for _, call := range report.ToolCalls {
			said[call.Name] = call.Output.Text
		}
		if got := said["borrow"]; !strings.HasPrefix(got, "refused: ") || !strings.Contains(got, `"kind":"denied"`) {
			t.Errorf("the one that has borrowed it gets %.300q", got)
		}
		if got := said["note"]; !strings.Contains(got, `"messages":`) {
			t.Errorf("the one that it belongs to gets %.300q", got)
		}
	})
	t.Run("issue/4-8 a capability reaches existing sessions and names those that do not exist", func(t *testing.T) {
		f := begin(t, config(t, "good", everything()))
		d := builtintest.Start(t, t.TempDir(), 0, noting(`{"host":"host/snapshotSession","params":{"sessionId":"ses_none"}}`), f)
		id := d.Session(t, nil)
		d.Turn(t, id, "go")
		if got := d.Result(t, id).Text; !strings.HasPrefix(got, "refused: ") || !strings.Contains(got, `"kind":"denied"`) {
			t.Errorf("of a session that is not there: %.300q", got)
		}
	})
}

func TestLate(t *testing.T) {
	t.Run("reliability/P14 3.4-15 an answer to a cancelled or late call is dropped", func(t *testing.T) {
		c := config(t, "hook/beforeTurn:late", only(process.Hook{Name: process.BeforeTurn, Timeout: 300 * time.Millisecond}, process.Hook{Name: process.Checkpoint}))
		s := session(t, "ses_1", begin(t, c))
		checkpoint := func() error {
			_, err := s.Checkpoint(t.Context(), &plugin.CheckpointContext{View: &plugin.View{}})
			return err
		}
		if err := checkpoint(); err != nil { // it is started
			t.Fatal(err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			for range 10 { // so that progress arrives and the call does not count as hanging
				if err := checkpoint(); err != nil {
					t.Error(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
		})
		if err := turnHook(t.Context(), s); err == nil || !strings.Contains(err.Error(), "plugin_timeout") {
			t.Errorf("late: %v", err)
		}
		all.Wait()
		if err := checkpoint(); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// printOf is the fingerprint of a session.
func printOf(t testing.TB, s *plugin.Session) uint64 {
	t.Helper()
	sum, err := s.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
