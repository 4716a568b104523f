package e2e

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"lashd/rpc/protocol"
)

var seed = maphash.MakeSeed()

// held is a session of a user, and the requests made in it. Only its user touches it; its log is
// shared.
type held struct {
	*soak
	id       protocol.SessionID
	cwd      string
	number   int // number of the newest request
	turns    []protocol.TurnID
	tasks    []protocol.TaskID          // acknowledged tasks
	external []protocol.TaskID          // acknowledged external tasks that have not been completed
	told     map[protocol.TaskID]string // outcomes of those that have been completed
	long     []protocol.TaskID          // tasks that do not end by themselves
	watched  bool
	emitted  int

	mu   sync.Mutex
	sums []uint64 // checksums of the events, by sequence number from 1
}

func newHeld(s *soak, i int) *held {
	s.t.Helper()
	h := &held{soak: s, id: protocol.SessionID(fmt.Sprintf("ses_soak%d", i)), cwd: filepath.Join(s.work, fmt.Sprint(i)), told: map[protocol.TaskID]string{}}
	if err := os.Mkdir(h.cwd, 0o700); err != nil {
		s.t.Fatal(err)
	}
	return h
}

func (h *held) seq() protocol.Seq {
	h.mu.Lock()
	defer h.mu.Unlock()
	return protocol.Seq(len(h.sums))
}

func (h *held) hear(e told) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if want := protocol.Seq(len(h.sums) + 1); e.Seq != want {
		h.t.Errorf("reliability/I2 %s: received seq %d, want %d", h.id, e.Seq, want)
		return
	}
	h.sums = append(h.sums, maphash.String(seed, e.raw))
}

// check compares the log of the session with the events that were received.
func (h *held) check(all []told) {
	h.t.Helper()
	if err := gapless(all, 1); err != nil {
		h.t.Errorf("reliability/I2 %s: %v", h.id, err)
		return
	}
	for i, sum := range h.sums {
		if i >= len(all) || maphash.String(seed, all[i].raw) != sum {
			h.t.Errorf("reliability/I9 %s: seq %d differs from the event received before", h.id, i+1)
			return
		}
	}
	for _, id := range h.turns {
		if err := lifeOf(all, id); err != nil {
			h.t.Errorf("reliability/I3 %s: %v", h.id, err)
		}
	}
	for _, id := range h.tasks {
		if n := lives(all, id); n != [2]int{1, 1} {
			h.t.Errorf("issue/5-1 %s: task %s started and ended %v times", h.id, id, n)
		}
	}
}

// lives returns how often a log reports that a task started and that it ended.
func lives(all []told, id protocol.TaskID) (n [2]int) {
	for _, e := range all {
		switch {
		case e.Task == nil || e.Task.ID != id:
		case e.Type == protocol.EventTaskStarted:
			n[0]++
		case e.Type == protocol.EventTaskCompleted:
			n[1]++
		}
	}
	return n
}

// wants returns the next request of the user in the session.
func (h *held) wants(random *rand.Rand) *request {
	h.number++
	switch n := random.IntN(20); {
	case n < 6:
		return h.turn()
	case n < 10:
		return h.command(protocol.RecoverOwner, random.Float64()/2, random)
	case n < 13:
		return h.command(protocol.RecoverRerun, random.Float64()*4, random)
	case n < 15 && len(h.external) > 0:
		return h.complete()
	case n < 16:
		return h.elsewhere()
	case n < 17 && len(h.long) > 0:
		return h.cancel()
	case n < 17:
		return h.command(protocol.RecoverOwner, 1000, random)
	case n < 19:
		return h.watch()
	}
	return h.emit()
}

func (h *held) key() string { return fmt.Sprintf("%s-%d", h.id, h.number) }

func (h *held) mutation() protocol.Mutation { return protocol.Mutation{IdempotencyKey: h.key()} }

func (h *held) turn() *request {
	params := protocol.TurnStartParams{SessionID: h.id, Input: text(paced("echo " + h.key() + " >> ran")), Mutation: h.mutation()}
	r := &request{method: "turn/start", params: params}
	r.then = func(answer json.RawMessage) {
		var got protocol.TurnStartResult
		h.decode(answer, &got)
		h.turns = append(h.turns, got.TurnID)
	}
	return r
}

func (h *held) decode(answer json.RawMessage, into any) {
	if err := json.Unmarshal(answer, into); err != nil {
		h.t.Errorf("%s: %v", answer, err)
	}
}

// command starts a task that adds its name to a file each time it runs.
func (h *held) command(recovery protocol.TaskRecovery, seconds float64, random *rand.Rand) *request {
	id := protocol.TaskID("tsk_" + h.key())
	spec := protocol.TaskSpec{Kind: protocol.TaskCommand, Recovery: recovery, Command: &protocol.TaskShell{
		Script: fmt.Sprintf("echo %s >> ran; sleep %.2f", id, seconds), Env: map[string]string{"LASHD_E2E_SOAK": h.dir},
	}}
	if recovery == protocol.RecoverRerun {
		spec.MaxAttempts = 1 + random.IntN(4)
	}
	if random.IntN(3) == 0 {
		spec.Ended = &protocol.TaskWake{Merge: "ended"}
	}
	if seconds > 10 {
		return h.starts(id, spec, &h.long)
	}
	return h.starts(id, spec)
}

