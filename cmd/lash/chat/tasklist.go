package chat

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// tasks lists the running tasks, or cancels one or all of them.
func tasks(u *ui, rest string) tea.Cmd {
	word, which, _ := strings.Cut(rest, " ")
	switch which = strings.TrimSpace(which); {
	case word == "":
		return listTasks(u)
	case word == "cancel" && which == "all":
		p := protocol.TaskCancelAllParams{Mutation: key(), SessionID: u.talk.session.ID, Reason: stopReason}
		return u.ask(&outgoing{method: "task/cancelAll", params: p, done: say("All background tasks are being cancelled.")})
	case word == "cancel" && which != "":
		return cancelTask(u, which)
	}
	return say("Usage: /tasks, or /tasks cancel ID, or /tasks cancel all")
}

// cancelTask cancels the running task whose id begins with a text.
func cancelTask(u *ui, text string) tea.Cmd {
	ids := make([]protocol.TaskID, 0, len(u.talk.tasks))
	for _, t := range u.talk.tasks {
		ids = append(ids, t.ID)
	}
	id, err := theOne(text, "running task", ids)
	if err != nil {
		return say("%v; /tasks lists them.", err)
	}
	p := protocol.TaskCancelParams{Mutation: key(), Reason: stopReason}
	p.TaskID = id
	return u.ask(&outgoing{method: "task/cancel", params: p, done: say("Task %s is being cancelled.", shortID(string(id)))})
}

// listTasks lists the running tasks, with how long each has run.
func listTasks(u *ui) tea.Cmd {
	return read(u, "task/list", protocol.TaskListParams{SessionID: u.talk.session.ID}, func(r *protocol.TaskListResult) string {
		var lines []string
		for _, t := range r.Data {
			if !t.State.Final() {
				lines = append(lines, fmt.Sprintf("  %s  %s%s  %s", shortID(string(t.ID)), t.State, took(t, time.Now()), termtext.OneLine(taskName(t), 80)))
			}
		}
		if len(lines) == 0 {
			return "No background tasks."
		}
		return strings.Join(append([]string{"Background tasks; /tasks cancel ID cancels one:"}, lines...), "\n")
	})
}
