package chat

import (
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/prompt"
	"lashd/internal/mcpinput"
	"lashd/rpc/protocol"
)

// values are what an MCP server proposes for the variable of a template or the argument of a prompt. One request runs at a time;
// after its answer, the chat asks for what the user has typed since.
type values struct {
	proposal
	asking bool
}

// proposal has the values for a text. There are none if the server does not answer.
type proposal struct {
	of     string // what they are values of
	before string // the text before the cursor for which they are
	all    []string
}

// unknown is a variable or an argument that the user is writing.
type unknown struct {
	protocol.MCPCompleteParams
	write func(value string) (text string, ok bool) // returns how a value is written
}

// of identifies what a value is for.
func (x *unknown) of() string {
	return strings.Join([]string{x.Server, x.Prompt, x.Template, x.Argument}, "\x00")
}

// unknown returns what the user is writing a value of, if the word is one.
func (s *suggest) unknown() (x unknown, ok bool) {
	switch s.word.kind {
	case mentionWord:
		if template, v, ok := s.variable(); ok {
			x.MCPCompleteParams = protocol.MCPCompleteParams{Server: template.Server, Template: template.URI, Argument: v.Name, Value: v.Value, Arguments: v.Others}
			x.write = func(value string) (string, bool) { return template.Server + ":" + v.With(value), true }
			return x, true
		}
	case promptWord:
		if a, c := s.argument(); c != nil {
			x.MCPCompleteParams = protocol.MCPCompleteParams{Server: c.Server, Prompt: c.Prompt, Argument: a.Name, Value: a.Value, Arguments: a.Others}
			x.write = func(value string) (string, bool) { return mcpinput.Quoted(c.Arguments, value) }
			return x, true
		}
	}
	return x, false
}

// readValues returns a command that asks for the values of the word, unless they are known.
func readValues(u *ui) tea.Cmd {
	s := &u.suggest
	x, ok := s.unknown()
	if !ok || s.values.asking || s.values.before == s.before {
		return nil
	}
	s.values.asking = true
	x.SessionID = u.talk.session.ID
	before := s.before
	return func() tea.Msg {
		var r protocol.MCPCompleteResult
		if err := u.session.Call(u.ctx, "mcp/complete", x.MCPCompleteParams, &r); err != nil {
			return proposal{x.of(), before, nil}
		}
		return proposal{x.of(), before, r.Values}
	}
}

// proposed takes the values of a text.
func proposed(u *ui, p proposal) tea.Cmd {
	s := &u.suggest
	s.values = values{proposal: p}
	if s.shut == 0 && (s.word.kind == mentionWord || s.word.kind == promptWord) {
		s.fill()
	}
	return readValues(u)
}

// valueChoices returns the values of the word. Until the server has answered for what is typed, they are the earlier ones that begin with it.
func (s *suggest) valueChoices() (all []prompt.Choice) {
	x, ok := s.unknown()
	if !ok || s.values.of != x.of() {
		return nil
	}
	for _, value := range s.values.all {
		text, ok := x.write(value)
		if current := s.values.before == s.before || strings.HasPrefix(value, x.Value); ok && current && value != x.Value {
			all = append(all, prompt.Choice{Text: text})
		}
	}
	return all
}

// promptArgument returns the word of an argument of a prompt; text is what follows the name of the command.
func promptArgument(offered []protocol.CommandInfo, name, text string) word {
	for _, c := range offered {
		if c.Name == name && c.Kind == protocol.CommandPrompt {
			if a, ok := mcpinput.ArgumentOf(c.Arguments, text); ok {
				return word{promptWord, text, len("/"+name+" ") + a.At}
			}
		}
	}
	return word{}
}

// argument returns the argument that the user is writing, and its prompt; nil: none.
func (s *suggest) argument() (a mcpinput.Argument, c *protocol.CommandInfo) {
	name, _, _ := strings.Cut(strings.TrimPrefix(s.before, "/"), " ")
	for i := range s.offered {
		if s.offered[i].Name == name {
			if a, ok := mcpinput.ArgumentOf(s.offered[i].Arguments, s.word.text); ok {
				return a, &s.offered[i]
			}
		}
	}
	return a, nil
}
