package chat

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/screen"
	"lashd/rpc/protocol"
)

// editedMsg is the text that the user left in an external editor.
type editedMsg struct {
	of   protocol.DecisionID // whose arguments it has; "": it is the draft of a message
	text string
	err  error
}

// external opens the input in the external editor while it has the arguments of a
// call. Without an editor, the input stays as it is.
func (q *question) external() tea.Cmd {
	if q.mode != cardEditing || len(editorCommand()) == 0 {
		return nil
	}
	return openEditor(q.ui.ctx, q.of, q.ui.in.Text(), ".sh")
}

// editorCommand returns the command of the user's editor: $VISUAL, or else $EDITOR.
func editorCommand() []string {
	if words := strings.Fields(os.Getenv("VISUAL")); len(words) > 0 {
		return words
	}
	return strings.Fields(os.Getenv("EDITOR"))
}

// openEditor opens a text in the external editor, which gets the terminal until it
// exits. Its result is an editedMsg. The text is in a file that only the user can
// read; its name ends with suffix.
func openEditor(ctx context.Context, of protocol.DecisionID, text, suffix string) tea.Cmd {
	words := editorCommand()
	if len(words) == 0 {
		return say("No editor is set up. Set EDITOR, for example to vim, and start the chat again.")
	}
	name, err := editorFile(text, suffix)
	if err != nil {
		return say("The editor was not started: %v", err)
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], name)...)
	return screen.Exec(cmd, func(err error) tea.Msg {
		defer os.Remove(name)
		text, failed := os.ReadFile(name)
		return editedMsg{of, string(text), cmp.Or(err, failed)}
	})
}

// editorFile writes a text to a new temporary file and returns its name.
func editorFile(text, suffix string) (string, error) {
	f, err := os.CreateTemp("", "lashd-*"+suffix) // readable by the user only
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err = cmp.Or(err, f.Close()); err != nil {
		os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// use puts the text from the external editor into the prompt, if what it was for
// is still there: the draft, or the question whose arguments it has.
func (m editedMsg) use(u *ui) tea.Cmd {
	q := u.question()
	editing := q != nil && q.mode == cardEditing
	switch text := strings.TrimRight(m.text, "\n"); {
	case m.err != nil:
		return say("The editor failed: %v. The text is unchanged.", m.err)
	case m.of == "" && !editing:
		u.in.SetEdited(text)
	case m.of != "" && editing && m.of == q.of:
		u.in.Set(text)
	}
	return nil
}
