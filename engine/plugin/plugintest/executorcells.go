package plugintest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// describes checks that the description is the same in each process and each time, and names the tools.
func (k *executorKit) describes(t *testing.T) {
	b := k.open(t)
	about := b.describe() // it rejects a language that cannot be a tag
	if again, other := b.describe(), k.open(t).describe(); again != about || other != about {
		t.Errorf("the description differs from one call to the next: %+v, %+v, %+v", about, again, other)
	}
	for _, m := range b.host.Tools() {
		if !strings.Contains(about.Guide, m.Name) {
			t.Errorf("the guide does not name the tool %s: %s", m.Name, about.Guide)
		}
	}
}

// replies checks what a cell prints, its value, and the place of an error. The cell after it works.
func (k *executorKit) replies(t *testing.T) {
	b := k.open(t)
	if r := b.wants(k.Sources.Print, "4"); r.Printed != "hello\n" || r.Position != nil {
		t.Errorf("it printed %q, with the position %+v; want the line hello and no position", r.Printed, r.Position)
	}
	if r := b.execute(k.Sources.Fail); r.Error == "" || r.Position == nil || r.Position.Line != 3 || r.Value != nil {
		t.Errorf("%s\nreplies %+v, want an error with a position in line 3", k.Sources.Fail, r)
	}
	b.wants(k.Sources.Half, "5")
}

// calls checks that calls reach lashd one by one, with their arguments and in order, and that their outputs are values.
func (k *executorKit) calls(t *testing.T) {
	b := k.open(t)
	b.wants(k.Sources.Call, `["a","b","c"]`)
	b.requested(`echo{"text":"a"}`, `echo{"text":"b"}`, `echo{"text":"c"}`)
}

// requested checks the requests of the cells so far.
func (b *bench) requested(want ...string) {
	b.t.Helper()
	if got := b.host.asked(); !slices.Equal(got, want) {
		b.t.Errorf("the requests are %q, want %q", got, want)
	}
}

// callsTogether checks that parallel calls are one batch, whose outputs keep their order.
func (k *executorKit) callsTogether(t *testing.T) {
	if k.Sources.Parallel == "" {
		return
	}
	b := k.open(t)
	b.wants(k.Sources.Parallel, `["a","b","c"]`)
	b.requested(`echo{"text":"a"}echo{"text":"b"}echo{"text":"c"}`)
}

// seesFailure checks that a tool that fails does not fail the cell.
func (k *executorKit) seesFailure(t *testing.T) { k.open(t).wants(k.Sources.Failing, "false") }

// loops checks a cell with 1,000 calls, each of which is a request of its own. The time of requests must not count as time of the cell.
func (k *executorKit) loops(t *testing.T) {
	b := k.open(t)
	b.wants(k.Sources.Loop, "1000")
	want := make([]string, 1000)
	for i := range want {
		want[i] = fmt.Sprintf(`echo{"text":"%d"}`, i)
	}
	b.requested(want...)
}

// controls checks the three ways in which a cell ends its turn. A frame has the same key when its cell runs again.
func (k *executorKit) controls(t *testing.T) {
	b := k.open(t)
	for source, want := range map[string]protocol.ToolControl{
		k.Sources.Finish: {Kind: protocol.ControlFinish, Value: json.RawMessage("7")},
		k.Sources.Submit: {Kind: protocol.ControlFail, Value: json.RawMessage(`"no data"`)},
	} {
		if r := b.succeeds(source); r.Control == nil || r.Control.Kind != want.Kind || compact(r.Control.Value) != string(want.Value) {
			t.Errorf("%s\nreplies %+v, want the control %s with %s", source, r.Control, want.Kind, want.Value)
		}
	}
	keys := map[string]bool{}
	for range 2 {
		r := b.succeeds(k.Sources.ContinueAs)
		if r.Control == nil || r.Control.Kind != protocol.ControlSwitchFrame || !r.Control.Frame.Meant() || r.Control.Frame.Task != "more" ||
			!strings.Contains(string(encoded(r.Control.Frame.Nodes)), "seed") {
			t.Fatalf("%s\nreplies %s, want a switch to a frame with a key, the task more and the seed", k.Sources.ContinueAs, encoded(r.Control))
		}
		keys[r.Control.Frame.Key] = true
	}
	if len(keys) != 1 {
		t.Errorf("the key of the frame differs when the cell runs again: %v", keys)
	}
}

