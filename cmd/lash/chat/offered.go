package chat

import (
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

// allCommands returns the commands of the chat and those of plugins whose names begin with a text, and then those that contain it.
func allCommands(list []protocol.CommandInfo, text string) []prompt.Choice {
	all := append(commandChoices(text), offeredChoices(list, text)...)
	inside := func(c prompt.Choice) int {
		if strings.HasPrefix(commandName(c), text) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b prompt.Choice) int { return inside(a) - inside(b) })
	return all
}

// offeredChoices returns the commands of plugins whose names begin with a text or contain it.
func offeredChoices(list []protocol.CommandInfo, text string) (all []prompt.Choice) {
	for _, begins := range []bool{true, false} {
		for _, c := range list {
			if strings.HasPrefix(c.Name, text) == begins && strings.Contains(c.Name, text) {
				shown := strings.TrimRight("/"+c.Name+" "+termtext.OneLine(c.Hint, 40), " ")
				all = append(all, prompt.Choice{Text: shown, Says: termtext.OneLine(c.Description, 100)})
			}
		}
	}
	return all
}
