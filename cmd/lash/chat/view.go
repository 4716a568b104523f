package chat

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/screen"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Draw implements screen.Model. It commits what is finished. From top to bottom, the
// live area shows the unfinished items, the open decision, the queue, the status line
// and the input.
func (u *ui) Draw(s *screen.Screen) {
	if u.reader != nil {
		u.reader.draw(u, s)
		return
	}
	s.Commit(u.paper.take()...)
	s.Send(u.notice.sequence())
	if u.over != nil {
		s.Full(overlayScreen(u))
		return
	}
	s.Live(live(u))
}

// room is the number of lines of the live area. A decision may have two thirds of
// the screen, because the agent waits for it and nothing else grows.
func room(u *ui) int {
	if u.form == nil && u.talk.asked() == nil {
		return max(min(12, u.height/3), 3)
	}
	return max(min(u.height-1, 12), u.height*2/3)
}

// growing is the number of lines that unfinished items may have. The fewer lines
// there are, the narrower the terminal can become without moving one of them to the
// scrollback, where it would stay.
func growing(u *ui) int { return max(min(8, u.height/4), 3) }

// live returns the lines of the live area, and the column and line of the cursor.
func live(u *ui) (lines []string, x, y int) {
	if u.form != nil {
		return keyForm(u)
	}
	room, q := room(u), u.question()
	in, x, y := inputLines(u, q, max(1, room/3))
	var below []string
	if room > 8 || q == nil && (room > 4 || !u.openMenu().Open()) {
		below = append(below, u.status())
	}
	if offer := refusalLine(u.talk.refused, u.width); offer != "" && q == nil {
		below = slices.Concat(strings.Split(offer, "\n"), below)
	}
	queued := u.queued()
	below = append(queued[:min(len(queued), max(room-len(in)-len(below)-1, 0))], below...)
	if free := room - len(in) - len(below) - 3; q == nil {
		below = slices.Concat(u.talk.plan.lines(u.width, free-1, u.talk.turn != ""), taskLine(u.talk.tasks, u.width, free), below)
	}
	if q != nil {
		below = slices.Concat(q.view(room-len(in)-len(below)), below)
	}
	menu := u.menuLines(u.width, min(menuLines, room-len(in)-len(below)))
	lines = slices.Concat(above(u, min(room-len(in)-len(below)-len(menu), growing(u))), below)
	if resting(u, q) {
		x = -1
	}
	return slices.Concat(lines, in, menu), x, len(lines) + y
}

// above returns the unfinished items, on at most room lines, apart from what is in the
// scrollback by an empty line.
func above(u *ui, room int) []string {
	items := u.moving(max(room, 0))
	if u.paper.continued(u.talk.open) && len(items) > 0 || !u.paper.used || len(items) >= room {
		return items
	}
	return append([]string{""}, items...)
}

// resting reports whether the agent works and the input is empty. The screen is then exact at any moment, because
// the cursor waits in its first cell; the input shows one of its own.
func resting(u *ui, q *question) bool {
	return u.talk.turn != "" && q == nil && u.search == nil && u.in.Empty()
}

// inputLines returns at most room lines of the input, with its sign or the hint, and the
// place of the cursor.
func inputLines(u *ui, q *question, room int) (lines []string, x, y int) {
	if u.search != nil {
		return u.search.lines(u.width)
	}
	lines, x, y = u.in.View(max(u.width-2, 10), room)
	for i, l := range lines {
		lines[i] = "  " + l
	}
	lines[0] = mine.Render(signs[u.card.mode]) + lines[0][2:]
	if hint := ansi.Truncate(u.hint(q), max(u.width-2, 10), "…"); resting(u, q) {
		lines[0] += faint.Reverse(true).Render(hint[:1]) + faint.Render(hint[1:])
	} else if u.in.Empty() {
		lines[0] += faint.Render(hint)
	}
	return lines, x + 2, y
}

