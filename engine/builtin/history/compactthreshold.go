// Package history is the plugin that keeps long sessions within the model's context: what the model sees of old tool outputs
// and attachments is shortened when the context fills, if a session wants that, and history is summarised when it is to be
// compacted. What is stored stays as it is.
package history

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
)

// ID is the plugin's.
const ID = "history"

const priority = 100

// Options are the plugin's settings in the configuration of a session.
type Options struct {
	// Shorten has old outputs and attachments shortened when the context fills. It costs a copy of the history in each turn.
	Shorten bool `json:"shorten,omitempty"`
	// CompactAt is the part of the model's context that history may take before it is compacted; absent: 0.8. With 0, only who
	// asks for it has it compacted. Where the size of the context is not known, nobody else does.
	CompactAt *float64 `json:"compactAt,omitempty"`
	// Off leaves history as it is, and its compaction to others.
	Off bool `json:"off,omitempty"`
}

const compactAt = 0.8

func (o Options) compactAt() float64 {
	if o.CompactAt == nil {
		return compactAt
	}
	return *o.CompactAt
}

// Factory builds the history of sessions.
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
	if at := o.compactAt(); at < 0 || at > 1 {
		return nil, fmt.Errorf("options: compactAt is %v, and not between 0 and 1", at)
	}
	return plugin.Spec(func(r *plugin.Registrar) error {
		if !o.Off {
			r.Context().Compactor(priority, compact)
		}
		if at := o.compactAt(); !o.Off && at > 0 {
			r.Turn().After(func(_ context.Context, sum *plugin.TurnSummary) ([]plugin.Directive, error) {
				if sum.Window <= 0 || float64(sum.Context) < at*float64(sum.Window) {
					return nil, nil
				}
				return []plugin.Directive{plugin.Compact()}, nil
			})
		}
		if !o.Off && o.Shorten {
			r.Context().Transform(priority, elide)
		}
		return nil
	}), nil
}
