package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"lashd/engine"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/trace"
	"lashd/rpc/protocol"
)

// traced opens a trace in a new file and returns a function that reads the records so far.
func traced(t *testing.T) (func(*engine.Config), func() ([]trace.Record, []byte)) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	file, err := trace.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	})
	read := func() ([]trace.Record, []byte) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var all []trace.Record
		lines := bufio.NewScanner(bytes.NewReader(data))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			var r trace.Record
			if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
				t.Fatalf("%s: %v", lines.Text(), err)
			}
			all = append(all, r)
		}
		if file.Lost() != 0 {
			t.Errorf("%d records lost", file.Lost())
		}
		return all, data
	}
	return func(c *engine.Config) { c.Trace = file }, read
}

func kinds(records []trace.Record) map[trace.Kind][]trace.Record {
	m := map[trace.Kind][]trace.Record{}
	for _, r := range records {
		m[r.Type] = append(m[r.Type], r)
	}
	return m
}

// each kind of trace record and a text that its body must contain
var wantKinds = []struct {
	kind  trace.Kind
	field string
}{
	{trace.SessionStarted, `"driver":"talking"`},
	{trace.TurnStarted, `"inputs":["inp_`},
	{trace.PromptBuilt, `"systemBytes":`},
	{trace.ModelStarted, `"kind":"model"`},
	{trace.ModelCompleted, `"stop":"toolUse"`},
	{trace.ModelFailed, `"error":"model call: `},
	{trace.ToolStarted, `"name":"look"`},
	{trace.ToolStarted, `"verdict":"ask","why":{"by":"mode"`}, // part11/3
	{trace.ToolCompleted, `"status":"success"`},
	{trace.EffectStarted, `"kind":"tools"`},
	{trace.EffectSettled, `"kind":"tools"`},
	{trace.WaitParked, `"kind":"approval"`},
	{trace.WaitResolved, `"choice":"allowOnce"`},
	{trace.ProtocolStep, `"effect":"model"`},
	{trace.TokenUsage, `"input":10`},
	{trace.TurnCompleted, `"outcome":"assistantMessage"`},
	{trace.Issue, `"code":"teapot"`},
	{trace.Custom, `driver.news`},
}

func TestTrace(t *testing.T) {
	keep, read := traced(t)
	look := says("look", "the secret word")
	d := start(t, setup{
		model: replies(calls("look"), scripted.Reply{Text: "done"}), tools: []tool.Provider{look}, driver: talking{},
		config: func(c *engine.Config) {
			asking(c)
			keep(c)
		},
	})
	id := d.session(t)
	o := d.observe(t, id)
	turn := d.begin(t, id, "go").TurnID
	asked := o.typed(protocol.EventDecisionOpened).Decision
	must[*protocol.DecisionRespondResult](t)(d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{
		DecisionID: asked.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: asked.ArgsHash,
	}))
	d.wait(t, turn)
	d = d.restart(t, func(s *setup) { s.model = replies(scripted.Reply{}, scripted.Reply{}) })
	d = d.restart(t, func(s *setup) {
		s.model = scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Error: &scripted.Failure{Kind: "http", Code: "teapot"}}}}})
	})
	d.turn(t, id, "again")
	records, data := read()
	found := kinds(records)
	for _, want := range wantKinds {
		t.Run("runtime/O01 "+string(want.kind), func(t *testing.T) {
			has := slices.ContainsFunc(found[want.kind], func(r trace.Record) bool { return bytes.Contains(r.Body, []byte(want.field)) })
			if !has {
				t.Errorf("%d records, none with %s", len(found[want.kind]), want.field)
			}
			for _, r := range found[want.kind] {
				if r.Version != trace.Version || r.SessionID != id || r.AtMs == 0 {
					t.Errorf("record %+v", r)
				}
			}
		})
	}
	t.Run("runtime/O01 a trace contains no text of the conversation", func(t *testing.T) {
		if bytes.Contains(data, []byte("the secret word")) {
			t.Error("the trace contains a tool result")
		}
	})
	t.Run("runtime/O01 records are numbered in order", func(t *testing.T) {
		for i, r := range records {
			if r.Number != int64(i+1) {
				t.Fatalf("record %d has number %d", i+1, r.Number)
			}
		}
	})
	t.Run("runtime/O01 fingerprints show which section of the prompt changed", func(t *testing.T) {
		var prints []map[string]any
		for _, r := range found[trace.PromptBuilt] {
			var body map[string]any
			if err := json.Unmarshal(r.Body, &body); err != nil {
				t.Fatal(err)
			}
			prints = append(prints, body)
		}
		a, b := prints[0], prints[1] // of the first turn
		if a["system"] != b["system"] || a["tools"] != b["tools"] || a["history"] != b["history"] || a["turn"] == b["turn"] {
			t.Errorf("first %v, second %v: only the turn's own messages should have moved", a, b)
		}
	})
	t.Run("runtime/O01 effect_envelope_diff names what differs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			keep, read := traced(t)
			work := toolFunc{name: "work", contract: protocol.ToolContract{Replay: protocol.ReplaySafe}, run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			}}
			d := start(t, setup{model: replies(calls("work")), tools: []tool.Provider{work}, config: keep})
			turn := d.begin(t, d.session(t), "go").TurnID
			synctest.Wait()
			d = d.restart(t, func(s *setup) { s.driver = stricter{} })
			d.wait(t, turn)
			records, _ := read()
			diffs := kinds(records)[trace.EffectDiff]
			if len(diffs) != 1 || !bytes.Contains(diffs[0].Body, []byte(`"diff":"choice, output"`)) {
				t.Errorf("diffs %+v", diffs)
			}
		})
	})
	t.Run("runtime/O01 store_error_observed", func(t *testing.T) {
		keep, read := traced(t)
		d := start(t, setup{model: replies(scripted.Reply{Text: strings.Repeat("x", 17<<20)}), config: keep})
		d.turn(t, d.session(t), "go")
		records, _ := read()
		if errs := kinds(records)[trace.StoreError]; len(errs) != 1 || !bytes.Contains(errs[0].Body, []byte("too large")) {
			t.Errorf("errors %+v", errs)
		}
	})
	t.Run("runtime/O01 a trace that cannot be written is counted, and fails nothing", func(t *testing.T) {
		trace, err := trace.Open(filepath.Join(t.TempDir(), "trace.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if err := trace.Close(); err != nil {
			t.Fatal(err)
		}
		d := start(t, setup{model: replies(scripted.Reply{Text: "done"}), config: func(c *engine.Config) { c.Trace = trace }})
		if report := d.turn(t, d.session(t), "go"); report.State != protocol.TurnCompleted || trace.Lost() < 5 {
			t.Errorf("state %s, %d records lost", report.State, trace.Lost())
		}
	})
}
