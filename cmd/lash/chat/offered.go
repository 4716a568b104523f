package chat

import (
	"cmp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// offeredMsg has the slash commands of the session's plugins. text is a line that begins with one of
// them; "": they are only for the menu.
type offeredMsg struct {
	session protocol.SessionID
	list    []protocol.CommandInfo
	text    string
	entered prompt.Draft
}

// readOffered returns a command that asks the daemon for the slash commands of plugins. Without an answer there are none.
func readOffered(u *ui, text string) tea.Cmd {
	id, entered := u.talk.session.ID, u.entered
	if id == "" {
		return nil
	}
	return func() tea.Msg {
		var r protocol.CommandListResult
		if err := u.session.Call(u.ctx, "command/list", protocol.SessionParams{SessionID: id}, &r); err != nil && text != "" {
			return saidMsg(err.Error())
		}
		return offeredMsg{id, r.Data, text, entered}
	}
}

// offered takes the slash commands of plugins, and runs the one that the user entered.
func offered(u *ui, m offeredMsg) tea.Cmd {
	if m.session != u.talk.session.ID {
		return nil
	}
	u.suggest.offered = m.list
	if m.text == "" {
		if u.suggest.word.kind == commandWord && u.suggest.shut == 0 {
			u.suggest.fill()
		}
		return nil
	}
	u.entered = m.entered
	return runOffered(u, m.text)
}

// offeredCommand runs a slash command of a plugin. If it is not known yet, the daemon is asked first.
func offeredCommand(u *ui, text, name string) tea.Cmd {
	if !hasCommand(u.suggest.offered, name) && !strings.Contains(name, "/") {
		if cmd := readOffered(u, text); cmd != nil {
			return cmd
		}
	}
	return runOffered(u, text)
}

// runOffered sends a line with a command of a plugin. It waits for the running turn. An unknown command goes back into the editor, with a
// note.
func runOffered(u *ui, text string) tea.Cmd {
	name, rest, _ := strings.Cut(strings.TrimPrefix(text, "/"), " ")
	if !hasCommand(u.suggest.offered, name) {
		u.in.SetDraft(u.entered)
		if near := nearest(name); near != "" {
			return say("Unknown command /%s. Did you mean /%s? Start with // to send a message that begins with /.", name, near)
		}
		return say("Unknown command /%s. /help lists the commands; start with // to send a message that begins with /.", name)
	}
	return inputWith(u, text, protocol.BusyQueue, &protocol.CommandCall{Name: name, Arguments: strings.TrimSpace(rest)})
}

// hasCommand reports whether a list has a command.
func hasCommand(list []protocol.CommandInfo, name string) bool {
	return slices.ContainsFunc(list, func(c protocol.CommandInfo) bool { return c.Name == name })
}

// fitting is a command for the menu, with how well its name fits what is typed.
type fitting struct {
	prompt.Choice
	rank int
}

// allCommands returns the commands of the chat and those of plugins that fit a text, best first.
func allCommands(list []protocol.CommandInfo, text string) (all []prompt.Choice) {
	var found []fitting
	for i := range commands {
		c := &commands[i]
		name := slices.MinFunc(c.names(), func(a, b string) int { return cmp.Compare(rank(a, text), rank(b, text)) })
		found = append(found, fitting{prompt.Choice{Text: strings.TrimRight("/"+name+" "+c.takes, " "), Says: c.says}, rank(name, text)})
	}
	for _, c := range list {
		shown := strings.TrimRight("/"+c.Name+" "+termtext.OneLine(c.Hint, 40), " ")
		found = append(found, fitting{prompt.Choice{Text: shown, Says: termtext.OneLine(c.Description, 100)}, rank(c.Name, text)})
	}
	slices.SortStableFunc(found, func(a, b fitting) int { return cmp.Compare(a.rank, b.rank) })
	for _, f := range found {
		if f.rank < unfit {
			all = append(all, f.Choice)
		}
	}
	return all
}

// unfit is the rank of a name that does not fit.
const unfit = 4

// rank says how well the name of a command fits a text: 0 if it is the text, 1 if it begins with it, 2 if a later part of it does, 3 if it
// contains at least two letters, unfit otherwise. The extension for VS Code has the same rule.
func rank(name, text string) int {
	name, text = strings.ToLower(name), strings.ToLower(text)
	parts := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(":-_", r) })
	switch {
	case name == text:
		return 0
	case strings.HasPrefix(name, text):
		return 1
	case slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, text) }):
		return 2
	case len(text) > 1 && strings.Contains(name, text):
		return 3
	}
	return unfit
}
