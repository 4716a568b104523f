package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// trail is a driver for which a reply "walk to PLACE" is a code cell. The input "detour" continues in
// another frame.
type trail struct{}

// ID implements plugin.Factory.
func (trail) ID() string { return "trail" }

// Build implements plugin.Factory.
func (trail) Build(plugin.BuildContext) (plugin.Plugin, error) {
	return plugin.Spec(func(r *plugin.Registrar) error {
		r.Protocol().Driver(walker{})
		r.Protocol().Session(plugin.ProtocolSession{ValidateTurn: pace, ApplyExtension: weather, BeforeModel: detour})
		r.Execution().Executor(&places{})
		return nil
	}), nil
}

// walker is the standard driver with code cells.
type walker struct{ standard.Driver }

// Reply implements turn.Driver.
func (w walker) Reply(v turn.View, reply provider.Reply) []turn.Action {
	msg := reply.Message()
	place, ok := strings.CutPrefix(msg.Answer(), "walk to ")
	if !ok {
		return w.Driver.Reply(v, reply)
	}
	return []turn.Action{turn.Append(msg), turn.StartCode(turn.Cell{Language: "walk", Source: place})}
}

// Cell implements turn.Driver. The model reads the printed output.
func (walker) Cell(_ turn.View, reply turn.CellReply) []turn.Action {
	part := protocol.Part{Kind: protocol.PartOutput, Text: reply.Printed + reply.Error}
	return []turn.Action{
		turn.Append(protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{part}}),
		turn.CheckpointThen(protocol.BoundaryAfterWork, nil),
	}
}

// pace reads the options of a turn.
func pace(_ context.Context, o *protocol.TurnOptions) error {
	options, err := plugin.DecodeTurnOptions[struct{ Pace string }](o, 1)
	if err == nil && options.Pace != "slow" {
		err = errors.New("the only pace is slow")
	}
	return err
}

// weather handles messages of clients to the driver.
func weather(_ context.Context, said json.RawMessage) error {
	if string(said) != `"sun"` {
		return errors.New("the trail is closed")
	}
	return nil
}

// detour switches to another frame if the input asks for it.
func detour(_ context.Context, b *plugin.BeforeModel) (*protocol.FrameSwitch, error) {
	last := b.View.Messages()[len(b.View.Messages())-1]
	if !strings.Contains(last.Parts[0].Text, "detour") {
		return nil, nil
	}
	return &protocol.FrameSwitch{Key: "hill", Task: "arrive at the hill"}, nil
}
