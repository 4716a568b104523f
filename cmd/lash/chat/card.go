package chat

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/prompt"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// cardMode says what the keys do while a decision is open.
type cardMode int

const (
	cardChoosing  cardMode = iota // a key answers
	cardWriting                   // the input gets the keys: a message to the agent
	cardWidths                    // the keys choose what an answer covers
	cardEditing                   // the input has the arguments to run instead
	cardReasoning                 // the input has the reason of a denial, whole or in part
)

// card is the state of the open decision on the screen. The zero value is that of a
// decision that has just opened. It belongs to one decision, and is replaced when
// another one is shown.
type card struct {
	of     protocol.DecisionID
	since  time.Time // when it appeared
	mode   cardMode
	choice protocol.DecisionChoice // of cardWidths: allowSession or allowAlways
	width  int                     // of cardWidths: the entry under the cursor
	marks  hunkMarks
	top    int           // the first line shown
	draft  prompt.Editor // the input of the chat while the card uses one of its own
	edited string        // the last edited arguments, which the daemon may have refused
}

// lent reports whether the card has an input of its own.
func (c card) lent() bool { return c.mode == cardEditing || c.mode == cardReasoning }

// settle is the time in which a new card ignores its keys. A person who is typing
// when it appears writes into the input, and answers nothing.
const settle = 300 * time.Millisecond

// question is the open decision on the screen, with the state of its card and the
// chat around it.
type question struct {
	*card
	ui *ui
	d  *protocol.Decision
}

// question returns the decision to show, or nil. It is valid until the next event.
func (u *ui) question() *question {
	if d := u.talk.asked(); d != nil {
		return &question{&u.card, u, d}
	}
	return nil
}

// followCard makes u.card that of the open decision. If another client answered
// while the card used the input, the input gets its draft back.
func (u *ui) followCard() {
	var id protocol.DecisionID
	if d := u.talk.asked(); d != nil {
		id = d.ID
	}
	if u.card.of == id {
		return
	}
	if u.card.lent() {
		u.in = u.card.draft
	}
	u.card = card{of: id, since: time.Now(), marks: hunkMarks{left: map[int]bool{}}}
	if !u.in.Empty() {
		u.card.mode = cardWriting
	}
}

// byKey reports whether there is a question, and single keys answer it. If it accepts
// a text, the input has the answer instead.
func (q *question) byKey() bool {
	return q != nil && !slices.Contains(q.d.Choices, protocol.ChooseAnswer)
}

// view renders the card on at most room lines: what the call does scrolls. If even
// the keys do not fit beside one line of it, the reason is left out.
func (q *question) view(room int) []string {
	head, foot := q.head(), q.foot()
	if len(head)+len(foot)+2 > room {
		foot = q.keyLines()
	}
	lines := slices.Concat(head, q.window(max(room-len(head)-len(foot), 1)), foot)
	for i, l := range lines {
		lines[i] = asking.Render("┃ ") + l
	}
	return lines[:min(len(lines), max(room, 1))]
}

// inner is the width of a card without its border.
func (q *question) inner() int { return max(q.ui.width-2, 20) }

// head returns the question and the countdown.
func (q *question) head() []string {
	d, session := q.d, &q.ui.talk.session
	text := headline(d, session)
	if d.Kind != protocol.DecisionApproval {
		text = termtext.Printable(d.Prompt)
	}
	text = strong.Render(text)
	if leavesSandbox(d, session) {
		text = bad.Bold(true).Render(headline(d, session))
	}
	left := q.countdown()
	lines := strings.Split(fit(text, q.inner()), "\n")
	if space := q.inner() - lipgloss.Width(lines[0]) - lipgloss.Width(left); left != "" && space > 1 {
		lines[0] += strings.Repeat(" ", space) + left
	} else if left != "" {
		lines = append(lines, left)
	}
	return lines
}

// countdown says when the default answer applies, such as "denied in 9:41".
func (q *question) countdown() string {
	end, ok := q.ui.talk.ends[q.d.ID]
	if !ok {
		return ""
	}
	left := time.Until(end)
	style := faint
	if left < time.Minute {
		style = asking
	}
	return style.Render(defaults(q.d) + " in " + clock(left))
}

// defaults names the default answer of a decision.
func defaults(d *protocol.Decision) string {
	switch d.Default {
	case protocol.ChooseReject:
		return "denied"
	case protocol.ChooseAllowOnce:
		return "allowed"
	case protocol.ChooseTellModel:
		return "left to the model"
	}
	return "closes"
}

