package outputbudget

import (
	"context"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// Factory builds the plugin, which applies Bound to each tool result.
type Factory struct{ Limit Limit }

// ID implements plugin.Factory.
func (Factory) ID() string { return "outputBudget" }

// Build implements plugin.Factory.
func (f Factory) Build(plugin.BuildContext) (plugin.Plugin, error) { return f, nil }

// Register implements plugin.Plugin. The projector changes only what the model sees; the
// stored result stays complete. Code needs complete outputs and reads them outside of the
// model's context, so those of calls in code cells are not cut.
func (f Factory) Register(r *plugin.Registrar) error {
	r.ToolResults().Projector(func(_ context.Context, call *plugin.ToolResultContext) (protocol.ToolOutput, error) {
		if call.Cell {
			return call.Output, nil
		}
		return Bound(call.Output, f.Limit), nil
	})
	return nil
}
