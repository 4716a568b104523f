package persistence

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// Fold computes a task from its events. The engine provides it, since this package does not know
// what events mean.
type Fold func(protocol.TaskID, []protocol.TaskEvent) (protocol.Task, error)

// VerifyTasks compares each stored task with the fold of its events, and describes those that
// differ. It reads while the writer continues.
func (r *Reader) VerifyTasks(ctx context.Context, fold Fold) (problems []string, err error) {
	for after := int64(0); ; {
		page, err := r.Tasks(ctx, TaskQuery{Hidden: true, After: after, Limit: eventPage})
		if err != nil || len(page) == 0 {
			return problems, err
		}
		for _, t := range page {
			after = t.Change
			problem, err := verifyTask(ctx, r, fold, t)
			if err != nil {
				return problems, err
			}
			if problem != "" {
				problems = append(problems, fmt.Sprintf("session %s: task %s: %s", t.SessionID, t.ID, problem))
			}
		}
	}
}

// verifyTask compares a task with the fold of its events. problem is empty if they match, or if the
// task has changed in between. A pruned task has no events to compare with.
func verifyTask(ctx context.Context, db *Reader, fold Fold, t protocol.Task) (problem string, err error) {
	if t.Pruned {
		return "", nil
	}
	events, err := db.TaskEvents(ctx, t.SessionID, t.ID, 0, t.Ordinal+1)
	if err != nil {
		return "", err
	}
	folded, err := fold(t.ID, events[:min(len(events), t.Ordinal)])
	number := t.Change
	folded.Change, t.Change = 0, 0
	if err == nil && len(events) == t.Ordinal && bytes.Equal(encoded(folded), encoded(t)) {
		return "", nil
	}
	now, gone := db.Task(ctx, t.SessionID, t.ID)
	if gone != nil || now.Change != number {
		return "", nil // moved or deleted, or changed: then a later page has it again
	}
	return fmt.Sprintf("it differs from the result of its %d events", len(events)), nil
}

// encoded returns the JSON of a task for comparison.
func encoded(t protocol.Task) []byte {
	body, err := json.Marshal(t)
	if err != nil {
		return []byte(err.Error())
	}
	return body
}
