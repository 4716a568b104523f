// Package plan is the plugin with which the model keeps a plan where people see it. It also has the mode in which a session
// plans and changes nothing.
package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// ID is the plugin's. It is also the name of its event, which carries a Plan, and of the query that answers one.
const ID = authority.PlanOption

// Plan is what is to be done, in order.
type Plan struct {
	Steps []Step `json:"steps"`
}

// Step is one thing to do.
type Step struct {
	Text   string `json:"text"`
	Status Status `json:"status"`
}

// Status is how far a step is.
type Status string

const (
	Pending    Status = "pending"
	InProgress Status = "inProgress"
	Completed  Status = "completed"
)

// Options are the plugin's settings in the configuration of a session.
type Options struct {
	Mode Mode `json:"mode"`
}

// Mode says what a session may do.
type Mode string

// PlanOnly lets the session call only tools that read, search or think. The engine sees to that: see authority.Planning.
const PlanOnly Mode = authority.PlanMode

// Factory builds the plans of sessions.
type Factory struct{}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Build implements plugin.Factory.
func (Factory) Build(ctx plugin.BuildContext) (plugin.Plugin, error) {
	var o Options
	if len(ctx.Options) > 0 {
		if err := json.Unmarshal(ctx.Options, &o); err != nil {
			return nil, fmt.Errorf("options: %w", err)
		}
	}
	if o.Mode != "" && o.Mode != PlanOnly {
		return nil, fmt.Errorf("options: the mode %q is not known; there is %q, or none", o.Mode, PlanOnly)
	}
	return &instance{mode: o.Mode}, nil
}

// instance is the plan of one session.
type instance struct {
	mode Mode

	mu       sync.Mutex
	plan     Plan
	revision uint64
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	r.Tools().Add(i)
	r.ToolResults().After(tell)
	r.Operations().Query(protocol.OperationInfo{Name: ID, Description: "The plan of the session as it is."}, i.query)
	r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 80, Tools: []string{toolName}, Content: guidance})
	if i.mode == PlanOnly {
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 81, Content: planOnly})
	}
	return nil
}

func (i *instance) query(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return json.Marshal(i.plan.whole())
}

// whole is a plan whose steps are a list, if an empty one.
func (p Plan) whole() Plan { return Plan{append([]Step{}, p.Steps...)} }

// set makes p the plan. A revision of at least atLeast, and of one more than now if anything changes, says so.
func (i *instance) set(p Plan, atLeast uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !slices.Equal(i.plan.Steps, p.Steps) {
		i.revision++
	}
	i.plan, i.revision = p, max(i.revision, atLeast)
}

// Revision implements plugin.Stateful.
func (i *instance) Revision() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.revision
}

// Snapshot implements plugin.Stateful.
func (i *instance) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	return i.query(context.Background(), nil)
}

// Restore implements plugin.Stateful.
func (i *instance) Restore(_ context.Context, meta plugin.Meta, _ *plugin.ArtifactReader) error {
	var p Plan
	if meta.State != nil {
		if err := json.Unmarshal(meta.State, &p); err != nil {
			return err
		}
	}
	i.set(p, meta.Revision)
	return nil
}
