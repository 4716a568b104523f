package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/layout"
	"lashd/rpc/protocol"
)

// instance is the plugin of one session. It has no state.
type instance struct {
	factory *Factory
	context plugin.BuildContext
}

// toolName is the tool with which the model reads skills.
const toolName = "skill"

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	if list := i.factory.guide(); list != "" {
		r.Tools().Add(i)
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 95, Tools: []string{toolName}, Content: list})
	}
	r.Turn().Input(plugin.TurnInput{Schema: callSchema})
	r.Turn().Before(i.beforeTurn)
	r.ToolCalls().Before(i.beforeCall)
	r.Operations().Query(protocol.OperationInfo{Name: protocol.CommandsID, Description: "Lists the slash commands of skills and commands."}, i.list)
	return nil
}

// callSchema is the schema of the turn input, a protocol.CommandCall.
var callSchema = json.RawMessage(`{
	"type": "object",
	"properties": {"name": {"type": "string", "minLength": 1, "maxLength": 200}, "arguments": {"type": "string", "maxLength": 100000}},
	"required": ["name"],
	"additionalProperties": false
}`)

// Limits of the list of skills in the prompt, in bytes.
const (
	maxListed = 400      // of a description
	maxList   = 24 << 10 // of the list; further skills have only names
)

// guide returns the part of the prompt about skills; empty if there are none for the model.
func (f *Factory) guide() string {
	var b strings.Builder
	for _, o := range f.all {
		if o.Kind != layout.Skill || o.HideModel {
			continue
		}
		line := "\n- " + o.name
		if about := cut(o.Description, maxListed); about != "" && b.Len() < maxList {
			line += ": " + about
		}
		b.WriteString(line)
	}
	if b.Len() == 0 {
		return ""
	}
	return guidance + b.String()
}

// guidance precedes the list of skills.
const guidance = `# Skills
A skill has instructions for a kind of task, and often scripts and references. When a task fits the description of a skill, read it
with the tool skill before you begin, and follow it. Skills come from the user's and the workspace's plugins.`

// cut returns the beginning of a text, up to the last space within n bytes.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:max(strings.LastIndexByte(s[:n], ' '), n/2)], "") + "…"
}

// list implements the query that lists the commands.
func (i *instance) list(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
	r := protocol.CommandListResult{Data: []protocol.CommandInfo{}}
	for _, o := range i.factory.all {
		if !o.HidePeople {
			r.Data = append(r.Data, protocol.CommandInfo{Name: o.name, Kind: protocol.CommandKind(o.Kind), Description: o.Description, Hint: o.Hint, Plugin: o.plugin})
		}
	}
	return json.Marshal(r)
}

// beforeTurn adds the text of the command that came with the input. An unknown command ends the turn before it starts.
func (i *instance) beforeTurn(_ context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
	input := tc.Inputs[protocol.CommandsID]
	if len(input) == 0 {
		return nil, nil
	}
	var call protocol.CommandCall
	if err := json.Unmarshal(input, &call); err != nil {
		return nil, err
	}
	o, ok := i.factory.find(call.Name)
	if !ok || o.HidePeople {
		return []plugin.Directive{plugin.Abort("unknown_command", fmt.Sprintf("there is no command /%s by now; command/list has the commands", call.Name))}, nil
	}
	return []plugin.Directive{plugin.Enqueue(plugin.Message{Role: protocol.RoleUser, Content: o.message(call.Arguments, i.context)})}, nil
}

// message returns the text of a command for the model. Commands in it are for the model to run, so that they go the way of all its
// commands: through rules, questions and the sandbox.
func (o offer) message(arguments string, c plugin.BuildContext) string {
	var text strings.Builder
	text.WriteString(fmt.Sprintf("[The text of the %s /%s of %s]\n", o.Kind, o.name, o.plugin))
	if o.Kind == layout.Skill {
		text.WriteString("Base directory of this skill: " + o.dir() + "\n\n")
	}
	expanded := o.Expand(arguments, o.variables(c))
	text.WriteString(expanded)
	if run := layout.Commands(o.Body); len(run) > 0 {
		text.WriteString("\n\nThe marks !`...` in this text stand for the output of commands. First run each of these commands with the tool for commands, and read its output in place of the mark:\n")
		for _, command := range layout.Commands(expanded) {
			text.WriteString("- `" + command + "`\n")
		}
	}
	return text.String()
}

// Tools implements tool.Provider.
func (i *instance) Tools() []tool.Tool {
	return []tool.Tool{{
		Manifest: protocol.ToolManifest{
			Name: toolName, Kind: protocol.ToolKindRead, Input: toolSchema,
			Description: "Read a skill, or another file of its directory. Run its scripts with the tool for commands, by their full path.",
		},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
	}}
}

// toolSchema is the schema of the tool's arguments.
var toolSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "name of the skill"},
		"file": {"type": "string", "maxLength": 1000, "description": "path of another file, relative to the skill's directory"}
	},
	"required": ["name"],
	"additionalProperties": false
}`)

// Execute implements tool.Provider.
func (i *instance) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	var a struct{ Name, File string }
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tool.Result{}, err
	}
	text, err := i.read(a.Name, a.File)
	if err != nil {
		return tool.Result{Output: protocol.Fail(protocol.FailInvalidRequest, "not_found", err.Error(), protocol.FromTool)}, nil
	}
	return tool.Result{Output: protocol.Succeed(text)}, nil
}

// read returns what the tool answers.
func (i *instance) read(name, file string) (string, error) {
	o, ok := i.factory.skill(name)
	switch {
	case !ok:
		return "", fmt.Errorf("there is no skill %q; the prompt lists the skills", name)
	case file == "":
		return "Base directory of this skill: " + o.dir() + "\n\n" + o.Resolve(o.variables(i.context)), nil
	}
	text, err := o.read(file)
	if err != nil {
		return "", errors.New("the skill " + name + " has no readable file " + file)
	}
	return text, nil
}
