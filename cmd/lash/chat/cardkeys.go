package chat

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// key handles a key press while a decision is open that single keys answer. It
// reports false for keys that it leaves to the input and to the chat, such as
// Ctrl-C.
func (q *question) key(m tea.KeyPressMsg) (tea.Cmd, bool) {
	switch q.mode {
	case cardWidths:
		return q.widthKey(m.String())
	case cardEditing, cardReasoning:
		return q.fieldKey(m.String())
	case cardWriting:
		if name := m.String(); name == "tab" || name == "esc" {
			q.mode, q.since = cardChoosing, time.Time{} // the user has seen the card
			return nil, true
		}
		return nil, false
	}
	if m.Text != "" && (time.Since(q.since) < settle || m.Text == "/") {
		q.mode = cardWriting
		return nil, false
	}
	return q.choosingKey(m)
}

// choosingKey handles the keys of an open card. Other letters do nothing: a message
// to the agent begins with Tab.
func (q *question) choosingKey(m tea.KeyPressMsg) (tea.Cmd, bool) {
	d, u := q.d, q.ui
	approval := d.Kind == protocol.DecisionApproval && slices.Contains(d.Choices, protocol.ChooseReject)
	switch name := m.String(); {
	case name == "tab":
		q.mode = cardWriting
	case q.moved(name):
	case name == "space" && Hunks(d) > 0:
		q.toggleHunk()
	case name == "e" && Editable(d):
		return q.edit(), true
	case name == "v" && hidesChanges(d):
		return u.println(each(faint, termtext.Printable(callText(d.Call)))), true
	case (name == "r" || m.Text == "N") && approval:
		q.reason(protocol.ChooseReject)
	case m.Text == "Y" && q.partial():
		q.reason(protocol.ChooseAllowOnce)
	case m.Text != "":
		return q.chosen(Chosen(d, m.Text)), true
	default:
		return nil, name == "enter" || q.ui.in.IsKey(name)
	}
	return nil, true
}

// chosen answers with a choice; "" is none. A choice that covers later calls opens
// the list of what it can cover.
func (q *question) chosen(choice protocol.DecisionChoice) tea.Cmd {
	left, p := q.marks.left, protocol.DecisionRespondParams{Choice: choice}
	switch {
	case choice == "" || len(left) > 0 && Lasting(choice):
		return nil
	case Lasting(choice) && q.d.Call != nil:
		q.mode, q.choice, q.width = cardWidths, choice, 0
		return nil
	case choice == protocol.ChooseAllowOnce && len(left) > 0:
		if p.Hunks = q.taken(); len(p.Hunks) == 0 {
			return nil
		}
	}
	return q.ui.respond(q.d, p, prompt.Draft{})
}

// partial reports whether some changes are taken and others are left out.
func (q *question) partial() bool {
	return len(q.marks.left) > 0 && len(q.taken()) > 0
}

// reason asks why the call is denied, or with allowOnce, the changes that are left out.
func (q *question) reason(choice protocol.DecisionChoice) {
	q.choice = choice
	q.useInput(cardReasoning, "")
}

// reasoned answers with the reason in the input.
func (q *question) reasoned() tea.Cmd {
	p := protocol.DecisionRespondParams{Choice: q.choice, Reason: strings.TrimSpace(q.ui.in.Text())}
	if q.choice == protocol.ChooseAllowOnce {
		p.Hunks = q.taken()
	}
	q.returnInput()
	return q.ui.respond(q.d, p, prompt.Draft{})
}

// taken returns the indexes of the hunks that are not left out.
func (q *question) taken() (all []int) {
	for i := range Hunks(q.d) {
		if !q.marks.left[i] {
			all = append(all, i)
		}
	}
	return all
}

// toggleHunk takes or leaves the hunk under the cursor.
func (q *question) toggleHunk() {
	marks := &q.marks
	if marks.left[marks.at] {
		delete(marks.left, marks.at)
	} else {
		marks.left[marks.at] = true
	}
}

