package outputbudget

import (
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// Factory makes the budget the result projector of every session.
type Factory struct{ Limit Limit }

// ID implements plugin.Factory.
func (Factory) ID() string { return "outputBudget" }

// Build implements plugin.Factory.
func (f Factory) Build(plugin.BuildContext) (plugin.Plugin, error) { return f, nil }

// Register implements plugin.Plugin.
func (f Factory) Register(r *plugin.Registrar) error {
	r.ResultProjector(func(_ string, out protocol.ToolOutput) protocol.ToolOutput { return Bound(out, f.Limit) })
	return nil
}
