package persistence

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"lashd/rpc/protocol"
)

// Fold is the task that events come to.
type Fold func(protocol.TaskID, []protocol.TaskEvent) (protocol.Task, error)

// VerifyTasks tells which tasks are not what their events come to. It reads while others write.
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

// verifyTask compares a task with the events up to it. Later ones may come meanwhile, but then it is another one, too.
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
		return "", nil // changed meanwhile, given away or deleted: who is changed is looked at again
	}
	return fmt.Sprintf("it is not what its %d events come to", len(events)), nil
}

func encoded(t protocol.Task) []byte {
	body, err := json.Marshal(t)
	if err != nil {
		return []byte(err.Error())
	}
	return body
}
