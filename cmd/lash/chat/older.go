package chat

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/rpc/protocol"
)

// olderPage is the number of nodes of the history that the transcript reads at once.
const olderPage = 500

// olderMsg has a page of the history from before the chat attached to the session.
type olderMsg struct {
	of   protocol.SessionID
	page protocol.SessionReadResult
	err  error
}

// readOlder returns a command that reads the next older page of the history, if there is one.
func readOlder(u *ui) tea.Cmd {
	if u.talk.older == "" || u.talk.reading {
		return nil
	}
	u.talk.reading = true
	m := olderMsg{of: u.talk.session.ID}
	p := protocol.SessionReadParams{SessionID: m.of, Cursor: u.talk.older, Limit: olderPage}
	return func() tea.Msg {
		m.err = u.session.Call(u.ctx, "session/read", p, &m.page)
		return m
	}
}

// tookOlder takes a page of the history, and reads on while the transcript is on the screen.
func tookOlder(u *ui, m olderMsg) tea.Cmd {
	if m.of != u.talk.session.ID {
		return nil
	}
	u.talk.reading = false
	if m.err != nil {
		return say("The earlier messages could not be read: %v", m.err)
	}
	u.talk.precede(m.page.Data)
	u.talk.older = m.page.NextCursor
	if _, open := u.over.(*pager); !open {
		return nil
	}
	return readOlder(u)
}

// precede puts items from before the attach in front of the finished entries, unless they are there.
func (t *transcript) precede(items []protocol.Item) {
	var page []entry
	for i := range items {
		item := &items[i]
		if t.ended[item.ID] || item.Status == protocol.ItemInProgress {
			continue
		}
		t.ended[item.ID] = true
		if item.Kind == protocol.ItemUserMessage && item.Text == "" && item.Attachment != nil {
			item = &protocol.Item{Kind: item.Kind, Text: prompt.Named(item.Attachment)}
		}
		page = append(page, entry{item: item})
	}
	t.finished = slices.Concat(page, t.finished)
	t.preceded += len(page)
}
