package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// taskRules hold for tasks at any time. Each query finds the rows that break one.
var taskRules = []struct{ invariant, query string }{
	{"B1: ended tasks without an outcome", "SELECT task_id FROM tasks WHERE ended = 1 AND json_extract(CAST(body AS TEXT), '$.outcome.kind') IS NULL"},
	{"B1: outcomes of running tasks", "SELECT task_id FROM tasks WHERE ended = 0 AND json_extract(CAST(body AS TEXT), '$.outcome') IS NOT NULL"},
	{"B1: states that differ from the rows", "SELECT task_id FROM tasks WHERE ended <> (json_extract(CAST(body AS TEXT), '$.state') IN ('completed', 'failed', 'cancelled', 'abandoned'))"},
	{"B1: tasks in another session than their body says", "SELECT task_id FROM tasks JOIN sessions USING (session) WHERE session_id <> json_extract(CAST(body AS TEXT), '$.sessionId')"},
	{"B1: abandoned tasks without evidence", "SELECT task_id FROM tasks WHERE json_extract(CAST(body AS TEXT), '$.state') = 'abandoned' AND json_extract(CAST(body AS TEXT), '$.outcome.evidence.reason') IS NULL"},
	{"B7: who started a task and does not see it", "SELECT task_id FROM tasks WHERE NOT EXISTS (SELECT 1 FROM task_viewers v WHERE v.task = tasks.task AND viewer = json_extract(CAST(body AS TEXT), '$.origin.sessionId'))"},
	{"B7: who sees a task and is none of its observers", `
		SELECT viewer FROM task_viewers v JOIN tasks t USING (task)
		WHERE viewer <> json_extract(CAST(t.body AS TEXT), '$.origin.sessionId')
		  AND viewer NOT IN (SELECT value FROM json_each(CAST(t.body AS TEXT), '$.observers'))`},
}

// over reports tasks that have not ended, for a time when none may be running.
func over(db database) error {
	live, err := column[string](db, "SELECT task_id FROM tasks WHERE ended = 0")
	if err != nil || len(live) > 0 {
		return fmt.Errorf("B1: tasks that have not ended: %v, %v", live, err)
	}
	return nil
}

// ownerless reports running tasks that are bound to one of these dead daemons.
func ownerless(db database, dead map[string]bool) error {
	all, err := column[string](db, `
		SELECT task_id || ' ' || json_extract(CAST(body AS TEXT), '$.incarnation') FROM tasks
		WHERE ended = 0 AND json_extract(CAST(body AS TEXT), '$.spec.recovery') = 'ownerBound' AND json_extract(CAST(body AS TEXT), '$.attempt') > 0`)
	found := []error{err}
	for _, one := range all {
		if id, incarnation, _ := strings.Cut(one, " "); dead[incarnation] {
			found = append(found, fmt.Errorf("B2: task %s is running although its daemon has died", id))
		}
	}
	return errors.Join(found...)
}

// folded is the part of a task that its events determine.
type folded struct {
	SessionID   string          `json:"sessionId"`
	State       string          `json:"state"`
	Attempt     int             `json:"attempt"`
	Ordinal     int             `json:"ordinal"`
	Incarnation string          `json:"incarnation"`
	Waiting     string          `json:"waiting"`
	Outcome     json.RawMessage `json:"outcome"`
	Pruned      bool            `json:"pruned"`
}

// happened is a stored event of a task.
type happened struct {
	Ordinal     int    `json:"ordinal"`
	Kind        string `json:"kind"`
	SessionID   string `json:"sessionId"`
	Incarnation string `json:"incarnation"`
	Reason      string `json:"reason"`
	Spec        struct {
		Recovery string `json:"recovery"`
	} `json:"spec"`
	Outcome json.RawMessage `json:"outcome"`
}

// tasks compares each task with its events and checks the related rows.
func (i *inspection) tasks() error {
	var found []error
	for _, r := range taskRules {
		ids, err := column[string](i.db, r.query)
		if err != nil || len(ids) > 0 {
			found = append(found, fmt.Errorf("%s: %v, %v", r.invariant, ids, err))
		}
	}
	rows, err := i.db.QueryContext(context.Background(), `
		SELECT t.task_id, t.body, (SELECT '[' || group_concat(CAST(e.body AS TEXT), ',' ORDER BY e.ordinal) || ']' FROM task_events e WHERE e.task = t.task)
		FROM tasks t`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		found = append(found, sameTask(rows))
	}
	return errors.Join(append(found, rows.Err())...)
}

// sameTask compares the task of a row with its events.
func sameTask(rows *sql.Rows) error {
	var id string
	var body, list []byte
	if err := rows.Scan(&id, &body, &list); err != nil {
		return err
	}
	var is folded
	var events []happened
	if err := json.Unmarshal(body, &is); err != nil || is.Pruned {
		return err
	}
	if err := json.Unmarshal(list, &events); err != nil {
		return fmt.Errorf("B1: task %s: its events: %w", id, err)
	}
	want := folded{}
	var recovery string
	cancelled := false
	for n, e := range events {
		if e.Ordinal != n+1 {
			return fmt.Errorf("B1: task %s: event %d has number %d", id, n+1, e.Ordinal)
		}
		recovery, cancelled = recovery+e.Spec.Recovery, cancelled || e.Kind == "cancelRequested"
		want.after(e, recovery, cancelled)
	}
	if got := is.text(); got != want.text() {
		return fmt.Errorf("B1: task %s is %s, but its events lead to %s", id, got, want.text())
	}
	return nil
}

func (f folded) text() string {
	return fmt.Sprintf("%s in %s, attempt %d in %q, event %d, waits %q, %s", f.State, f.SessionID, f.Attempt, f.Incarnation, f.Ordinal, f.Waiting, f.Outcome)
}

// after returns a task after an event, in this order and for these columns only.
func (f *folded) after(e happened, recovery string, cancelled bool) {
	f.Ordinal = e.Ordinal
	switch e.Kind {
	case "created":
		f.SessionID, f.State = e.SessionID, map[bool]string{true: "running", false: "pending"}[recovery == "external"]
	case "started":
		f.Attempt, f.Incarnation, f.State, f.Waiting = f.Attempt+1, e.Incarnation, "running", ""
	case "waiting":
		f.State, f.Waiting = "idle", e.Reason
	case "resumed":
		f.State, f.Waiting = "running", ""
	case "cancelRequested":
		f.State, f.Waiting = "cancelRequested", ""
	case "transferred":
		f.SessionID = e.SessionID
	case "ended":
		f.State, f.Waiting, f.Outcome = ending(e.Outcome), "", e.Outcome
		return
	}
	if cancelled && f.State == "running" {
		f.State = "cancelRequested"
	}
}

// ending is the state that an outcome leads to.
func ending(raw json.RawMessage) string {
	var o struct {
		Kind     string `json:"kind"`
		By       string `json:"by"`
		ExitCode *int   `json:"exitCode"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return "no outcome"
	}
	switch {
	case o.Kind == "completed", o.Kind == "exited" && o.ExitCode != nil && *o.ExitCode == 0:
		return "completed"
	case o.Kind == "stopped" && o.By != "internal:timeLimit":
		return "cancelled"
	case o.Kind == "abandoned":
		return "abandoned"
	}
	return "failed"
}
