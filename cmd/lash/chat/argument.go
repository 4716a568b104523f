package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// arguments are the words that a command takes, for its menu.
type arguments struct {
	of       string // the name of the command
	choices  []prompt.Choice
	optional bool // the command also runs without one
}

// argumentsMsg has arguments that the daemon knows. There are none if it cannot be reached.
type argumentsMsg struct{ arguments }

// takesChoice reports whether the argument of a command is one of several words.
func takesChoice(name string) bool {
	c, exact := commandNamed(name)
	return exact && (slices.Contains([]string{"model", "effort", "sessions"}, c.name) || words(c) != nil)
}

// words returns the words of which a command takes one, or nil.
func words(c *command) []string {
	if !strings.Contains(c.takes, "|") || strings.HasPrefix(c.takes, "[") {
		return nil
	}
	return strings.Split(c.takes, "|")
}

// argumentsOf returns the words that a command takes, or the command that asks the daemon for them.
func argumentsOf(u *ui, name string) (arguments, tea.Cmd) {
	c, _ := commandNamed(name)
	a := arguments{of: name, optional: strings.HasPrefix(c.takes, "[")}
	for _, w := range words(c) {
		a.choices = append(a.choices, prompt.Choice{Text: w})
	}
	switch c.name {
	case "effort":
		if r := u.talk.session.Config.Model.Reasoning; r != nil {
			for _, e := range r.Efforts {
				a.choices = append(a.choices, prompt.Choice{Text: e})
			}
		}
	case "model":
		return a, askArguments(u, a, "model/list", protocol.ModelListParams{Servers: true}, modelChoices)
	case "sessions":
		return a, askArguments(u, a, "session/list", protocol.SessionListParams{Cwd: u.talk.session.Cwd, Limit: 100}, sessionChoices(u.talk.session.ID))
	}
	return a, nil
}

// askArguments returns a command that calls a method and makes choices of its result.
func askArguments[R any](u *ui, a arguments, method string, params any, choices func(*R) []prompt.Choice) tea.Cmd {
	return func() tea.Msg {
		r := new(R)
		if err := u.session.Call(u.ctx, method, params, r); err == nil {
			a.choices = choices(r)
		}
		return argumentsMsg{a}
	}
}

// modelChoices returns the names of models, each with its context window and price.
func modelChoices(r *protocol.ModelListResult) (all []prompt.Choice) {
	for _, m := range r.Data {
		all = append(all, prompt.Choice{Text: m.Name, Says: capability(&m)})
	}
	return all
}

// sessionChoices returns the ids of other sessions, each with its title.
func sessionChoices(now protocol.SessionID) func(*protocol.SessionListResult) []prompt.Choice {
	return func(r *protocol.SessionListResult) (all []prompt.Choice) {
		for _, s := range r.Data {
			if s.ID != now {
				all = append(all, prompt.Choice{Text: string(s.ID), Says: termtext.OneLine(s.Title, 80)})
			}
		}
		return all
	}
}

// menu returns the words that begin with a text, and then those that contain it or whose
// explanation does. A whole word needs no menu. Nothing is marked before the first letter of an
// optional word.
func (a arguments) menu(text string) prompt.Menu {
	var all []prompt.Choice
	folded := strings.ToLower(text)
	for _, begins := range []bool{true, false} {
		for _, c := range a.choices {
			if c.Text == text {
				return prompt.Menu{}
			}
			has := strings.Contains(strings.ToLower(c.Text+"\n"+c.Says), folded)
			if has && strings.HasPrefix(strings.ToLower(c.Text), folded) == begins {
				all = append(all, c)
			}
		}
	}
	if text == "" && a.optional {
		return prompt.MenuOf(all, -1)
	}
	return prompt.MenuOf(all, 0)
}
