package subagents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// TypesID is the extension with kinds of agents. Its payload is a list of Type.
const TypesID = "lashd.agentTypes"

// Type is a kind of agent that a plugin describes.
type Type struct {
	// Name is unique in the session.
	Name string `json:"name"`
	// Description says when the model should use it.
	Description string `json:"description,omitempty"`
	// Prompt are its instructions.
	Prompt string `json:"prompt,omitempty"`
	// Tools are the tools it has, as far as the session has them. Nil: those of the session. Empty: none.
	Tools []string `json:"tools"`
	// Without are tools it does not have.
	Without []string `json:"without,omitempty"`
	// Model is the name of its model, if there is one with this name. Otherwise it has that of the session.
	Model string `json:"model,omitempty"`
}

// typesOf returns the kinds of agents of all plugins.
func typesOf(x plugin.Extensions) (all []Type, err error) {
	for _, payload := range x[TypesID] {
		var some []Type
		if err := json.Unmarshal(payload, &some); err != nil {
			return nil, fmt.Errorf("extension %s: %w", TypesID, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// typeNamed returns the kind of agent with a name; nil if the name is empty.
func (l *lead) typeNamed(name string) (*Type, error) {
	if name == "" {
		return nil, nil
	}
	i := slices.IndexFunc(l.types, func(t Type) bool { return t.Name == name })
	if i < 0 {
		return nil, refuse("unknown_type", "there is no type of agent with the name %q", name)
	}
	return &l.types[i], nil
}

// limit gives a new session the prompt, the tools and the model of a kind of agent. It only takes tools away: available are those of the
// session that starts it.
func (t *Type) limit(p *protocol.SessionNewParams, available []protocol.ToolRecord, knows func(string) bool) {
	p.Prompt = &t.Prompt
	p.Authority.Hidden = slices.Concat(p.Authority.Hidden, t.Without)
	if t.Model != "" && knows != nil && knows(t.Model) {
		p.Model = t.Model
	}
	if t.Tools == nil {
		return
	}
	kept := []string{submitError, submitResult}
	for _, r := range available {
		if r.Member && slices.Contains(t.Tools, r.Name) && (len(p.Authority.Tools) == 0 || slices.Contains(p.Authority.Tools, r.Name)) {
			kept = append(kept, r.Name)
		}
	}
	p.Authority.Tools = kept
}

// typesGuide is the part of the prompt about kinds of agents; empty if there are none.
func (l *lead) typesGuide() string {
	if len(l.types) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("# Types of agents\nPass one of these as type to spawn_agent, if a task fits its description.")
	for _, t := range l.types {
		b.WriteString("\n- " + t.Name)
		if about := t.Description; about != "" {
			b.WriteString(": " + strings.ToValidUTF8(about[:min(len(about), maxAbout)], ""))
		}
	}
	return b.String()
}

// maxAbout is the most of a description in the prompt, in bytes.
const maxAbout = 600

// withType adds the argument type to the schema of spawn_agent.
func (l *lead) withType(schema string) string {
	if len(l.types) == 0 {
		return schema
	}
	names := make([]string, len(l.types))
	for i, t := range l.types {
		names[i] = t.Name
	}
	list, err := json.Marshal(names)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return strings.Replace(schema, `"capability":`, `"type": {"type": "string", "enum": `+string(list)+`, "description": "type of agent; its default capability is peer"},
					"capability":`, 1)
}