// moved scrolls a card, or moves its cursor to another hunk, and reports whether name
// is a key for that.
func (q *question) moved(name string) bool {
	page := max(room(q.ui)-7, 1) // what the card shows, but for a line
	by := map[string]int{"pgup": -page, "pgdown": page, "up": -1, "down": 1, "home": -1 << 30, "end": 1 << 30}[name]
	switch {
	case by == 0:
		return false
	case Hunks(q.d) > 0 && (name == "up" || name == "down"):
		q.marks.at = min(max(q.marks.at+by, 0), Hunks(q.d)-1)
		q.top = slices.IndexFunc(q.body(), func(l line) bool { return l.hunk == q.marks.at })
	default:
		q.top += by
	}
	q.top = min(max(q.top, 0), max(len(q.body())-3, 0))
	return true
}

// widthKey handles the keys of the list of widths. The key that opened the list also
// takes the entry under the cursor.
func (q *question) widthKey(name string) (tea.Cmd, bool) {
	all := Widths(q.d)
	switch {
	case name == "up":
		q.width = max(q.width-1, 0)
	case name == "down":
		q.width = min(q.width+1, len(all)-1)
	case name == "esc" || name == "backspace":
		q.mode = cardChoosing
	case name == "enter":
		return q.ui.respond(q.d, protocol.DecisionRespondParams{Choice: q.choice, Width: all[q.width].Index}, prompt.Draft{}), true
	case len(name) == 1 && name[0] >= '1' && int(name[0]-'1') < len(all):
		q.width = int(name[0] - '1')
	default:
		return nil, name != "ctrl+c" && name != "ctrl+d"
	}
	return nil, true
}

// useInput gives the card an input of its own, with a text to begin with. Undo and
// history of the chat stay with the draft.
func (q *question) useInput(mode cardMode, text string) {
	q.mode, q.draft, q.ui.in = mode, q.ui.in, prompt.Editor{}
	q.ui.in.Set(text)
}

// fieldKey handles the keys of a text that the card asks for. The input gets all
// others.
func (q *question) fieldKey(name string) (tea.Cmd, bool) {
	switch name {
	case "esc":
		q.returnInput()
	case "ctrl+g":
		return q.external(), true
	case "enter":
		if q.mode == cardEditing {
			return q.runEdited(), true
		}
		return q.reasoned(), true
	default:
		return nil, false
	}
	return nil, true
}

// returnInput brings back the input of the chat, with its draft.
func (q *question) returnInput() {
	q.mode, q.ui.in, q.draft = cardChoosing, q.draft, prompt.Editor{}
}

// longEdit is the length in characters from which a text is edited in $EDITOR at
// once.
const longEdit = 200

// edit lets the user change what the call runs: its command or else all of its
// arguments as JSON. A long text opens in $EDITOR, and then returns to the input, so
// that the user sees what will run.
func (q *question) edit() tea.Cmd {
	text := q.edited
	switch {
	case text != "":
	case q.d.Detail.Command != nil:
		text = q.d.Detail.Command.Command
	default:
		text = termtext.Readable(q.d.Call.Args)
	}
	q.useInput(cardEditing, text)
	if len(text) > longEdit || strings.Contains(text, "\n") {
		return q.external()
	}
	return nil
}

// runEdited allows the call once with the arguments in the input. Unchanged ones are
// an ordinary answer.
func (q *question) runEdited() tea.Cmd {
	text := strings.TrimSpace(q.ui.in.Text())
	p := protocol.DecisionRespondParams{Choice: protocol.ChooseAllowOnce}
	switch {
	case q.d.Detail.Command == nil && !json.Valid([]byte(text)):
		return say("The arguments are not valid JSON. Nothing was sent.")
	case text == "":
		return say("There is no command. Esc returns to the question.")
	case q.d.Detail.Command == nil:
		p.Args = json.RawMessage(text)
	case text != strings.TrimSpace(q.d.Detail.Command.Command):
		p.Args = WithCommand(q.d.Call.Args, text)
	}
	q.returnInput()
	q.edited = text
	return q.ui.respond(q.d, p, prompt.Draft{})
}

// WithCommand returns the arguments of a call with another command. lash run uses
// it as well.
func WithCommand(args json.RawMessage, command string) json.RawMessage {
	all := map[string]json.RawMessage{}
	if json.Unmarshal(args, &all) != nil {
		return args // cannot happen: a call with a command has an object
	}
	all["command"] = quoted(command)
	raw, err := json.Marshal(all)
	if err != nil {
		return args // cannot happen: the members are valid JSON
	}
	return raw
}
