package engine

import (
	"errors"
	"maps"
	"slices"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// takes refuses inputs for plugins that no turn can begin with. Without plugins it refuses nothing.
func (l *lease) takes(in protocol.PluginInputs) error {
	if l == nil {
		return nil
	}
	err := l.plugins.CheckInputs(in)
	if e, ok := errors.AsType[*plugin.InputError](err); ok {
		return param.Bad("/pluginInputs/"+param.Escape(e.Plugin), "%s", e.Reason)
	}
	return err
}

// pluginInputs are what plugins are given with a turn: of all inputs that it begins with, the newest for each.
func pluginInputs(inputs []protocol.QueuedInput, ids []protocol.InputID) protocol.PluginInputs {
	all := protocol.PluginInputs{}
	for _, in := range inputs {
		if slices.Contains(ids, in.ID) {
			maps.Copy(all, in.PluginInputs)
		}
	}
	return all
}