// keyForm shows the form in the place of the input and of an open decision.
func keyForm(u *ui) (lines []string, x, y int) {
	form, x, y := u.form.lines(u.width)
	if over := len(form) - room(u) + 1; over > 0 {
		from := min(over, y)
		form, y = form[from:from+room(u)-1], y-from
	}
	return append([]string{u.status()}, form...), x, y + 1
}

// signs mark what the input is for: a message, what to run instead, or a reason.
var signs = map[cardMode]string{cardChoosing: "› ", cardWriting: "› ", cardWidths: "› ", cardEditing: "$ ", cardReasoning: "! "}

// hint returns the placeholder of the empty input.
func (u *ui) hint(q *question) string {
	switch {
	case u.leaving:
		return "Press Ctrl-C again to quit. The session keeps running."
	case u.escaped:
		return "Press Esc again to list the turns."
	case u.lacking:
		return "/login stores an API key; Enter tries again"
	case q != nil && u.card.mode == cardReasoning:
		return "Why not? What should the agent do instead?"
	case q != nil && u.card.mode == cardWidths:
		return "Enter allows what is marked; Esc goes back"
	case q.byKey() && u.card.mode != cardWriting:
		return "Press a key from above, or Tab to write to the agent"
	case q.byKey():
		return "Write to the agent… (Esc returns to the question)"
	case q != nil:
		return "Enter a letter from above, or your answer"
	case u.talk.turn != "" && canTakeBack(u):
		return "Steer the turn… (Up edits the newest queued input)"
	case u.talk.turn != "":
		return "Steer the turn… (/queue adds a turn, Esc stops)"
	}
	return "Ask lashd to do something… (/help lists commands)"
}

// moving renders the unfinished items, cut to the last room lines. The call of the
// open decision is left out, because the decision shows it.
func (u *ui) moving(room int) (lines []string) {
	d := u.talk.asked()
	for _, item := range u.talk.open {
		if d != nil && d.Call != nil && d.Call.CallID == item.CallID {
			continue
		}
		lines = append(lines, u.unfinished(item)...)
	}
	return lines[max(0, len(lines)-room):]
}

// unfinished renders an item that has not ended: text as far as it has streamed,
// the end of the reasoning, or a call with its newest progress line.
func (u *ui) unfinished(item *protocol.Item) []string {
	switch item.Kind {
	case protocol.ItemAgentMessage:
		return u.paper.tail(item, u.width)
	case protocol.ItemReasoning:
		return []string{faint.Render("  thinking: " + termtext.OneLine(last(item.Text, 120), max(u.width-16, 20)))}
	case protocol.ItemCodeCell:
		return strings.Split(growingCell(item, u.style), "\n")
	case protocol.ItemToolCall:
		status := item.Status
		if u.talk.asks(item.CallID) {
			status = "" // it does not run yet
		}
		lines := []string{asking.Render("▸ ") + callLine(item, status, u.width)}
		if p := u.talk.progress[item.CallID]; p != "" {
			lines = append(lines, faint.Render("  "+termtext.OneLine(p, max(u.width-2, 20))))
		}
		return lines
	}
	return []string{faint.Render("· " + termtext.OneLine(item.Text, max(u.width-2, 20)))}
}

// broken breaks a line after width columns, as terminals do. Styles continue on the
// next row.
func broken(line string, width int) []string {
	var out strings.Builder
	w := lipgloss.NewWrapWriter(&out)
	_, _ = io.WriteString(w, ansi.Hardwrap(line, width, true)) // to memory
	_ = w.Close()
	return strings.Split(out.String(), "\n")
}

// last returns the last n characters of text.
func last(text string, n int) string {
	if r := []rune(text); len(r) > n {
		return string(r[len(r)-n:])
	}
	return text
}

// queuedLines is the number of queued inputs to show.
const queuedLines = 3

