package protocol

import (
	"slices"
	"strings"
)

// CommandKind says what a slash command is.
type CommandKind string

const (
	CommandText   CommandKind = "command" // a text for the model
	CommandSkill  CommandKind = "skill"   // a skill, which the model can also read by itself
	CommandPrompt CommandKind = "prompt"  // a prompt of an MCP server
)

// CommandInfo is a slash command of a session. Clients offer it to people.
type CommandInfo struct {
	Name        string      `json:"name"` // without the slash; commands of plugins are plugin:name
	Kind        CommandKind `json:"kind"`
	Description string      `json:"description,omitempty"`
	Hint        string      `json:"argumentHint,omitempty"` // what people type after the name
	Plugin      string      `json:"plugin"`                 // plugin that has it; empty: a server that a client added

	Server    string            `json:"server,omitempty"`    // of a prompt: the MCP server
	Prompt    string            `json:"prompt,omitempty"`    // of a prompt: its name at the server, for mcp/complete
	Arguments []CommandArgument `json:"arguments,omitempty"` // of a prompt, in order; people write them as words or as NAME=VALUE
}

// CommandArgument is an argument of a prompt.
type CommandArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// CommandListResult lists the slash commands of a session, sorted by name.
type CommandListResult struct {
	Data []CommandInfo `json:"data"`
}

// CommandCall is a slash command that a person sends with an input. lashd adds its text after the input.
type CommandCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments,omitempty"` // the rest of the line
}

// AddedText returns the first line of a text that a built-in plugin added to the conversation, and the number of its other lines: that of a
// slash command, of an MCP server, instructions of a directory, or a summary of older history. ok is false for all other items. Clients show
// this line in place of the text, which no person wrote.
func (i *Item) AddedText() (title string, lines int, ok bool) {
	if i.Kind != ItemUserMessage || i.Origin == nil || !slices.Contains(addedBy, i.Origin.Plugin) {
		return "", 0, false
	}
	title, text, _ := strings.Cut(i.Text, "\n")
	return strings.Trim(title, "[]"), len(slices.Collect(strings.Lines(strings.TrimSpace(text)))), true
}

// addedBy are the plugins whose texts AddedText shortens.
var addedBy = []string{CommandsID, ServersID, InstructionsID, HistoryID}

// HistoryID is the id of the plugin that summarizes older history.
const HistoryID = "history"

// CommandsID is the id of the plugin that runs slash commands, and of its query that lists them.
const CommandsID = "lashd-commands"
