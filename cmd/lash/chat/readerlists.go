package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/turns"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// spokenEntries is the number of sessions and turns in a list for a screen reader.
const spokenEntries = 15

// listMsg is a numbered list for a screen reader: lines of text, and what each number does.
type listMsg struct {
	lines []string
	picks []pickEntry
}

// pickEntry is an entry of a numbered list.
type pickEntry struct {
	label string
	do    func(u *ui) tea.Cmd
}

// present prints a numbered list, from which the next line chooses.
func (r *reader) present(u *ui, m listMsg) {
	r.picks = m.picks
	lines := m.lines
	for i, e := range m.picks {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, termtext.OneLine(ansi.Strip(e.label), 300)))
	}
	if len(m.picks) > 0 {
		lines = append(lines, "Type a number and press Enter. Any other text closes the list.")
	}
	u.paper.print(strings.Join(lines, "\n"))
}

// spoken returns the command that shows an overlay as a list of lines.
func spoken(u *ui, o overlay) tea.Cmd {
	switch o := o.(type) {
	case *sessionPicker:
		return spokenSessions(u, o)
	case *turnList:
		return spokenTurns(u, o)
	}
	return say("/output prints the newest call in full, and /output 2 the one before.")
}

// spokenSessions lists the newest sessions of the directory.
func spokenSessions(u *ui, p *sessionPicker) tea.Cmd {
	return func() tea.Msg {
		list, err := newestSessions(p.call, p.cwd)
		if err != nil {
			return saidMsg(err.Error())
		}
		m := listMsg{lines: []string{"The newest sessions of " + shortened(p.cwd) + ". lash session prints all, and /resume ID opens one."}}
		for i := range list {
			m.picks = append(m.picks, pickEntry{spokenSession(&list[i]), func(*ui) tea.Cmd { return p.take(list[i].ID) }})
		}
		return m
	}
}

// newestSessions returns the newest sessions of a directory.
func newestSessions(call func(method string, params, result any) error, cwd string) ([]protocol.Session, error) {
	var r protocol.SessionListResult
	err := call("session/list", protocol.SessionListParams{Cwd: cwd, Limit: spokenEntries}, &r)
	return r.Data, err
}

// spokenSession describes a session on a line.
func spokenSession(s *protocol.Session) string {
	return termtext.OneLine(cmp.Or(s.Title, "without a title"), 200) + ", " + spokenParts((&sessionPicker{}).detail(s))
}

// spokenParts returns a line whose parts are separated by commas.
func spokenParts(line string) string { return strings.ReplaceAll(ansi.Strip(line), " · ", ", ") }

// spokenTurns lists the newest turns.
func spokenTurns(u *ui, t *turnList) tea.Cmd {
	return func() tea.Msg {
		var err error
		if t.turns, err = turns.Read(t.call, t.session); err != nil {
			return saidMsg(err.Error())
		}
		t.loading = false
		m := listMsg{lines: []string{"Turns of this session, newest first."}}
		if len(t.turns) == 0 {
			return saidMsg("There are no turns yet.")
		}
		for _, turn := range slices.Backward(t.turns[max(0, len(t.turns)-spokenEntries):]) {
			m.picks = append(m.picks, pickEntry{turn.Title() + ", " + spokenParts(t.detail(turn)), func(*ui) tea.Cmd { return t.spokenTurn(turn) }})
		}
		return m
	}
}

// spokenTurn lists what can be done with a turn.
func (t *turnList) spokenTurn(turn *turns.Turn) tea.Cmd {
	m := listMsg{lines: []string{"Turn: " + termtext.OneLine(turn.Title(), 200)}, picks: []pickEntry{
		{"Print the whole turn", func(u *ui) tea.Cmd {
			for i := range turn.Items {
				u.paper.print(strings.Join(entry{item: &turn.Items[i]}.unfolded(u.style), "\n"))
			}
			return nil
		}},
		{"Continue in a copy of the session that ends after this turn", func(*ui) tea.Cmd { return t.fork(turn) }},
	}}
	for i, w := range t.turns.Ways(turn) {
		m.picks = append(m.picks, pickEntry{"Go back to before this turn: " + w.Says, func(*ui) tea.Cmd { return t.spokenEffects(turn, i) }})
	}
	return func() tea.Msg { return m }
}

// spokenEffects finds out what a way to go back would change, and asks whether to do it.
func (t *turnList) spokenEffects(turn *turns.Turn, at int) tea.Cmd {
	b := &goingBack{turn: turn, lost: len(t.turns.From(turn)), choices: choicesOf(t.turns.Ways(turn)), at: at}
	t.back = b
	try := t.try(at)
	return func() tea.Msg {
		if r, ok := try().(dryRunMsg); ok {
			b.choices[at].result, b.choices[at].err = r.result, r.err
		}
		m := listMsg{}
		for _, l := range b.effects() {
			if l = ansi.Strip(l); l != "" {
				m.lines = append(m.lines, l)
			}
		}
		if b.choices[at].err != nil {
			return m
		}
		label := "Do it"
		if len(turns.Conflicts(b.choices[at].result)) > 0 {
			label, b.force = "Do it, and overwrite these files", true
		}
		m.picks = []pickEntry{{label, func(*ui) tea.Cmd {
			cmd, _ := b.key(t, tea.KeyPressMsg{Code: tea.KeyEnter})
			return cmd
		}}, {"Change nothing", func(*ui) tea.Cmd { return say("Nothing changed.") }}}
		return m
	}
}