// queued renders the queued inputs, and the inputs that have not reached the daemon.
func (u *ui) queued() (lines []string) {
	for i, q := range u.talk.queue {
		if i == queuedLines {
			lines = append(lines, faint.Render(fmt.Sprintf("  … %d more queued", len(u.talk.queue)-i)))
			break
		}
		label := "queued"
		if steers(q) {
			label = "steering"
		}
		lines = append(lines, faint.Render("  "+label+": "+termtext.OneLine(inputText(q.Input), u.width-10)))
	}
	for _, o := range u.unsent {
		if text := o.draft.Text(); text != "" && (!u.connected || o.method == "turn/start" && !o.tried) {
			lines = append(lines, faint.Render("  not sent yet: "+termtext.OneLine(text, u.width-16)))
		}
	}
	return lines
}

// status renders the status line: state, model, a driver other than standard, sandbox, context window, cost and tokens,
// and title. If it is too long, its last parts are left out.
func (u *ui) status() string {
	var parts []string
	switch {
	case u.lacking:
		parts = append(parts, asking.Render("no model is set up"))
	case !u.connected:
		parts = append(parts, asking.Render("connecting"))
	case u.talk.asked() != nil:
		parts = append(parts, asking.Render("waiting for your answer"))
	case u.talk.turn != "":
		parts = append(parts, good.Render("working")+u.waiting())
	default:
		parts = append(parts, "idle")
	}
	s := u.talk.session
	if s.Config.Model.ID != "" {
		parts = append(parts, termtext.OneLine(s.Config.Model.ID, 30))
	}
	if d := s.Config.Driver; d != "" && d != "standard" {
		parts = append(parts, termtext.OneLine(d, 30))
	}
	if s.ID != "" {
		parts = append(parts, sandboxName(s.Config.Approval.Sandbox))
	}
	if m := u.talk.meter(); m != "" {
		parts = append(parts, m)
	}
	if t := u.talk.total; t.Input+t.Output+t.CacheRead > 0 {
		if t.Cost > 0 {
			parts = append(parts, Dollars(t.Cost))
		}
		parts = append(parts, fmt.Sprintf("%s tokens in, %s out", count(t.Input+t.CacheRead+t.CacheWrite), count(t.Output)))
	}
	if s.Title != "" {
		parts = append(parts, termtext.OneLine(s.Title, 40))
	}
	return faint.Render("─ ") + fitted(parts, u.width-2)
}

// leastPart is the fewest columns in which the last part of a status line is worth showing.
const leastPart = 12

// fitted joins parts on a line. Those that do not fit are left out from the end; the last one that is shown may be cut.
func fitted(parts []string, width int) string {
	line := ""
	for i, p := range parts {
		if i > 0 {
			p = faint.Render(" · ") + p
		}
		room := width - ansi.StringWidth(line)
		if ansi.StringWidth(p) <= room {
			line += p
			continue
		}
		if i == 0 || i == len(parts)-1 && room >= leastPart {
			line += ansi.Truncate(p, room, "…")
		}
		break
	}
	return line
}

// sandboxName says on the status line what the commands of the agent reach.
func sandboxName(m protocol.SandboxMode) string {
	switch m {
	case protocol.SandboxReadOnly:
		return "sandbox readOnly"
	case protocol.SandboxWorkspace:
		return "sandbox workspace"
	}
	return "no sandbox"
}

// wait is what a turn waits for, such as "the model", and since when.
type wait struct {
	doing string
	since time.Time
}

// waiting says how long the turn has been waiting, and for what, once that takes a
// second. It remembers in u.wait when the wait began.
func (u *ui) waiting() string {
	if u.wait.doing != u.talk.doing {
		u.wait = wait{u.talk.doing, time.Now()}
	}
	took := time.Since(u.wait.since).Round(time.Second)
	if u.wait.doing == "" || took < time.Second {
		return ""
	}
	return faint.Render(fmt.Sprintf(" (waiting for %s, %s)", u.wait.doing, took))
}

// Dollars formats a cost, given in billionths of a dollar: four decimals below one
// dollar, else two. lash run prints costs with it as well.
func Dollars(cost int64) string {
	d := float64(cost) / 1e9
	if d < 1 {
		return fmt.Sprintf("$%.4f", d)
	}
	return fmt.Sprintf("$%.2f", d)
}

// count formats a number of tokens, such as "1.2k".
func count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}
