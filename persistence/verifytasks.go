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
func (s *Store) VerifyTasks(ctx context.Context, fold Fold) (problems []string, err error) {
	for after := int64(0); ; {
		page, err := s.Tasks(ctx, TaskQuery{Hidden: true, After: after, Limit: eventPage})
		if err != nil || len(page) == 0 {
			return problems, err
		}
		for _, t := range page {
			after = t.Change
			problem, err := s.verifyTask(ctx, fold, t)
			if err != nil {
				return problems, err
			}
			if problem != "" {
				problems = append(problems, fmt.Sprintf("session %s: task %s: %s", t.SessionID, t.ID, problem))
			}
		}
	}
}

// verifyTask compares a task with the events up to it: later ones may come meanwhile.
func (s *Store) verifyTask(ctx context.Context, fold Fold, t protocol.Task) (problem string, err error) {
	if t.Pruned {
		return "", nil
	}
	events, err := s.TaskEvents(ctx, t.SessionID, t.ID, 0, t.Ordinal)
	if err != nil {
		return "", err
	}
	folded, err := fold(t.ID, events)
	if err == nil {
		folded.Change, t.Change = 0, 0
		if bytes.Equal(encoded(folded), encoded(t)) {
			return "", nil
		}
		err = fmt.Errorf("it is not what its %d events come to", len(events))
	}
	now, gone := s.Task(ctx, t.SessionID, t.ID)
	if gone != nil || now.Pruned || now.SessionID != t.SessionID {
		return "", nil // deleted, pruned or given away meanwhile
	}
	return err.Error(), nil
}

func encoded(t protocol.Task) []byte {
	body, err := json.Marshal(t)
	if err != nil {
		return []byte(err.Error())
	}
	return body
}
