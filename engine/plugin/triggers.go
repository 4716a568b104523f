package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// TriggerEvent is an external event that can wake a session. Resource type, alias and event identify it. The source
// type, alias.event, must also be unique across resource types.
type TriggerEvent struct {
	ResourceType string
	Alias        string
	Event        string
	Description  string
	Payload      json.RawMessage // JSON Schema of the payload
}

// SourceType returns alias.event, the name that triggers use to subscribe.
func (e TriggerEvent) SourceType() string { return e.Alias + "." + e.Event }

// triggers are trigger events by source type.
type triggers map[string]contribution[TriggerEvent]

// TriggerGroup registers trigger events.
type TriggerGroup struct{ r *Registrar }

// Triggers returns the group that registers trigger events.
func (r *Registrar) Triggers() TriggerGroup { return TriggerGroup{r} }

// Event declares a trigger event. Source types of lashd itself are reserved.
func (g TriggerGroup) Event(e TriggerEvent) {
	c := g.r.in()
	if c.triggers == nil {
		c.triggers = triggers{}
	}
	other, taken := c.triggers[e.SourceType()]
	switch {
	case IsOwnTrigger(e.SourceType()):
		g.r.fail(fmt.Errorf("registers the trigger source type %s, which is reserved for lashd", e.SourceType()))
	case e.ResourceType == "" || e.Alias == "" || e.Event == "":
		g.r.fail(fmt.Errorf("registers the trigger event %s of %q, but its resource type, alias and event name are all required", e.SourceType(), e.ResourceType))
	case taken:
		g.r.fail(e.clash(other))
	default:
		c.triggers[e.SourceType()] = contribution[TriggerEvent]{plugin: g.r.owner, do: e}
	}
}

// clash returns the error for an event whose source type is taken.
func (e TriggerEvent) clash(other contribution[TriggerEvent]) error {
	if other.do.ResourceType == e.ResourceType {
		return fmt.Errorf("registers the trigger event %s of %s, but plugin %s already registered it", e.SourceType(), e.ResourceType, other.plugin)
	}
	return fmt.Errorf("registers the trigger source type %s for %s, but plugin %s already registered it for %s", e.SourceType(), e.ResourceType, other.plugin, other.do.ResourceType)
}

// Triggers returns the trigger events of the session, sorted by source type.
func (s *Session) Triggers() []TriggerEvent {
	var list []TriggerEvent
	for e := range maps.Values(s.triggers) {
		list = append(list, e.do)
	}
	slices.SortFunc(list, func(a, b TriggerEvent) int { return cmp.Compare(a.SourceType(), b.SourceType()) })
	return own(list)
}

// OwnTriggers returns the events that lashd itself declares in every session.
func OwnTriggers() []TriggerEvent {
	return []TriggerEvent{
		{ResourceType: "schedule", Alias: "cron", Event: "tick", Description: "the trigger's schedule is due", Payload: json.RawMessage(
			`{"type":"object","properties":{"scheduledAtMs":{"type":"integer"},"late":{"type":"boolean"},"leftOut":{"type":"boolean"}},"required":["scheduledAtMs"]}`)},
		{ResourceType: "workspace", Alias: "file", Event: "changed", Description: "files were created, changed or removed", Payload: json.RawMessage(
			`{"type":"object","properties":{"dir":{"type":"string"},"paths":{"type":"array","items":{"type":"string"}},"more":{"type":"integer"}},"required":["dir","paths"]}`)},
		{ResourceType: "client", Alias: "manual", Event: "emitted", Description: "a client emits the event, with any payload"},
	}
}

// IsOwnTrigger reports whether a source type belongs to lashd itself.
func IsOwnTrigger(sourceType string) bool {
	return slices.ContainsFunc(OwnTriggers(), func(e TriggerEvent) bool { return e.SourceType() == sourceType })
}
