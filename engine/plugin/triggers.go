package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// TriggerEvent is something outside that may wake a session. Its key is resource type, alias and event; its source type,
// alias.event, is unique too, whatever the resource type.
type TriggerEvent struct {
	ResourceType string
	Alias        string
	Event        string
	Description  string
	Payload      json.RawMessage // JSON Schema of what comes with it
}

// SourceType is the event's name for whoever waits for it.
func (e TriggerEvent) SourceType() string { return e.Alias + "." + e.Event }

// triggers are trigger events by source type.
type triggers map[string]contribution[TriggerEvent]

// TriggerGroup takes trigger events.
type TriggerGroup struct{ r *Registrar }

// Triggers is where trigger events are contributed.
func (r *Registrar) Triggers() TriggerGroup { return TriggerGroup{r} }

// Event declares a trigger event.
func (g TriggerGroup) Event(e TriggerEvent) {
	c := g.r.in()
	if c.triggers == nil {
		c.triggers = triggers{}
	}
	other, taken := c.triggers[e.SourceType()]
	switch {
	case IsOwnTrigger(e.SourceType()):
		g.r.fail(fmt.Errorf("registers the trigger source type %s, which is lashd's own", e.SourceType()))
	case e.ResourceType == "" || e.Alias == "" || e.Event == "":
		g.r.fail(fmt.Errorf("registers a trigger event %s of %q without a name for each part", e.SourceType(), e.ResourceType))
	case taken:
		g.r.fail(e.clash(other))
	default:
		c.triggers[e.SourceType()] = contribution[TriggerEvent]{plugin: g.r.owner, do: e}
	}
}

func (e TriggerEvent) clash(other contribution[TriggerEvent]) error {
	if other.do.ResourceType == e.ResourceType {
		return fmt.Errorf("registers the trigger event %s of %s, which the plugin %s has registered already", e.SourceType(), e.ResourceType, other.plugin)
	}
	return fmt.Errorf("registers the trigger source type %s for %s, which the plugin %s has registered for %s already", e.SourceType(), e.ResourceType, other.plugin, other.do.ResourceType)
}

// Triggers are the session's trigger events, in the order of their source types.
func (s *Session) Triggers() []TriggerEvent {
	var list []TriggerEvent
	for e := range maps.Values(s.triggers) {
		list = append(list, e.do)
	}
	slices.SortFunc(list, func(a, b TriggerEvent) int { return cmp.Compare(a.SourceType(), b.SourceType()) })
	return own(list)
}

// OwnTriggers are the events that lashd itself declares, whatever plugins there are.
func OwnTriggers() []TriggerEvent {
	return []TriggerEvent{
		{ResourceType: "schedule", Alias: "cron", Event: "tick", Description: "a time of the trigger's schedule has come", Payload: json.RawMessage(
			`{"type":"object","properties":{"scheduledAtMs":{"type":"integer"},"late":{"type":"boolean"},"leftOut":{"type":"boolean"}},"required":["scheduledAtMs"]}`)},
		{ResourceType: "workspace", Alias: "file", Event: "changed", Description: "files were made, changed or removed", Payload: json.RawMessage(
			`{"type":"object","properties":{"dir":{"type":"string"},"paths":{"type":"array","items":{"type":"string"}},"more":{"type":"integer"}},"required":["dir","paths"]}`)},
		{ResourceType: "client", Alias: "manual", Event: "emitted", Description: "a client says so, with whatever payload"},
	}
}

// IsOwnTrigger tells whether a source type is lashd's own.
func IsOwnTrigger(sourceType string) bool {
	return slices.ContainsFunc(OwnTriggers(), func(e TriggerEvent) bool { return e.SourceType() == sourceType })
}
