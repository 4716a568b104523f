package persistence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// Statements for tasks. nextTaskChange numbers the changes of all tasks together; it returns the
// new number.
const (
	nextTaskChange = `
INSERT INTO meta (name, value)
VALUES ('task_changes', '1')
ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(meta.value AS INTEGER) + 1 AS TEXT)
RETURNING CAST(value AS INTEGER)`
	taskOf     = "SELECT task, ended FROM tasks WHERE session = (SELECT session FROM sessions WHERE session_id = ?) AND task_id = ?"
	insertTask = `
INSERT INTO tasks (task, session, task_id, kind, external, hidden, ended, change, body)
VALUES (` + nextTask + `, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateTask      = "UPDATE tasks SET session = ?, ended = ?, change = ?, body = ? WHERE task = ?"
	insertTaskEvent = "INSERT INTO task_events (task, ordinal, key, body) VALUES (?, ?, ?, ?)"
	pruneTaskEvents = "DELETE FROM task_events WHERE task = ?"
	dropViewers     = "DELETE FROM task_viewers WHERE task = ?"
	insertViewer    = "INSERT INTO task_viewers (viewer, task) VALUES (?, ?) ON CONFLICT DO NOTHING"
)

// applyTasks stores the tasks of a commit with their new events.
func applyTasks(ctx context.Context, t *tx, c *change, h *head) error {
	for i := range c.Tasks {
		if err := applyTask(ctx, t, &c.Tasks[i], c.tasks[i], h); err != nil {
			return fmt.Errorf("task %s: %w", c.Tasks[i].Task.ID, err)
		}
	}
	return nil
}

// applyTask stores a task and its new events. A final task cannot change any more, except that it
// can be pruned.
func applyTask(ctx context.Context, t *tx, c *TaskChange, b taskBodies, h *head) error {
	var number int64
	if err := t.row(ctx, nextTaskChange, nil, &number); err != nil {
		return err
	}
	row, err := placeTask(ctx, t, c, b, h, number)
	if err != nil {
		return err
	}
	for i, e := range c.Events {
		if err := t.exec(ctx, insertTaskEvent, row, e.Ordinal, e.Key, b.events[i]); err != nil {
			return err
		}
	}
	if c.Task.Pruned {
		return t.exec(ctx, pruneTaskEvents, row)
	}
	return applyViewers(ctx, t, c, row)
}

// placeTask inserts or updates the row of a task and returns its number. The first event of a new
// task must be its creation. A task moves here from the session From if that is set; an id that
// this session already uses is ErrExists. number is the number of this change.
func placeTask(ctx context.Context, t *tx, c *TaskChange, b taskBodies, h *head, number int64) (row int64, err error) {
	owner := h.id
	if c.From != "" {
		owner = c.From
	}
	var ended bool
	err = t.row(ctx, taskOf, []any{owner, c.Task.ID}, &row, &ended)
	switch {
	case errors.Is(err, sql.ErrNoRows) && c.From == "" && len(c.Events) > 0 && c.Events[0].Kind == protocol.TaskWasCreated:
		res, err := t.run(ctx, insertTask, h.session, c.Task.ID, c.Task.Spec.Kind, elsewhere(&c.Task.Spec),
			c.Task.Spec.Hidden, c.Task.State.Final(), number, b.task)
		if err != nil {
			return 0, err
		}
		return res.LastInsertId()
	case errors.Is(err, sql.ErrNoRows):
		return 0, &NotFoundError{What: "task", ID: string(c.Task.ID)}
	case err != nil:
		return 0, err
	case len(c.Events) > 0 && c.Events[0].Kind == protocol.TaskWasCreated:
		return 0, ErrExists
	case ended && !c.Task.Pruned:
		return 0, fmt.Errorf("it has ended: %w", ErrFenced)
	}
	if c.From != "" {
		if err := t.row(ctx, taskOf, []any{h.id, c.Task.ID}, new(int64), new(bool)); !errors.Is(err, sql.ErrNoRows) {
			return 0, errors.Join(err, ErrExists)
		}
	}
	return row, t.exec(ctx, updateTask, h.session, c.Task.State.Final(), number, b.task, row)
}

// elsewhere reports whether a restart has nothing to do for a task, because it runs outside lashd.
// A detached command is different: lashd started it and looks for it.
func elsewhere(s *protocol.TaskSpec) bool {
	return s.Recovery == protocol.RecoverExternal && (s.Command == nil || !s.Command.Detach)
}

// applyViewers stores which sessions may see the task: the one that started it, and its observers.
// It does nothing unless an event may have changed that.
func applyViewers(ctx context.Context, t *tx, c *TaskChange, row int64) error {
	for _, e := range c.Events {
		switch e.Kind {
		case protocol.TaskLostObserver:
			if err := t.exec(ctx, dropViewers, row); err != nil {
				return err
			}
		case protocol.TaskWasCreated, protocol.TaskGotObserver, protocol.TaskWasTransferred:
		default:
			continue
		}
		for _, viewer := range append([]protocol.SessionID{c.Task.Origin.SessionID}, c.Task.Observers...) {
			if err := t.exec(ctx, insertViewer, viewer, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// TaskQuery selects tasks. Zero fields do not restrict the result, but Limit must be set.
type TaskQuery struct {
	Viewer protocol.SessionID // owner, origin or observer
	Owner  protocol.SessionID
	Kind   protocol.TaskKind
	Live   bool  // only tasks that have not ended
	Hidden bool  // also tasks that lists do not show
	After  int64 // only tasks changed after this change number; the page before ends with it
	Limit  int
}

// selectTasks selects tasks by a TaskQuery; empty parameters do not restrict it.
const selectTasks = `
SELECT t.body, t.change
FROM tasks t JOIN sessions s USING (session)
WHERE t.change > ?1
  AND (?2 = '' OR s.session_id = ?2 OR t.task IN (SELECT task FROM task_viewers WHERE viewer = ?2))
  AND (?3 = '' OR s.session_id = ?3)
  AND (?4 = '' OR t.kind = ?4)
  AND (NOT ?5 OR t.ended = 0)
  AND (?6 OR t.hidden = 0)
ORDER BY t.change
LIMIT ?7`

// Tasks reads tasks in the order of their last change. A reader that continues from the last Change
// number misses no task.
func (r *Reader) Tasks(ctx context.Context, q TaskQuery) ([]protocol.Task, error) {
	return list(ctx, r.pool, scanTask, selectTasks, q.After, q.Viewer, q.Owner, q.Kind, q.Live, q.Hidden, q.Limit)
}

// scanTask scans a row with the body and the change number of a task.
func scanTask(rows *sql.Rows, t *protocol.Task) error {
	var body []byte
	var number int64
	if err := rows.Scan(&body, &number); err != nil {
		return err
	}
	err := decode(body, t, "task")
	t.Change = number
	return err
}

// LiveTasks reads the tasks of a session that have not ended, hidden ones included, oldest first.
func (r *Reader) LiveTasks(ctx context.Context, session int64) ([]protocol.Task, error) {
	return list(ctx, r.pool, scanTask, "SELECT body, change FROM tasks WHERE session = ? AND ended = 0 ORDER BY task", session)
}

// Task reads one task that a session owns, or fails with ErrNotFound. For tasks that a session may
// only see, use VisibleTask.
func (r *Reader) Task(ctx context.Context, session protocol.SessionID, id protocol.TaskID) (protocol.Task, error) {
	found, err := list(ctx, r.pool, scanTask,
		"SELECT body, change FROM tasks WHERE session = (SELECT session FROM sessions WHERE session_id = ?) AND task_id = ?", session, id)
	if err != nil {
		return protocol.Task{}, err
	}
	if len(found) == 0 {
		return protocol.Task{}, &NotFoundError{What: "task", ID: string(id)}
	}
	return found[0], nil
}

// TaskEvents reads up to limit events of a task after the event with ordinal after, in order.
func (r *Reader) TaskEvents(ctx context.Context, session protocol.SessionID, id protocol.TaskID, after, limit int) ([]protocol.TaskEvent, error) {
	return list(ctx, r.pool, scanTaskEvent, `
SELECT e.body
FROM task_events e JOIN tasks t USING (task)
WHERE t.session = (SELECT session FROM sessions WHERE session_id = ?) AND t.task_id = ? AND e.ordinal > ?
ORDER BY e.ordinal
LIMIT ?`, session, id, after, limit)
}

// TaskEventOf returns the event of a task with this key, or nil. Keys make an event of a program
// unique.
func (r *Reader) TaskEventOf(ctx context.Context, session protocol.SessionID, id protocol.TaskID, key string) (*protocol.TaskEvent, error) {
	if key == "" {
		return nil, nil
	}
	found, err := list(ctx, r.pool, scanTaskEvent, `
SELECT e.body
FROM task_events e JOIN tasks t USING (task)
WHERE t.session = (SELECT session FROM sessions WHERE session_id = ?) AND t.task_id = ? AND e.key = ? AND e.key <> ''`, session, id, key)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

func scanTaskEvent(rows *sql.Rows, e *protocol.TaskEvent) error {
	var body []byte
	if err := rows.Scan(&body); err != nil {
		return err
	}
	return decode(body, e, "task event")
}

// SessionsWithTasks lists the sessions with a live task that lashd runs. A restart continues them.
func (r *Reader) SessionsWithTasks(ctx context.Context) ([]protocol.SessionID, error) {
	return list(ctx, r.pool, func(rows *sql.Rows, id *protocol.SessionID) error { return rows.Scan(id) }, `
SELECT DISTINCT s.session_id
FROM tasks t JOIN sessions s USING (session)
WHERE t.ended = 0 AND t.external = 0`)
}

// VisibleTask reads a task of another session that viewer may see, or fails with ErrNotFound. Task ids
// are unique only within a session; of several, the newest counts.
func (r *Reader) VisibleTask(ctx context.Context, viewer protocol.SessionID, id protocol.TaskID) (protocol.Task, error) {
	found, err := list(ctx, r.pool, scanTask, `
SELECT t.body, t.change
FROM task_viewers v JOIN tasks t USING (task)
WHERE v.viewer = ? AND t.task_id = ?
ORDER BY t.task DESC
LIMIT 1`, viewer, id)
	if err != nil {
		return protocol.Task{}, err
	}
	if len(found) == 0 {
		return protocol.Task{}, &NotFoundError{What: "task", ID: string(id)}
	}
	return found[0], nil
}
