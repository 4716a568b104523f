// Package plan is the plugin with which the model keeps a plan that people see. It also
// adds the prompt of plan mode, in which a session only plans and changes nothing.
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

// ID is the id of the plugin, of its event, which carries a Plan, and of the query that
// returns the Plan.
const ID = authority.PlanOption

// Plan is an ordered list of steps.
type Plan struct {
	Steps []Step `json:"steps"`
}

// Step is one piece of work.
type Step struct {
	Text   string `json:"text"`
	Status Status `json:"status"`
}

// Status is the progress of a step.
type Status string

const (
	Pending    Status = "pending"
	InProgress Status = "inProgress"
	Completed  Status = "completed"
)

// Options are the settings of the plugin in the configuration of a session.
type Options struct {
	Mode Mode `json:"mode"`
}

// Mode limits the tools of a session. Empty: no limit.
type Mode string

// PlanOnly allows only tools that read, search or think. The engine enforces it, see
// authority.Planning; this plugin only adds the prompt.
const PlanOnly Mode = authority.PlanMode

// Factory builds the plugin of a session from its Options.
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
		return nil, fmt.Errorf("options: unknown mode %q; it must be %q or absent", o.Mode, PlanOnly)
	}
	return &instance{mode: o.Mode}, nil
}

// instance is the plugin of one session. It implements plugin.Stateful, so snapshots
// include the plan.
type instance struct {
	mode Mode

	// mu guards plan and revision, because tools, queries and snapshots run on different
	// goroutines.
	mu   sync.Mutex
	plan Plan
	// revision grows with each change. The engine takes a new snapshot when it differs.
	revision uint64
}

// Register implements plugin.Plugin.
func (i *instance) Register(r *plugin.Registrar) error {
	r.Tools().Add(i)
	r.ToolResults().After(publish)
	r.Operations().Query(protocol.OperationInfo{Name: ID, Description: "Returns the current plan of the session."}, i.query)
	r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 80, Tools: []string{toolName}, Content: guidance})
	if i.mode == PlanOnly {
		r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Priority: 81, Content: planOnly})
	}
	return nil
}

// query implements the query for clients. It returns a Plan.
func (i *instance) query(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return json.Marshal(i.plan.whole())
}

// whole returns the plan with a list of steps that is not nil, so that its JSON is an
// array.
func (p Plan) whole() Plan { return Plan{append([]Step{}, p.Steps...)} }

// set replaces the plan. The revision grows by one if the plan differs, and is at least
// atLeast.
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
