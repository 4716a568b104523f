package chat

import (
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/turns"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// goingBack asks what returns to before a turn, and shows what each answer would change.
type goingBack struct {
	turn    *turns.Turn
	lost    int // turns that the conversation loses
	choices []backChoice
	at      int
	force   bool // overwrite files with conflicts
}

// backChoice is a way to go back.
type backChoice struct {
	turns.Way
	result *protocol.SessionRewindResult // of a dry run; nil: it is not known yet
	err    error                         // of the dry run
}

// dryRunMsg has the result of a dry run for a choice.
type dryRunMsg struct {
	of     *goingBack
	at     int
	result *protocol.SessionRewindResult
	err    error
}

// choicesOf returns the choices between ways to go back.
func choicesOf(ways []turns.Way) (choices []backChoice) {
	for _, w := range ways {
		choices = append(choices, backChoice{Way: w})
	}
	return choices
}

// undoes asks whether to undo the file changes of a turn.
func (t *turnList) undoes(turn *turns.Turn) tea.Cmd {
	if turn.Point == nil {
		t.fault = "This turn changed no files."
		return nil
	}
	return t.goBack(turn, choicesOf(t.turns.Ways(turn)[2:]))
}

// goBack asks what goes back.
func (t *turnList) goBack(turn *turns.Turn, choices []backChoice) tea.Cmd {
	t.back = &goingBack{turn: turn, lost: len(t.turns.From(turn)), choices: choices}
	return t.try(0)
}

// try returns a command that finds out what a choice would do. One runs at a time, because each needs the session
// for itself.
func (t *turnList) try(at int) tea.Cmd {
	m, p := dryRunMsg{of: t.back, at: at, result: &protocol.SessionRewindResult{}}, t.back.choices[at].Params
	p.SessionID, p.DryRun = t.session, true
	return func() tea.Msg {
		m.err = t.call("session/rewind", p, m.result)
		return m
	}
}

// tried takes the result of a dry run, and tries the next choice.
func (t *turnList) tried(m dryRunMsg) tea.Cmd {
	if t.back != m.of {
		return nil // the question is over
	}
	t.back.choices[m.at].result, t.back.choices[m.at].err = m.result, m.err
	if m.at+1 == len(t.back.choices) {
		return nil
	}
	return t.try(m.at + 1)
}

// key handles a key press.
func (b *goingBack) key(t *turnList, m tea.KeyPressMsg) (cmd tea.Cmd, open bool) {
	c := &b.choices[b.at]
	switch name := m.String(); {
	case name == "esc" || name == "ctrl+c" || name == "q":
		t.back = nil
	case name == "up" || name == "k":
		b.at = max(b.at-1, 0)
	case name == "down" || name == "j":
		b.at = min(b.at+1, len(b.choices)-1)
	case len(name) == 1 && name[0] >= '1' && int(name[0]-'1') < len(b.choices):
		b.at = int(name[0] - '1')
	case name == "o" && len(turns.Conflicts(c.result)) > 0:
		b.force = !b.force
	case name == "enter" && b.ready():
		p := c.Params
		p.Mutation, p.SessionID, p.Force = key(), t.session, b.force
		return func() tea.Msg { return goBackMsg{p, b, c.Talk} }, false
	}
	return nil, true
}

// ready reports whether the marked choice is known to work.
func (b *goingBack) ready() bool {
	c := &b.choices[b.at]
	return c.result != nil && c.err == nil && (b.force || len(turns.Conflicts(c.result)) == 0)
}

// view returns the rows of the screen.
func (b *goingBack) view(width, height int) (rows []string) {
	head := "Go back to before this turn"
	if !b.choices[0].Talk {
		head = "Undo the file changes of this turn and of later ones"
	}
	rows = append(rows, strong.Render(head), mine.Render("› "+termtext.OneLine(b.turn.Title(), max(width-2, 10))), "")
	for i := range b.choices {
		if len(b.choices) == 1 {
			break
		}
		line := fmt.Sprintf("%d  %s", i+1, b.choices[i].Says)
		if i == b.at {
			rows = append(rows, mine.Render("▸ "+line))
		} else {
			rows = append(rows, "  "+line)
		}
	}
	rows = append(rows, "")
	for _, l := range b.effects() {
		rows = append(rows, wrapped(l, width)...)
	}
	if room := max(height-1, 1); len(rows) > room {
		rows = append(rows[:room-1], faint.Render(fmt.Sprintf("  … %d more lines", len(rows)-room+1)))
	} else {
		rows = append(rows, slices.Repeat([]string{""}, room-len(rows))...)
	}
	return append(rows, faint.Render(ansi.Truncate(b.keys(), width, "…")))
}

// keys says what keys do.
func (b *goingBack) keys() string {
	switch {
	case b.ready():
		return "Enter goes back · Up and Down choose · Esc changes nothing"
	case len(turns.Conflicts(b.choices[b.at].result)) > 0:
		return "o overwrites these files · Up and Down choose · Esc changes nothing"
	}
	return "Up and Down choose · Esc changes nothing"
}

// effects says what the marked choice would do, and what would be lost.
func (b *goingBack) effects() (lines []string) {
	c := &b.choices[b.at]
	switch {
	case c.err != nil:
		return []string{bad.Render("✗ ") + "Not possible: " + termtext.OneLine(c.err.Error(), 400)}
	case c.result == nil:
		return []string{faint.Render("Finding out what would change…")}
	}
	if c.Talk {
		lines = append(lines, fmt.Sprintf("The agent forgets %s. Your input returns to the prompt.", theTurns(b.lost)), "")
	} else {
		lines = append(lines, "The conversation stays as it is.", "")
	}
	switch files := c.result.Files; {
	case c.Params.Files == "":
		return append(lines, "Files stay as they are.")
	case len(files) == 0:
		return append(lines, "No file changes.")
	default:
		lines = append(lines, counted(len(files), "file")+" would change. /undo can bring the changes back:")
		for i := range files {
			lines = append(lines, b.effect(&files[i]))
		}
	}
	return lines
}

// theTurns names the turns that are lost.
func theTurns(n int) string {
	if n == 1 {
		return "this turn"
	}
	return "this turn and " + counted(n-1, "later one")
}

// effect says what happens to a file.
func (b *goingBack) effect(f *protocol.FileRewind) string {
	line := fmt.Sprintf("  %s %s", f.Effect, termtext.OneLine(f.Path, 100))
	if f.Added+f.Removed > 0 {
		line += " " + good.Render(fmt.Sprint("+", f.Added)) + " " + bad.Render(fmt.Sprint("-", f.Removed))
	}
	why := map[protocol.FileConflict]string{
		protocol.ConflictChanged: "it has changed since, and the change would be lost",
		protocol.ConflictShared:  "another session may have changed it",
		protocol.ConflictUnsure:  "another program may have changed it",
		protocol.ConflictNotKept: "lashd has no copy of it as it is now, so it would be lost",
	}[f.Conflict]
	switch {
	case f.Unkept != "":
		return line + asking.Render(" stays: lashd has no copy of it")
	case why != "" && b.force:
		return line + asking.Render(" will be overwritten")
	case why != "":
		return line + asking.Render(" "+why)
	}
	return line
}

// goBackMsg asks the chat to go back to before a turn.
type goBackMsg struct {
	params protocol.SessionRewindParams
	of     *goingBack
	talk   bool
}

// goBack goes back. If the conversation does, its input then returns to the prompt.
func goBack(u *ui, m goBackMsg) tea.Cmd {
	r := new(protocol.SessionRewindResult)
	return u.ask(&outgoing{method: "session/rewind", params: m.params, result: r, done: func() tea.Msg { return wentBackMsg{m, r} }})
}

// wentBackMsg says that the session went back.
type wentBackMsg struct {
	goBackMsg
	result *protocol.SessionRewindResult
}

// wentBack shows what changed.
func wentBack(u *ui, m wentBackMsg) tea.Cmd {
	if m.params.Files != "" && (len(m.result.Files) > 0 || !m.talk) {
		u.paper.print(rewound(m.result.Files))
	}
	if m.talk {
		u.in.Prepend(inputOf(m.of.turn))
	}
	return nil
}

// fork copies the session up to the end of a turn, and switches to the copy.
func (t *turnList) fork(turn *turns.Turn) tea.Cmd {
	return func() tea.Msg {
		node, err := turns.LastNode(t.call, t.session, turn.ID)
		var r protocol.SessionNewResult
		if err == nil {
			err = t.call("session/fork", protocol.SessionForkParams{Mutation: key(), SessionID: t.session, AtNode: node}, &r)
		}
		if err != nil {
			return faultMsg(err.Error())
		}
		note := fmt.Sprintf("You are now in a copy that ends after %q. /resume %s returns to the original.", termtext.OneLine(turn.Title(), 40), shortID(string(t.session)))
		return switchMsg{r.SessionID, note, false}
	}
}
