package queue

import (
	"maps"
	"slices"

	"lashd/rpc/protocol"
)

// PluginInputs merges the plugin inputs of the inputs that a turn begins with. For each plugin the last one counts.
func PluginInputs(inputs []protocol.QueuedInput, ids []protocol.InputID) protocol.PluginInputs {
	all := protocol.PluginInputs{}
	for _, in := range inputs {
		if slices.Contains(ids, in.ID) {
			maps.Copy(all, in.PluginInputs)
		}
	}
	return all
}
