package turn

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// TestReplay runs one turn on three machines at once. The first runs undisturbed. The second is written and read back
// after every step and also gets stale and duplicated answers. The third is rebuilt from the answers so far, as
// after a crash, at random times. All three must ask for exactly the same effects.
func TestReplay(t *testing.T) {
	t.Run("runtime/T02 runtime/T03 runtime/Q04 restored, disturbed and replayed turns are the same turn", func(t *testing.T) {
		rounds := 1
		if os.Getenv("LASHD_LONG") != "" {
			rounds = 5
		}
		for range rounds {
			rapid.Check(t, func(t *rapid.T) { newTrial(t).run() })
		}
	})
}

// move is one action of the interpreter on a machine. Its answer is kept as JSON, as in a journal.
type move struct {
	at     int // number of effects before it
	id     uint64
	answer []byte
	cancel *protocol.CancelEvidence
	part   *provider.Reply
	fail   *protocol.Issue
}

type trial struct {
	*rapid.T
	driver  Driver
	cfg     Config
	plain   *Machine
	patched *Machine
	trace   []Effect // as the plain machine gave them, not copied
	texts   []string // their JSON when they were given
	moves   []move
}

func newTrial(t *rapid.T) *trial {
	cfg := Config{
		Input: messages(t, "input"),
		Budget: protocol.Budget{
			Iterations: pick(t, "iterations", []int{-1, -1, -1, 1, 2, 5, 30}),
			NoProgress: pick(t, "noProgress", []int{0, 0, 0, 0, 1, 3}),
		},
		Schema:     pick(t, "schema", []json.RawMessage{nil, nil, json.RawMessage(` { "type" : "<b>" } `)}),
		Generation: protocol.GenerationOptions{Stop: pick(t, "stop", [][]string{nil, {}, {"<stop>\xff"}})},
	}
	d := oddDriver{limit: pick(t, "limit", []int{0, 1, 2, 3, 4}), cut: rapid.Bool().Draw(t, "handles cut replies")}
	x := &trial{T: t, driver: d, cfg: cfg, plain: New(d, cfg), patched: New(d, cfg)}
	return x
}

const mostSteps = 120

func (x *trial) run() {
	for steps := 0; ; steps++ {
		x.patched = restore(x, x.patched)
		if chance(x.T, 4, "replay") {
			x.replay()
		}
		e, ok := x.next()
		if !ok {
			break
		}
		switch {
		case steps > mostSteps || chance(x.T, 6, "stop"):
			x.stop()
		case e.Waits():
			x.disturb(e.ID)
			x.answer(e)
			x.disturb(e.ID)
		}
	}
	x.replay()
	x.checkEnd()
}

// next takes the next effect from both machines and compares them.
func (x *trial) next() (Effect, bool) {
	e, ok := x.plain.Next()
	other, otherOK := x.patched.Next()
	text := encoded(x.T, e)
	if ok != otherOK || !reflect.DeepEqual(e, other) || text != encoded(x.T, other) {
		x.Fatalf("step %d: the effects differ: %s", len(x.trace), cmp.Diff(e, other))
	}
	if ok {
		x.trace, x.texts = append(x.trace, e), append(x.texts, text)
	}
	return e, ok
}

// do makes a move on both machines. The plain one gets the answer itself, the other one the journal's copy.
func (x *trial) do(mv move, live Response) {
	mv.at = len(x.trace)
	x.moves = append(x.moves, mv)
	if mv.answer != nil {
		before := fmt.Sprintf("%#v", live)
		x.plain.Deliver(mv.id, live)
		if after := fmt.Sprintf("%#v", live); after != before {
			x.Fatalf("step %d: the machine changed an answer", len(x.trace))
		}
	} else {
		mv.apply(x.Fatalf, x.plain)
	}
	mv.apply(x.Fatalf, x.patched)
}

func (mv move) apply(fatalf func(string, ...any), m *Machine) {
	switch {
	case mv.cancel != nil:
		m.Cancel(*mv.cancel, mv.part)
	case mv.fail != nil:
		m.Fail(protocol.OutcomeRuntimeError, *mv.fail)
	default:
		var r Response
		if err := json.Unmarshal(mv.answer, &r); err != nil {
			fatalf("journal: %v", err)
		}
		m.Deliver(mv.id, r)
	}
}

