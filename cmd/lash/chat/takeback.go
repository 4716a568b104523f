package chat

import (
	"encoding/json"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/rpc/protocol"
)

// takenMsg is the answer of the daemon to the request to remove a queued input.
type takenMsg struct {
	of     protocol.QueuedInput
	status protocol.CancelStatus
}

// newestQueued returns the newest queued input that can return to the prompt: one that
// a person sent, without settings that the prompt cannot show.
func newestQueued(queue []protocol.QueuedInput) (newest protocol.QueuedInput, ok bool) {
	for _, q := range queue {
		written := q.Source == "" && q.Wake == nil && inText(q.PluginInputs) && q.TurnOptions == nil && q.Schema == nil && q.Effort == ""
		if written && (!ok || q.AtMs >= newest.AtMs) {
			newest, ok = q, true
		}
	}
	return newest, ok
}

// inText reports whether the text of an input has all that it gives to plugins: at most resources of MCP servers.
func inText(inputs protocol.PluginInputs) bool {
	if len(inputs) == 0 {
		return true
	}
	var servers protocol.ServersInput
	err := json.Unmarshal(inputs[protocol.ServersID], &servers)
	return err == nil && len(inputs) == 1 && servers.Prompt == nil
}

// canTakeBack reports whether an input can return to the prompt.
func canTakeBack(u *ui) bool {
	_, ok := newestQueued(u.talk.queue)
	return !u.card.lent() && (ok || newestUnsent(u) >= 0)
}

// newestUnsent returns the index in u.unsent of the newest input that this chat has not tried to
// send, because there is no connection; -1: there is none.
func newestUnsent(u *ui) int {
	for i, o := range slices.Backward(u.unsent) {
		if o.method == "turn/start" {
			if o.tried {
				return -1 // the daemon may have it
			}
			return i
		}
	}
	return -1
}

// takeBack removes the newest input that no turn uses, so that the user can change it in the
// prompt. The daemon decides: an input that a turn uses at that moment stays sent. One input
// returns at a time. Without a connection, a queued input returns after the next one.
func takeBack(u *ui) tea.Cmd {
	if i := newestUnsent(u); i >= 0 {
		u.in.Prepend(u.unsent[i].draft)
		u.unsent = slices.Delete(slices.Clone(u.unsent), i, i+1)
		return nil
	}
	q, ok := newestQueued(u.talk.queue)
	if !ok || u.taking != "" {
		return nil
	}
	u.taking = q.ID
	if !steers(q) {
		u.talk.withdrawn[q.TurnID] = true
	}
	r := new(protocol.QueueCancelResult)
	return u.ask(&outgoing{
		method: "queue/cancel", params: protocol.QueueCancelParams{Mutation: key(), SessionID: u.talk.session.ID, InputID: q.ID}, result: r,
		done: func() tea.Msg { return takenMsg{q, statusOf(r, q.ID)} },
	})
}

// statusOf returns what became of an input.
func statusOf(r *protocol.QueueCancelResult, id protocol.InputID) protocol.CancelStatus {
	i := slices.IndexFunc(r.Data, func(c protocol.CancelledInput) bool { return c.InputID == id })
	if i < 0 {
		return protocol.CancelNotFound
	}
	return r.Data[i].Status
}

// taken puts an input that was removed from the queue into the prompt, above a text that the user has
// typed since.
func taken(u *ui, m takenMsg) tea.Cmd {
	u.taking = ""
	switch m.status {
	case protocol.CancelDone:
		u.in.Prepend(draftOf(u, m.of))
	case protocol.CancelAlreadyCancelled, protocol.CancelNotFound:
		return say("Another client removed that input from the queue.")
	default:
		return say("The agent has read that input already.")
	}
	return nil
}

// draftOf returns an input as it was typed here, or as it has to be typed to be sent again.
func draftOf(u *ui, q protocol.QueuedInput) prompt.Draft {
	if d, ok := u.drafts[q.ID]; ok {
		return d
	}
	text := inputText(q.Input)
	switch {
	case q.State == protocol.InputQueued && u.talk.turn != "":
		text = "/queue " + text
	case strings.HasPrefix(text, "/"):
		text = "/" + text
	}
	var files []*protocol.Attachment
	for _, p := range q.Input {
		if p.Attachment != nil {
			files = append(files, p.Attachment)
		}
	}
	return prompt.DraftWith(text, files)
}

// keepDraft remembers the line of an input that the daemon has accepted.
func keepDraft(u *ui, o *outgoing) {
	r, ok := o.result.(*protocol.TurnStartResult)
	if !ok {
		return
	}
	if u.drafts == nil {
		u.drafts = map[protocol.InputID]prompt.Draft{}
	}
	u.drafts[r.InputID] = o.draft
}
