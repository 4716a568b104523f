package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// taskLine renders the running tasks on one line, with how long each has run. Names are
// cut so that as many as possible fit.
func taskLine(tasks []protocol.Task, width, room int) []string {
	if len(tasks) == 0 || room < 1 {
		return nil
	}
	var all []string
	for _, t := range tasks {
		all = append(all, termtext.OneLine(taskName(t), 30)+took(t, time.Now()))
	}
	line := fmt.Sprintf("%d running: %s", len(tasks), strings.Join(all, ", "))
	return []string{faint.Render("  " + termtext.OneLine(line, max(width-3, 20)))}
}

// taskName returns what a task is called, or else what it runs.
func taskName(t protocol.Task) string {
	if t.Spec.Command != nil {
		return cmp.Or(t.Spec.Label, t.Spec.Command.Script)
	}
	return cmp.Or(t.Spec.Label, string(t.Spec.Kind))
}

// took says how long a task has run, such as " 3:12"; "" if it has not begun.
func took(t protocol.Task, now time.Time) string {
	if t.StartedAtMs == 0 {
		return ""
	}
	return " " + clock(now.Sub(time.UnixMilli(t.StartedAtMs)))
}

// without returns the running tasks without one.
func (t *transcript) without(id protocol.TaskID) []protocol.Task {
	return slices.DeleteFunc(t.tasks, func(task protocol.Task) bool { return task.ID == id })
}

// changed replaces a running task by its newer state.
func (t *transcript) changed(task *protocol.Task) {
	for i := range t.tasks {
		if task != nil && t.tasks[i].ID == task.ID {
			t.tasks[i] = *task
		}
	}
}