// disturb gives the patched machine answers to other effects, and appends to the slices that it returns.
func (x *trial) disturb(id uint64) {
	for range pick(x.T, "disturbances", []int{0, 1, 2}) {
		wrong := rapid.Uint64Range(0, id+3).Draw(x.T, "stale id")
		waiting := uint64(0)
		if a := x.patched.s.Active; a != nil {
			waiting = a.ID
		}
		if wrong == waiting {
			continue
		}
		if n := len(x.moves); n > 0 && rapid.Bool().Draw(x.T, "duplicate") {
			if mv := x.moves[rapid.IntRange(0, n-1).Draw(x.T, "which")]; mv.answer != nil && mv.id != waiting {
				mv.apply(x.Fatalf, x.patched)
			}
		}
		x.patched.Deliver(wrong, draw(x.T, pick(x.T, "stale kind", []EffectKind{
			EffectSync, EffectModel, EffectTools, EffectCode, EffectCheckpoint,
		}), nil))
	}
	spoil(x.plain.Messages(), protocol.Message{Role: "junk"})
	r := x.plain.Result()
	spoil(r.Issues, protocol.Issue{Code: "junk"})
	spoil(r.ToolCalls, protocol.ToolCallRecord{Name: "junk"})
	spoil(r.Calls, protocol.CallRecord{Model: "junk"})
}

func (x *trial) stop() {
	if rapid.Bool().Draw(x.T, "cancel") {
		mv := move{cancel: &protocol.CancelEvidence{RequestID: "r", Reason: text(x.T)}}
		if rapid.Bool().Draw(x.T, "partial") {
			mv.part = &draw(x.T, EffectModel, nil).Model.Reply
		}
		x.do(mv, Response{})
		return
	}
	x.do(move{fail: &protocol.Issue{Kind: "runtime", Code: "c", Message: text(x.T)}}, Response{})
}

func (x *trial) answer(e Effect) {
	live := draw(x.T, e.Kind, &e)
	// A journal holds only answers that can be encoded; invalid raw values reach only a running machine.
	answer, err := json.Marshal(live)
	if err != nil {
		if e.Kind == EffectCheckpoint || e.Kind == EffectSync || e.Kind == EffectCode {
			x.Fatalf("the test draws a %s answer that is no JSON: %v", e.Kind, err)
		}
		x.plain.Deliver(e.ID, live)
		x.patched.Deliver(e.ID, live)
		x.moves = append(x.moves, move{at: len(x.trace), id: e.ID, answer: repaired(x, e, live)})
		return
	}
	x.do(move{id: e.ID, answer: answer}, live)
}

// repaired returns the journal's form of an answer with invalid JSON: the machine's conversion of it.
func repaired(x *trial, e Effect, live Response) []byte {
	r, err := x.plain.received(&e, live)
	if err != nil {
		x.Fatal(err)
	}
	return []byte(encoded(x.T, r))
}

// replay runs the turn again from its moves and compares all effects.
func (x *trial) replay() {
	m := New(x.driver, x.cfg)
	moves := x.moves
	for i, want := range x.texts {
		e, ok := m.Next()
		if got := encoded(x.T, e); !ok || got != want {
			x.Fatalf("replayed effect %d: %s", i, cmp.Diff(want, got))
		}
		if len(moves) > 0 && moves[0].at == i+1 {
			moves[0].apply(x.Fatalf, m)
			moves = moves[1:]
		}
	}
	if !reflect.DeepEqual(m.s, x.plain.s) {
		x.Fatalf("the replayed machine differs: %s", cmp.Diff(x.plain.s, m.s))
	}
	x.patched = restore(x, m)
}

func (x *trial) checkEnd() {
	for i, e := range x.trace {
		if got := encoded(x.T, e); got != x.texts[i] {
			x.Fatalf("effect %d changed after it was given: %s", i, cmp.Diff(x.texts[i], got))
		}
		if !utf8.ValidString(x.texts[i]) {
			x.Fatalf("effect %d is not UTF-8: %q", i, x.texts[i])
		}
		if (e.Kind == EffectDone) != (i == len(x.trace)-1) {
			x.Fatalf("done is not once and last: %v", kinds(x.trace))
		}
	}
	r := x.plain.Result()
	if r.Outcome == nil || !x.plain.Finished() {
		x.Fatal("there is no outcome")
	}
	if err := resumable(r.Messages); err != nil {
		x.Fatalf("%v in %q", err, texts(r.Messages))
	}
	x.checkIDs()
	for i, m := range r.Messages {
		if m.Role == "junk" {
			x.Fatalf("message %d is a caller's", i)
		}
	}
}

// checkIDs checks that waiting effects are counted without gaps and that each iteration is synced once, first.
func (x *trial) checkIDs() {
	last, synced := uint64(0), 0
	asked := map[int]int{}
	for _, e := range x.trace {
		if !e.Waits() {
			continue
		}
		if e.ID != last+1 {
			x.Fatalf("effect %d comes after %d", e.ID, last)
		}
		last = e.ID
		if e.Kind == EffectSync {
			synced++
		}
		if e.Iteration != synced {
			x.Fatalf("effect %d is of iteration %d after %d syncs", e.ID, e.Iteration, synced)
		}
		if e.Kind == EffectModel {
			asked[e.Iteration]++
		}
	}
	for i, n := range asked {
		if n != 1 {
			x.Fatalf("iteration %d has %d model calls", i, n)
		}
	}
	if limit := x.cfg.Budget.Iterations; limit > 0 && synced > limit+1 {
		x.Fatalf("%d iterations, at most %d and a grace", synced, limit)
	}
}