// encoded returns a value as JSON.
func encoded(v any) []byte {
	data, _ := json.Marshal(v) // values of the protocol always encode
	return data
}

// declines checks that a cell without AcceptFinish cannot finish or fail the turn.
func (k *executorKit) declines(t *testing.T) {
	b := k.open(t)
	for _, source := range []string{k.Sources.Finish, k.Sources.Submit} {
		b.refuses(plugin.CodeCall{Source: source})
	}
	b.succeeds(k.Sources.Set)
}

// refuses checks that a cell fails and does not end the turn.
func (b *bench) refuses(call plugin.CodeCall) {
	b.t.Helper()
	if r := b.run(call); r.Error == "" || r.Control != nil {
		b.t.Errorf("%s\nreplies the control %s and the error %q, want only an error", call.Source, encoded(r.Control), r.Error)
	}
}

// validates checks that finish compares its value with the schema. The model reads the error and repairs the value in another cell.
func (k *executorKit) validates(t *testing.T) {
	b, schema := k.open(t), json.RawMessage(`{"type":"integer"}`)
	b.refuses(plugin.CodeCall{Source: k.Sources.Mismatch, AcceptFinish: true, Schema: schema})
	if r := b.run(plugin.CodeCall{Source: k.Sources.Finish, AcceptFinish: true, Schema: schema}); r.Control == nil || r.Error != "" {
		t.Errorf("%s\nreplies %+v, although 7 matches the schema %s", k.Sources.Finish, r, schema)
	}
}

// readsHistory checks that a cell sees the conversation and cannot change or replace it. A change may be an error or have no effect; an
// assignment must be an error, because it would hide the conversation from later cells.
func (k *executorKit) readsHistory(t *testing.T) {
	b := k.open(t)
	b.wants(k.Sources.History, `["user","assistant"]`)
	if r := b.execute(k.Sources.ChangeHistory); r.Error == "" && compact(r.Value) != "2" {
		t.Errorf("%s\nhas the value %s: the cell changed the conversation", k.Sources.ChangeHistory, r.Value)
	}
	if r := b.execute(k.Sources.SetHistory); r.Error == "" {
		t.Errorf("%s\nis not an error", k.Sources.SetHistory)
	}
	b.wants(k.Sources.History, `["user","assistant"]`)
}

// replays runs a cell in two processes with the same globals. The second one gets the results of the requests of the first, and
// must make the same requests and have the same result. Only executors that are repeated after a crash are checked.
func (k *executorKit) replays(t *testing.T) {
	first, second := k.open(t), k.open(t)
	if !first.ReplaysCells() {
		return
	}
	first.succeeds(k.Sources.Set)
	if err := second.RestoreExecution(t.Context(), first.captured().AppliedTo(nil)); err != nil {
		t.Fatal(err)
	}
	one := first.execute(k.Sources.Ambient)
	if made := first.host.asked(); one.Error != "" || len(made) != 3 || made[0] != "now" || made[1] != "random" || !strings.HasPrefix(made[2], "echo") {
		t.Fatalf("%s\nmakes the requests %q, with the error %q; want now, random and a call of echo", k.Sources.Ambient, made, one.Error)
	}
	second.host.recorded = first.host.requests
	two := second.execute(k.Sources.Ambient)
	if second.host.refused != nil || result(one) != result(two) {
		t.Errorf("the second run differs: %v\nfirst %s\nthen %s", second.host.refused, result(one), result(two))
	}
}

// result returns a reply as text.
func result(r turn.CellReply) string {
	return fmt.Sprintf("%q %s %q", r.Printed, compact(r.Value), r.Error)
}
