package engine

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// checkPluginInputs refuses what is too large, whoever it is for.
func checkPluginInputs(in protocol.PluginInputs) error {
	size := 0
	for id, value := range in {
		size += len(id) + len(value)
	}
	if size > protocol.MaxInput {
		return bad("/pluginInputs", "has %d bytes, at most %d; write large things as artifacts", size, protocol.MaxInput)
	}
	return nil
}

// takes refuses inputs for plugins that no turn can begin with. Plugins that cannot be built refuse nothing: with them the turn
// fails. Those that take too long refuse everything: it can be tried again.
func (st *state) takes(in protocol.PluginInputs) error {
	t, err := st.opened(st.row.Config)
	switch {
	case isSlow(err):
		return err
	case err != nil:
		return nil
	}
	err = t.plugins.CheckInputs(in)
	if e, ok := errors.AsType[*plugin.InputError](err); ok {
		return bad("/pluginInputs/"+pointerTo.Replace(e.Plugin), "%s", e.Reason)
	}
	return err
}

// pointerTo writes a name as a part of a JSON pointer.
var pointerTo = strings.NewReplacer("~", "~0", "/", "~1")

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
