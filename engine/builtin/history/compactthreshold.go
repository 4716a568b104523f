// Package history is the plugin that keeps long sessions within the model's context. It
// summarises old history when the session is compacted, and requests compaction when the
// context fills up. If a session wants it, it also shortens old tool outputs and
// attachments in what the model sees. Stored history does not change.
package history

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// ID is the id of the plugin.
const ID = protocol.HistoryID

// priority is the order of the plugin's hooks among those of other plugins.
const priority = 100

// Options are the settings of the plugin in the configuration of a session.
type Options struct {
	// Shorten enables shortening of old outputs and attachments when the context fills up.
	// It copies the history in each turn.
	Shorten bool `json:"shorten,omitempty"`
	// CompactAt is the share of the model's context at which history is compacted. Default:
	// 0.8. With 0, or if the size of the context is unknown, history is compacted only on
	// request.
	CompactAt *float64 `json:"compactAt,omitempty"`
	// Off disables the plugin and leaves compaction to others.
	Off bool `json:"off,omitempty"`
}

// compactAt is the default of Options.CompactAt.
const compactAt = 0.8

// compactAt returns the threshold with its default.
func (o Options) compactAt() float64 {
	if o.CompactAt == nil {
		return compactAt
	}
	return *o.CompactAt
}

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
	if at := o.compactAt(); at < 0 || at > 1 {
		return nil, fmt.Errorf("options: compactAt is %v; it must be between 0 and 1", at)
	}
	return plugin.Spec(func(r *plugin.Registrar) error {
		if !o.Off {
			r.Context().Compactor(priority, compact)
			r.Operations().Query(protocol.OperationInfo{Name: protocol.CompactionQuery, Description: "Says what a compaction of the session would summarize and keep."}, query)
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
