//go:build unix

package process_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"lashd/engine/plugin"
)

func (g *guest) hook(name string, r *room, p asked) (any, error) {
	var c struct {
		Text   string            `json:"text"`
		Args   json.RawMessage   `json:"args"`
		Input  []json.RawMessage `json:"input"`
		Config json.RawMessage   `json:"config"`
		Output json.RawMessage   `json:"output"`
		Parts  json.RawMessage   `json:"parts"`
		Stop   string            `json:"stop"`
	}
	if err := json.Unmarshal(p.Context, &c); err != nil {
		return nil, err
	}
	switch name {
	case "prompt":
		return map[string]any{"prompts": []plugin.Prompt{{Slot: plugin.SlotGuidance, Content: fmt.Sprintf("%d notes", len(r.Notes))}}}, nil
	case "beforeTurn":
		if len(c.Input) > 0 && strings.Contains(string(c.Input[0]), "curfew") {
			return directives(map[string]any{"kind": "abort_turn", "code": "curfew", "message": "go to bed"}), nil
		}
	case "beforeToolCall":
		if strings.Contains(string(c.Args), "secret") {
			return directives(map[string]any{"kind": "replace_tool_args", "args": map[string]any{"text": "masked"}}), nil
		}
		if strings.Contains(string(c.Args), "forbidden") {
			return directives(map[string]any{"kind": "short_circuit_tool", "output": map[string]any{
				"status": "failure", "text": "no", "failure": map[string]any{"class": "permissionDenied", "code": "forbidden", "message": "no", "source": "plugin"},
			}}), nil
		}
	case "checkpoint", "afterToolCall", "afterTurn":
		return directives(map[string]any{"kind": "emit_trace", "trace": map[string]any{"name": name}}), nil
	case "assistantStream":
		return map[string]any{"text": strings.ToUpper(c.Text)}, nil
	case "assistantResponse":
		return map[string]any{"parts": c.Parts, "stop": c.Stop, "events": []any{map[string]any{"kind": "custom", "name": "seen"}}}, nil
	case "projectToolResult":
		return map[string]any{"output": c.Output}, nil
	case "configChanged":
		return map[string]any{"config": c.Config}, nil
	case "catalog":
		return g.omit(r), nil
	case "projectProse":
		return map[string]any{"text": strings.ReplaceAll(c.Text, "<CODE>", "")}, nil
	case "transformContext":
		err := withoutView(&p.Context)
		return p.Context, err
	}
	return struct{}{}, nil
}

// omit leaves out the tools that are noted, and one more.
func (g *guest) omit(r *room) any {
	g.tell("log", map[string]any{"level": "INFO", "message": "asked for the catalog"})
	return map[string]any{"remove": append([]string{"hidden"}, r.Notes...)}
}

func withoutView(raw *json.RawMessage) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(*raw, &all); err != nil {
		return err
	}
	delete(all, "view")
	*raw = mustJSON(all)
	return nil
}

func directives(list ...any) any { return map[string]any{"directives": list} }
