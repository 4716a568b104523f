package main

import (
	"context"
	"os"
	"path/filepath"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Tools implements tool.Provider: a porter, whose call is completed later from outside, and a gate to
// another frame.
func (v *visit) Tools() []tool.Tool {
	return []tool.Tool{{
		Manifest: protocol.ToolManifest{Name: "porter", Description: "Sends a porter."},
		Contract: protocol.ToolContract{Replay: protocol.ReplayNever, MayDefer: true},
	}, {
		Manifest: protocol.ToolManifest{Name: "gate", Description: "Leads to the garden."},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
	}}
}

// Execute implements tool.Provider.
func (v *visit) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	if call.Name == "gate" {
		garden := &protocol.FrameSwitch{Key: "garden", Task: "look at the garden"}
		control := &protocol.ToolControl{Kind: protocol.ControlSwitchFrame, Frame: garden}
		return tool.Result{Output: protocol.Succeed("this way"), Control: control}, nil
	}
	if err := v.tell("porter sent"); err != nil {
		return tool.Result{}, err
	}
	key, err := call.Host.CompletionKey(ctx, protocol.Deferral{})
	if err == nil {
		err = os.WriteFile(filepath.Join(filepath.Dir(v.asked), "key"), []byte(key), 0o600) // the test completes the call with this key
	}
	return tool.Result{Pending: true}, err
}
