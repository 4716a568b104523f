package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// contracts returns each acknowledged task whose outcome breaks its recovery contract, or that ran too
// often.
func (s *soak) contracts() error {
	ran := map[string]int{}
	for _, key := range s.ran() {
		ran[key]++
	}
	stored := map[protocol.TaskID]protocol.Task{}
	bodies, err := column[string](s.db, "SELECT CAST(body AS TEXT) FROM tasks")
	wakes, err2 := s.wakes()
	found := []error{err, err2}
	for _, body := range bodies {
		var t protocol.Task
		if err := json.Unmarshal([]byte(body), &t); err != nil {
			return err
		}
		stored[t.ID] = t
		found = append(found, s.kept(&t, ran[string(t.ID)]), woke(&t, wakes))
	}
	delivered, err3 := s.counted(`
		SELECT json_extract(CAST(occurrences.body AS TEXT), '$.sourceKey') FROM occurrences JOIN deliveries USING (occurrence) WHERE state = 'delivered'`)
	woken, err4 := s.counted(`
		SELECT session_id FROM inputs JOIN sessions USING (session)
		WHERE source LIKE 'trigger:%' AND json_extract(CAST(body AS TEXT), '$.wake.cause.type') = 'trigger'`)
	found = append(found, err3, err4)
	for _, u := range s.users {
		for _, h := range u.held {
			found = append(found, h.contracts(stored, ran, delivered, woken))
		}
	}
	return errors.Join(found...)
}

// completed returns turns that did not complete: a kill must not fail any.
func (s *soak) completed() error {
	others, err := column[string](s.db, "SELECT turn_id || ' ' || CAST(report AS TEXT) FROM turns WHERE state <> 'completed'")
	if err != nil || len(others) > 0 {
		return fmt.Errorf("I3: %d turns did not complete, such as %.500s, %v", len(others), strings.Join(others, " "), err)
	}
	return nil
}

// counted returns how often a query finds each name.
func (s *soak) counted(query string) (map[string]int, error) {
	names, err := column[string](s.db, query)
	n := map[string]int{}
	for _, name := range names {
		n[name]++
	}
	return n, err
}

// kept checks a task that has ended and ran so many times.
func (s *soak) kept(t *protocol.Task, runs int) error {
	wrong := func(why string) error {
		return fmt.Errorf("issue/5-1 task %s, %s, began %d times and ran %d times; it ended as %+v: %s", t.ID, t.Spec.Recovery, t.Attempt, runs, t.Outcome, why)
	}
	limit := max(t.Spec.MaxAttempts, 1)
	switch o := t.Outcome; {
	case o == nil:
		return wrong("it has not ended")
	case runs > t.Attempt || t.Attempt > limit:
		return wrong("too often")
	case t.Spec.Recovery == protocol.RecoverExternal && (o.Kind != protocol.TaskDone || t.Attempt > 0):
		return wrong("no client completed it")
	case o.Kind == protocol.TaskExited && (*o.ExitCode != 0 || runs == 0 || t.EndedAtMs == 0):
		return wrong("it cannot have")
	case o.Kind == protocol.TaskStopped && !strings.HasPrefix(o.By, "user"):
		return wrong("no client cancelled it")
	case o.Kind == protocol.TaskLost && t.Spec.Recovery == protocol.RecoverOwner && (o.Evidence.Writer != protocol.WriterSweep || !s.dead[o.Evidence.Incarnation]):
		return wrong("its daemon was not killed")
	case o.Kind == protocol.TaskLost && t.Spec.Recovery == protocol.RecoverRerun && (o.Evidence.Writer != protocol.WriterExhausted || t.Attempt != limit):
		return wrong("it could have been begun again")
	case o.Kind != protocol.TaskDone && o.Kind != protocol.TaskExited && o.Kind != protocol.TaskStopped && o.Kind != protocol.TaskLost:
		return wrong("no command ends so")
	}
	return nil
}