// clock formats a time left as minutes and seconds, such as "9:41".
func clock(left time.Duration) string {
	s := int(max(left, 0).Round(time.Second) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// body returns all lines between the head and the foot of a card.
func (q *question) body() []line {
	d := q.d
	if d.Kind != protocol.DecisionApproval {
		return append(argumentLines(d.Call, q.inner()), formLines(d, q.inner())...)
	}
	var marks *hunkMarks
	if Hunks(d) > 0 {
		marks = &q.marks
	}
	style := q.ui.style
	style.Width = q.inner()
	return approvalLines(d, &q.ui.talk.session, marks, style)
}

// formLines describes the answer that a question accepts.
func formLines(d *protocol.Decision, width int) []line {
	if len(d.Form) == 0 {
		return nil
	}
	return styled(faint.Render, plain("Answer format (JSON Schema): "+termtext.OneLine(termtext.Readable(d.Form), 400), width))
}

// window returns the part of the body that is on the screen, at most room lines. If
// that is not all, the last line says how many lines are above and below.
func (q *question) window(room int) (out []string) {
	all := q.body()
	from, to := 0, len(all)
	if len(all) > room {
		from = min(max(q.top, 0), len(all)-room+1)
		to = from + room - 1
		q.top = from // the keys scroll from here
	}
	for _, l := range all[from:to] {
		out = append(out, l.text)
	}
	if len(all) > room {
		out = append(out, asking.Render(q.hidden(from, len(all)-to)))
	}
	return out
}

// hidden says how many lines of the body are above and below the window.
func (q *question) hidden(above, below int) string {
	if text := fmt.Sprintf("  … %s not shown: %d above, %d below (PgUp, PgDn)", counted(above+below, "line"), above, below); ansi.StringWidth(text) <= q.inner() {
		return text
	}
	return fmt.Sprintf("  … %d above, %d below (PgUp, PgDn)", above, below)
}

// foot returns why lashd asks, and the keys.
func (q *question) foot() (lines []string) {
	d, talk := q.d, q.ui.talk
	if why := whyLine(d); why != "" {
		lines = append(lines, strings.Split(fit(faint.Render("  "+hang(why)), q.inner()), "\n")...)
	}
	if ofSubagent(d, &talk.session) {
		lines = append(lines, faint.Render("  A subagent asks."))
	}
	lines = append(lines, q.keyLines()...)
	if more := len(talk.decisions) - 1; more > 0 {
		lines = append(lines, faint.Render("  "+counted(more, "more question")))
	}
	return lines
}

// keyLines returns the lines that say what the keys do now.
func (q *question) keyLines() []string {
	switch {
	case !q.byKey():
		return strings.Split(fit(asking.Render(Offers(q.d)), q.inner()), "\n")
	case q.mode == cardWidths:
		return q.widthLines()
	case q.mode == cardEditing:
		return keyLines(q.inner(), "Enter", "Run with these changes", "Ctrl-G", "Open $EDITOR", "Esc", "Back")
	case q.mode == cardReasoning && q.choice == protocol.ChooseAllowOnce:
		return keyLines(q.inner(), "Enter", q.some()+"; the agent reads the reason for the rest", "Esc", "Back")
	case q.mode == cardReasoning:
		return keyLines(q.inner(), "Enter", "Deny; the agent reads the reason", "Esc", "Back")
	}
	return keyLines(q.inner(), q.offers()...)
}

// offers returns the keys of a decision, each followed by its meaning. With a hunk
// left out, only a single call can be allowed.
func (q *question) offers() (all []string) {
	d, hunks, left := q.d, Hunks(q.d), len(q.marks.left)
	for _, k := range keys {
		label := k.label
		switch {
		case !slices.Contains(d.Choices, k.choice):
			continue
		case k.choice == protocol.ChooseAllowOnce && left > 0 && left < hunks:
			label = q.some()
		case k.choice == protocol.ChooseAllowOnce && left > 0:
			continue
		case Lasting(k.choice) && left > 0:
			continue
		case k.choice == protocol.ChooseAllowSession:
			label = "Session…"
		case k.choice == protocol.ChooseAllowAlways:
			label = "Always…"
		}
		all = append(all, k.words[:1], label)
	}
	if q.partial() {
		all = append(all, "Y", "Allow these, say why")
	}
	if hunks > 0 {
		all = append(all, "Space", "Take or leave")
	}
	if Editable(d) {
		all = append(all, "e", "Edit")
	}
	if d.Kind == protocol.DecisionApproval && slices.Contains(d.Choices, protocol.ChooseReject) {
		all = append(all, "r", "Deny, say why")
	}
	if hidesChanges(d) {
		all = append(all, "v", "View arguments")
	}
	if q.ui.talk.turn != "" {
		all = append(all, "Esc", "Stop the turn")
	}
	return all
}

// some says which changes an answer allows.
func (q *question) some() string {
	return fmt.Sprintf("Allow %d of %d changes", len(q.taken()), Hunks(q.d))
}

// Editable reports whether the arguments of a decision's call can be edited. An edit
// of files is not: its hunks can be chosen instead.
func Editable(d *protocol.Decision) bool {
	return d.Detail != nil && d.Detail.Editable && d.Call != nil && len(d.Detail.Files) == 0
}

// keyLines renders pairs of a key and its meaning on as many lines as they need.
func keyLines(width int, pairs ...string) (lines []string) {
	at := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		text := asking.Bold(true).Render(pairs[i]) + " " + pairs[i+1]
		wide := lipgloss.Width(text)
		if len(lines) == 0 || at+3+wide > width {
			lines, at = append(lines, "  "+text), 2+wide
			continue
		}
		lines[len(lines)-1] += "   " + text
		at += 3 + wide
	}
	return lines
}
