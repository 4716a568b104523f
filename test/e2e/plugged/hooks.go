package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func (v *visit) before(_ context.Context, tc *plugin.TurnContext) ([]plugin.Directive, error) {
	if ticket := tc.Inputs["tour"]; ticket != nil {
		return nil, v.tell("ticket %s", ticket)
	}
	if tc.View != nil && tc.View.TurnOptions != nil {
		return nil, v.tell("options %s", tc.View.TurnOptions.Payload)
	}
	return nil, v.tell("before turn")
}

func (v *visit) after(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) {
	return nil, v.tell("after turn")
}

// call denies forbidden commands and replaces PLACEHOLDER by a command.
func (v *visit) call(_ context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
	if tc.Tool != "shell" {
		return nil, v.tell("%s called", tc.Tool)
	}
	if bytes.Contains(tc.Args, []byte("forbidden")) {
		denied := protocol.Fail(protocol.FailPermission, "tour_forbidden", "the tour does not go there", protocol.FromPlugin)
		return []plugin.Directive{plugin.ShortCircuit(denied)}, v.tell("denied")
	}
	if bytes.Contains(tc.Args, []byte("PLACEHOLDER")) {
		args := bytes.ReplaceAll(tc.Args, []byte("PLACEHOLDER"), []byte("printf x >> ran; echo fragile"))
		return []plugin.Directive{plugin.ReplaceArgs(args)}, v.tell("replaced")
	}
	return nil, v.tell("allowed")
}

func (v *visit) result(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) {
	return nil, v.tell("result")
}

// checkpoint adds a message about a fragile result.
func (v *visit) checkpoint(_ context.Context, cc *plugin.CheckpointContext) ([]plugin.Directive, error) {
	if err := v.tell("checkpoint %s", cc.Kind); err != nil || !fragile(cc.View) {
		return nil, err
	}
	return []plugin.Directive{plugin.Enqueue(plugin.Message{Role: protocol.RoleUser, Content: "Mind the step."})}, nil
}

// fragile reports whether the newest message is a result that contains "fragile".
func fragile(v *plugin.View) bool {
	if v == nil || len(v.Messages()) == 0 {
		return false
	}
	for _, p := range v.Messages()[len(v.Messages())-1].Parts {
		if p.Result != nil && strings.Contains(p.Result.Output.Text, "fragile") {
			return true
		}
	}
	return false
}

// stream masks a word that is complete within one chunk.
func (v *visit) stream(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) {
	c.Text = strings.ReplaceAll(c.Text, "sekret", "******")
	return c, nil
}

// long is the number of messages from which on the past counts as long.
const long = 6

// transform replaces a long past by one sentence in the model's context.
func (v *visit) transform(_ context.Context, _ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
	if n := len(pc.Messages); n > long {
		part := protocol.Part{Kind: protocol.PartText, Text: fmt.Sprintf("Earlier there were %d messages.", n)}
		pc.Messages = []protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{part}}}
	}
	return pc, nil
}

// happened records that a turn has been stored, which is when its state is durable.
func (v *visit) happened(_ context.Context, e *plugin.LifecycleEvent) error {
	if e.Kind == plugin.TurnPersisted && e.Report != nil && e.Report.Outcome != nil && e.Report.Outcome.Text == "remember" {
		v.add("remembered")
	}
	return nil
}