func (h *held) elsewhere() *request {
	return h.starts(protocol.TaskID("tsk_"+h.key()), protocol.TaskSpec{
		Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Ended: &protocol.TaskWake{},
	}, &h.external)
}

func (h *held) starts(id protocol.TaskID, spec protocol.TaskSpec, also ...*[]protocol.TaskID) *request {
	params := protocol.TaskStartParams{SessionID: h.id, TaskID: id, Spec: spec, Mutation: h.mutation()}
	return &request{method: "task/start", params: params, then: func(json.RawMessage) {
		for _, list := range append(also, &h.tasks) {
			*list = append(*list, id)
		}
	}}
}

// complete completes the oldest task that runs elsewhere.
func (h *held) complete() *request {
	id, value := h.external[0], h.key()
	params := protocol.TaskCompleteParams{Mutation: h.mutation(), TaskParams: protocol.TaskParams{SessionID: h.id, TaskID: id}}
	params.Outcome = protocol.TaskOutcome{Kind: protocol.TaskDone, Value: json.RawMessage(`"` + value + `"`)}
	h.external = h.external[1:]
	h.told[id] = string(params.Outcome.Value)
	return &request{method: "task/complete", params: params}
}

func (h *held) cancel() *request {
	id := h.long[0]
	h.long = h.long[1:]
	params := protocol.TaskCancelParams{Mutation: h.mutation(), TaskParams: protocol.TaskParams{SessionID: h.id, TaskID: id}, Reason: "enough"}
	return &request{method: "task/cancel", params: params, may: protocol.KindTaskEnded}
}

// watch starts the monitor of the session, or gives it a line to report.
func (h *held) watch() *request {
	if !h.watched {
		spec := protocol.MonitorSpec{
			ID: "log", Command: "touch app.log; exec tail -n 0 -F app.log", Persistent: true, Restart: len(h.id)%2 == 0,
			Env: map[string]string{"LASHD_E2E_SOAK": h.dir},
		}
		return &request{method: "monitor/start", params: protocol.MonitorStartParams{SessionID: h.id, Spec: spec, Mutation: h.mutation()}, then: func(json.RawMessage) { h.watched = true }}
	}
	f, err := os.OpenFile(filepath.Join(h.cwd, "app.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintf(f, "%s one\n%s two\n", h.key(), h.key())
		f.Close()
	}
	if err != nil {
		h.t.Error(err)
	}
	return &request{method: "monitor/updates", params: protocol.SessionParams{SessionID: h.id}}
}

func (h *held) emit() *request {
	params := protocol.TriggerEmitParams{Mutation: h.mutation(), Type: protocol.TypeManualEmitted, SourceKey: string(h.id), OccurrenceKey: h.key()}
	return &request{method: "trigger/emit", params: params, then: func(json.RawMessage) { h.emitted++ }}
}

// settle ends the work in the session. Work that ends by itself gets time for that.
func (h *held) settle(p *peer) error {
	of := protocol.TaskListParams{SessionID: h.id, Live: true, Limit: 1000}
	if _, err := try[protocol.TriggerResult](p, "trigger/delete", protocol.TriggerDeleteParams{Key: string(h.id)}); err != nil {
		return err
	}
	if h.watched {
		if _, err := try[protocol.MonitorResult](p, "monitor/stop", protocol.MonitorStopParams{SessionID: h.id, MonitorID: "log"}); err != nil {
			return err
		}
	}
	for len(h.external) > 0 {
		h.number++
		r := h.complete()
		if _, err := try[protocol.TaskResult](p, r.method, r.params); err != nil {
			return err
		}
	}
	for _, id := range h.long {
		params := protocol.TaskCancelParams{TaskParams: protocol.TaskParams{SessionID: h.id, TaskID: id}}
		if _, err := try[protocol.TaskResult](p, "task/cancel", params); err != nil {
			if _, kind := refusal(err); kind != protocol.KindTaskEnded {
				return err
			}
		}
	}
	for {
		live, err := try[protocol.TaskListResult](p, "task/list", of)
		if err != nil {
			return err
		}
		if len(live.Data) == 0 {
			break
		}
		if _, err := try[protocol.TaskWaitResult](p, "task/wait", protocol.TaskWaitParams{SessionID: h.id, TaskIDs: []protocol.TaskID{live.Data[0].ID}}); err != nil {
			return fmt.Errorf("%+v: %w", live.Data[0], err)
		}
	}
	_, err := try[protocol.SessionWaitResult](p, "session/wait", protocol.SessionWaitParams{SessionID: h.id})
	return err
}