// wakes are the states of the inputs that ends and events of tasks have caused, by session and task.
func (s *soak) wakes() (map[string][]string, error) {
	all, err := column[string](s.db, "SELECT session_id || ' ' || source || ' ' || state FROM inputs JOIN sessions USING (session) WHERE source LIKE 'task:%:event:%'")
	found := map[string][]string{}
	for _, one := range all {
		id, rest, _ := strings.Cut(one, ":event:")
		_, state, _ := strings.Cut(rest, " ")
		found[id] = append(found[id], state)
	}
	return found, err
}

// woke reports a task whose end should have caused one turn and did not.
func woke(t *protocol.Task, wakes map[string][]string) error {
	states := wakes[fmt.Sprintf("%s task:%s", t.SessionID, t.ID)]
	if t.Spec.Ended == nil || len(states) == 1 && states[0] == "completed" {
		return nil
	}
	return fmt.Errorf("runtime/B06 the end of task %s caused the wakes %q", t.ID, states)
}

// contracts returns everything in the session's tasks, turns and events that differs from what was
// acknowledged.
func (h *held) contracts(stored map[protocol.TaskID]protocol.Task, ran, delivered, woken map[string]int) error {
	var found []error
	for _, id := range h.tasks {
		t, ok := stored[id]
		if want := h.told[id]; !ok || want != "" && (t.Outcome == nil || string(t.Outcome.Value) != want) {
			found = append(found, fmt.Errorf("issue/5-1 the acknowledged task %s is %s, %s; want %q", id, t.State, t.Spec.Recovery, want))
		}
	}
	for n := range h.number + 1 {
		if key := fmt.Sprintf("%s-%d", h.id, n); ran[key] > 1 {
			found = append(found, fmt.Errorf("I4: the command of %s ran %d times", key, ran[key]))
		}
	}
	if id := string(h.id); delivered[id] != h.emitted || woken[id] != h.emitted {
		found = append(found, fmt.Errorf("runtime/B14 %s: %d events, %d delivered, %d wakes", h.id, h.emitted, delivered[id], woken[id]))
	}
	return errors.Join(found...)
}

func (s *soak) report(end protocol.DiagnosticsResult) {
	acked, unsure, turns, tasks, events := 0, 0, 0, 0, 0
	for _, u := range s.users {
		acked, unsure = acked+u.acked, unsure+u.unsure
		for _, h := range u.held {
			turns, tasks, events = turns+len(h.turns), tasks+len(h.tasks), events+len(h.sums)
		}
	}
	outcomes, err := column[string](s.db, `
		SELECT kind || ' ' || json_extract(CAST(body AS TEXT), '$.spec.recovery') || ' ' || json_extract(CAST(body AS TEXT), '$.state') || ' ' || count(*)
		FROM tasks GROUP BY kind, json_extract(CAST(body AS TEXT), '$.spec.recovery'), json_extract(CAST(body AS TEXT), '$.state')`)
	s.t.Logf("issue/5 %d daemons of %v, %d sessions, %d edits; acknowledged: %d requests, %d of them again after a kill, %d turns, %d tasks; "+
		"turns of all causes: %d; durable events: %d; tasks: %q %v", s.lives, s.life, s.sessions, s.edits, acked, unsure, turns, tasks,
		number(s.t, s.db, "SELECT count(*) FROM turns"), events, outcomes, err)
	s.t.Logf("goroutines, open files, children at the start %v, at the end %v; resident at the start %d MiB, at the end %d MiB, of these heap %d and %d; database %d MiB; "+
		"slowest restart with all that was to be given up %v, all work ended in %v, at rest after %v more",
		figures(s.base), figures(end), s.base.RSSBytes>>20, end.RSSBytes>>20, s.base.HeapBytes>>20, end.HeapBytes>>20, end.DBBytes>>20, s.slowest, s.settled, s.rested)
	if turns == 0 || tasks == 0 || len(s.dead) == 0 {
		s.t.Error("nothing was acknowledged")
	}
}
