package chat

import (
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// View implements tea.Model. From top to bottom it shows the unfinished items, the
// open decision, the queue, the status line and the input. Finished items are in
// the scrollback of the terminal. The input takes at most a third of the height,
// and unfinished items get the lines that are left.
func (u *ui) View() tea.View {
	if u.form != nil {
		return u.formView()
	}
	lines, x, y := u.in.lines(max(u.width-2, 10))
	if room := max(u.height/3, 1); len(lines) > room {
		from := min(max(0, y-room+1), len(lines)-room)
		lines, y = lines[from:from+room], y-from
	}
	var parts []string
	d := u.talk.asked()
	if d != nil {
		parts = append(parts, card(d, len(u.talk.decisions)-1, u.width))
	}
	parts = append(parts, u.queued()...)
	parts = append(parts, u.status())
	below := strings.Join(parts, "\n")
	room := u.height - 1 - len(lines) - strings.Count(below, "\n") - 2
	top := u.moving(max(room, 1)) + below + "\n"
	for i, l := range lines {
		lines[i] = "  " + l
	}
	lines[0] = mine.Render("› ") + lines[0][2:]
	if u.in.value() == "" {
		lines[0] += faint.Render(u.hint(d))
	}
	v := tea.NewView(top + strings.Join(lines, "\n"))
	v.Cursor = tea.NewCursor(x+2, strings.Count(top, "\n")+y)
	return v
}

// formView shows the form in the place of the input and of an open decision.
func (u *ui) formView() tea.View {
	lines, x, y := u.form.lines(u.width)
	top := u.moving(max(u.height-len(lines)-3, 1)) + u.status() + "\n"
	v := tea.NewView(top + strings.Join(lines, "\n"))
	v.Cursor = tea.NewCursor(x, strings.Count(top, "\n")+y)
	return v
}

// hint returns the placeholder of the empty input.
func (u *ui) hint(d *protocol.Decision) string {
	switch {
	case u.leaving:
		return "Press Ctrl-C again to quit. The session keeps running."
	case u.lacking:
		return "/login stores an API key; Enter tries again"
	case d != nil:
		return "Enter a letter from above, or a message to steer the turn"
	case u.talk.turn != "":
		return "Steer the turn… (/queue adds a turn, Esc stops)"
	}
	return "Ask lashd to do something… (/help lists commands)"
}

// moving renders the unfinished items, cut to the last room lines. The call of the
// open decision is left out, because the decision shows it.
func (u *ui) moving(room int) string {
	var lines []string
	d := u.talk.asked()
	for _, item := range u.talk.open {
		if d != nil && d.Call != nil && d.Call.CallID == item.CallID {
			continue
		}
		lines = append(lines, strings.Split(u.unfinished(item), "\n")...)
	}
	if len(lines) > room {
		lines = lines[len(lines)-room:]
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// unfinished renders an item that has not ended: text as far as it has streamed,
// the end of the reasoning, or a call with its newest progress line.
func (u *ui) unfinished(item *protocol.Item) string {
	switch item.Kind {
	case protocol.ItemAgentMessage:
		return fit(markdown(termtext.Printable(item.Text)), u.width)
	case protocol.ItemReasoning:
		return faint.Render("  thinking: " + termtext.OneLine(last(item.Text, 120), u.width-16))
	case protocol.ItemCodeCell:
		return growingCell(item, u.width)
	case protocol.ItemToolCall:
		text := asking.Render("▸ ") + callLine(item, u.width)
		if p := u.talk.progress[item.CallID]; p != "" {
			text += "\n" + faint.Render("  "+termtext.OneLine(p, u.width-2))
		}
		return text
	}
	return faint.Render("· " + termtext.OneLine(item.Text, u.width-2))
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
		if o.text != "" && !u.connected {
			lines = append(lines, faint.Render("  not sent yet: "+termtext.OneLine(o.text, u.width-16)))
		}
	}
	return lines
}

// status renders the status line: state, model, a driver other than standard, context window, tokens and cost,
// background tasks, and title.
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
	if m := u.talk.meter(); m != "" {
		parts = append(parts, m)
	}
	if t := u.talk.total; t.Input+t.Output+t.CacheRead > 0 {
		parts = append(parts, fmt.Sprintf("%s tokens in, %s out", count(t.Input+t.CacheRead+t.CacheWrite), count(t.Output)))
		if t.Cost > 0 {
			parts = append(parts, Dollars(t.Cost))
		}
	}
	if len(u.talk.tasks) > 0 {
		parts = append(parts, counted(len(u.talk.tasks), "background task"))
	}
	if s.Title != "" {
		parts = append(parts, termtext.OneLine(s.Title, 40))
	}
	return faint.Render("─ ") + strings.Join(parts, faint.Render(" · "))
}

// waiting says how long the turn has been waiting, and for what, once that takes a
// second. It remembers in u.since when the wait began.
func (u *ui) waiting() string {
	if u.doing != u.talk.doing {
		u.doing, u.since = u.talk.doing, time.Now()
	}
	took := time.Since(u.since).Round(time.Second)
	if u.doing == "" || took < time.Second {
		return ""
	}
	return faint.Render(fmt.Sprintf(" (waiting for %s, %s)", u.doing, took))
}

// Dollars formats a cost, given in billionths of a dollar: four decimals below one
// dollar, else two. lashd run prints costs with it as well.
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
