package chat

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/turns"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Limits of what is shown after the conversation went back: the nodes that are read, and the lines of the last turn.
const (
	whereNodes = 100
	whereLines = 10
)

// whereMsg has what remains of the conversation.
type whereMsg struct {
	of   protocol.SessionID
	page protocol.SessionReadResult
	err  error
}

// readWhere returns a command that reads the end of the conversation, after it went back.
func readWhere(u *ui) tea.Cmd {
	m := whereMsg{of: u.talk.session.ID}
	return func() tea.Msg {
		m.err = u.session.Call(u.ctx, "session/read", protocol.SessionReadParams{SessionID: m.of, Limit: whereNodes}, &m.page)
		return m
	}
}

// showWhere prints where the conversation ends now. The turns that it lost stay above, in the scrollback.
func showWhere(u *ui, m whereMsg) {
	if m.of != u.talk.session.ID || m.err != nil {
		return // the note that it went back is there
	}
	var remain turns.List
	remain.Add(m.page.Data)
	n := len(remain)
	if n == 0 {
		u.paper.print(faint.Render("· The conversation is empty now."))
		return
	}
	which := "this turn"
	if m.page.NextCursor == "" {
		which = fmt.Sprintf("turn %d", n)
	}
	last := remain[n-1]
	lines := []string{faint.Render("· The conversation now ends after " + which + ":")}
	lines = append(lines, faint.Render("│ ")+mine.Render("› "+termtext.OneLine(last.Title(), max(u.width-6, 20))))
	var said []protocol.Item
	for _, item := range last.Items {
		if item.Kind != protocol.ItemUserMessage {
			said = append(said, item)
		}
	}
	if len(said) > 0 {
		for _, l := range lastMessages(said, u.style, max(u.width-4, 20), whereLines) {
			lines = append(lines, faint.Render("│ ")+l)
		}
	}
	u.paper.add(nil, lines...)
}
