package chat

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/prompt"
	"lashd/cmd/lash/screen"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// reader is the mode for screen readers. The chat only appends lines of plain text, below
// which is the line that the user types; nothing else changes on the screen. Questions
// are numbered lists, and the bell rings when the chat waits for the user. The methods of a nil reader,
// which is that of the other mode, do nothing.
type reader struct {
	asked   protocol.DecisionID // the question whose options were printed
	mode    cardMode            // for which they were printed
	options []option
	picks   []pickEntry // of the list that was printed last
	opened  bool        // the session is open
	busy    bool        // a turn ran that waited for no answer
	form    *form       // the form that was announced
}

// option is a numbered answer to a question.
type option struct {
	label  string
	choose func(q *question) tea.Cmd
}

// follow announces what changed with a message: a question, a form, and the end of the work.
func (r *reader) follow(u *ui) {
	if r == nil {
		return
	}
	if f := u.form; f != r.form {
		r.form = f
		r.announceForm(u)
	}
	if u.connected && !r.opened {
		r.opened = true
		u.paper.print("Ready. Type a message and press Enter. /help lists the commands.")
	}
	q := u.question()
	busy := u.talk.turn != "" && q == nil
	if r.busy && !busy {
		u.notice.ring = !u.notice.off
		if q == nil {
			u.paper.print("Ready. Type a message and press Enter.")
		}
	}
	r.busy = busy
	switch {
	case q == nil:
		r.asked, r.options = "", nil
	case r.asked != q.d.ID:
		u.paper.print(strings.Join(q.spoken(), "\n"))
		r.offer(u, q)
	case r.mode != q.mode && q.mode != cardWriting && !answering(u):
		r.offer(u, q)
	}
}

// answering reports whether an answer is on its way to the daemon.
func answering(u *ui) bool {
	return slices.ContainsFunc(u.unsent, func(o *outgoing) bool { return o.method == "decision/respond" })
}

// offer prints the options of a question, as numbers that the user can enter.
func (r *reader) offer(u *ui, q *question) {
	r.asked, r.mode, r.options = q.d.ID, q.mode, q.options()
	var lines []string
	if q.mode == cardWidths {
		lines = []string{WidthTitle(q.choice)}
	}
	for i, o := range r.options {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, o.label))
	}
	u.paper.print(strings.Join(append(lines, q.howTo()), "\n"))
}

// chose runs the option whose number the user entered. Any text closes a list.
func (r *reader) chose(u *ui, text string) (tea.Cmd, bool) {
	if r == nil {
		return nil, false
	}
	n, err := strconv.Atoi(strings.TrimSuffix(text, "."))
	picks := r.picks
	r.picks = nil
	if u.question() == nil && err == nil && n >= 1 && n <= len(picks) {
		return picks[n-1].do(u), true
	}
	if q := u.question(); q != nil && err == nil && n >= 1 && n <= len(r.options) {
		return r.options[n-1].choose(q), true
	}
	return nil, false
}

// options returns the answers to a question that the user can choose by number. A
// question that accepts a text has none: a number may be the answer.
func (q *question) options() (all []option) {
	switch {
	case !q.byKey() || q.mode == cardEditing || q.mode == cardReasoning:
		return nil
	case q.mode == cardWidths:
		return q.widthOptions()
	}
	for _, k := range keys {
		if slices.Contains(q.d.Choices, k.choice) {
			all = append(all, option{k.label, func(q *question) tea.Cmd { return q.chosen(k.choice) }})
		}
	}
	if Editable(q.d) {
		all = append(all, option{"Edit it, then allow it once", (*question).edit})
	}
	if q.d.Kind == protocol.DecisionApproval && slices.Contains(q.d.Choices, protocol.ChooseReject) {
		all = append(all, option{"Deny, and say why", func(q *question) tea.Cmd { q.reason(protocol.ChooseReject); return nil }})
	}
	return all
}

// widthOptions returns what an answer can cover, and the way back.
func (q *question) widthOptions() (all []option) {
	for _, w := range Widths(q.d) {
		all = append(all, option{w.Text, func(q *question) tea.Cmd {
			return q.ui.respond(q.d, protocol.DecisionRespondParams{Choice: q.choice, Width: w.Index}, prompt.Draft{})
		}})
	}
	return append(all, option{"Back", func(q *question) tea.Cmd { q.mode = cardChoosing; return nil }})
}

// howTo says what the user has to enter.
func (q *question) howTo() string {
	switch {
	case q.mode == cardEditing:
		return "Edit the text and press Enter. Escape goes back."
	case q.mode == cardReasoning:
		return "Type the reason and press Enter. Escape goes back."
	case !q.byKey():
		return "Type your answer and press Enter."
	}
	return "Type a number and press Enter."
}

// spoken returns a question with all that it is about, without its keys.
func (q *question) spoken() []string {
	text := headline(q.d, &q.ui.talk.session)
	if q.d.Kind != protocol.DecisionApproval {
		text = termtext.Printable(q.d.Prompt)
	}
	lines := []string{"Question: " + text}
	for _, l := range q.body() {
		lines = append(lines, l.text)
	}
	if why := whyLine(q.d); why != "" {
		lines = append(lines, why)
	}
	if left := ansi.Strip(q.countdown()); left != "" {
		lines = append(lines, "Without an answer it is "+left+".")
	}
	return lines
}

// announceForm prints what the form of an API key asks for.
func (r *reader) announceForm(u *ui) {
	switch f := u.form; {
	case f == nil:
	case f.choices != nil:
		u.paper.print(strings.Join(f.list(), "\n"))
	default:
		u.paper.print("Enter the API key of " + f.of.Title + ". Enter tests and stores it. Escape cancels.")
	}
}

// draw shows the new lines, and below them the line that the user types.
func (r *reader) draw(u *ui, s *screen.Screen) {
	for _, l := range u.paper.take() {
		if l = readable(l); l != "" {
			s.Commit(l)
		}
	}
	s.Send(u.notice.sequence())
	lines, x, y := u.in.View(max(u.width-2, 10), 1)
	line := "> " + ansi.Strip(lines[y])
	if u.form != nil {
		lines, x, y = u.form.lines(u.width)
		line, x = ansi.Strip(lines[y]), x-2
	}
	s.Live([]string{line}, x+2, 0)
}

// spokenSigns are the words for the signs at the beginning of lines, which screen readers
// leave out or name by their shape.
var spokenSigns = map[string]string{"✓ ": "done: ", "– ": "cancelled: ", "✗ ": "failed: ", "? ": "unknown: ", "› ": "you: ", "· ": "note: ", "▸ ": "now: ", "│ ": "quote: "}

// readable returns a line as a screen reader should read it: without styles, lines and
// signs. It returns "" for a line without words.
func readable(line string) string {
	line = strings.TrimRight(ansi.Strip(line), " ")
	for sign, word := range spokenSigns {
		if rest, ok := strings.CutPrefix(line, sign); ok {
			line = word + rest
		}
	}
	if rest, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && line[0] == '#' {
		return "heading: " + rest
	}
	if rest, ok := strings.CutPrefix(line, "── "); ok {
		line = "code, " + rest + ":"
	}
	if strings.Trim(line, "─┼│ ") == "" {
		return ""
	}
	return separators.ReplaceAllString(line, ", ")
}

// separators matches what is between the cells of a table, and between the parts of a card.
var separators = regexp.MustCompile(` +[│·] `)
