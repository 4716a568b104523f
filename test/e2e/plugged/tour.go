package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// tour builds the plugin.
type tour struct{}

// ID implements plugin.Factory.
func (tour) ID() string { return "tour" }

// Build implements plugin.Factory.
func (tour) Build(c plugin.BuildContext) (plugin.Plugin, error) {
	v := &visit{asked: filepath.Join(c.Cwd, "asked")}
	if len(c.Options) == 0 {
		return v, nil
	}
	return v, json.Unmarshal(c.Options, v)
}

// visit is the plugin in one session. Its state is a list of notes, which a command adds to.
type visit struct {
	Ticketed bool `json:"ticketed"` // option: reject turns without a ticket

	asked string // file with one line for each call of a hook

	mu       sync.Mutex
	notes    []string
	revision uint64
}

// Register implements plugin.Plugin.
func (v *visit) Register(r *plugin.Registrar) error {
	r.Tools().Add(v)
	r.Turn().Input(plugin.TurnInput{Schema: ticketSchema, Required: v.Ticketed})
	r.Turn().Before(v.before)
	r.Turn().Checkpoint(v.checkpoint)
	r.Turn().After(v.after)
	r.ToolCalls().Before(v.call)
	r.ToolResults().After(v.result)
	r.Output().Stream(v.stream)
	r.Context().Transform(0, v.transform)
	r.Session().On(v.happened)
	r.Operations().Query(protocol.OperationInfo{Name: "tour.notes"}, v.list)
	r.Operations().Command(protocol.OperationInfo{Name: "tour.note", Input: noteSchema}, v.note)
	hours := protocol.OperationInfo{Name: "tour.hours", Session: protocol.SessionOptional}
	r.Operations().Query(hours, func(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
		return json.RawMessage(`"nine to five"`), nil
	})
	ring := protocol.OperationInfo{Name: "tour.ring", Session: protocol.SessionForbidden}
	r.Operations().Command(ring, func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
		return &plugin.OperationResult{Output: json.RawMessage(`"rung"`)}, nil
	})
	return nil
}

var ticketSchema = json.RawMessage(`{"type":"object","properties":{"seat":{"type":"integer"}},"required":["seat"]}`)

var noteSchema = json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"},"queue":{"type":"string"}},"required":["text"]}`)

type noteArgs struct {
	Text  string `json:"text"`
	Queue string `json:"queue"` // an input for a turn of its own
}

// tell records the call of a hook.
func (v *visit) tell(format string, args ...any) error {
	f, err := os.OpenFile(v.asked, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintf(f, format+"\n", args...); err != nil {
		return err
	}
	return f.Close()
}

func (v *visit) list(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return json.Marshal(append([]string{}, v.notes...))
}

func (v *visit) note(_ context.Context, call *plugin.OperationCall) (*plugin.OperationResult, error) {
	var args noteArgs
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, err
	}
	v.add(args.Text)
	result := &plugin.OperationResult{Events: []protocol.PluginNode{{Type: "tour.noted", Body: call.Args}}}
	if args.Queue != "" {
		input := []protocol.InputPart{{Type: protocol.InputText, Text: args.Queue}}
		result.Queue = []plugin.QueueTurn{{Input: input, SourceKey: args.Queue}}
	}
	return result, nil
}

func (v *visit) add(note string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notes = append(v.notes, note)
	v.revision++
}

// Revision implements plugin.Stateful.
func (v *visit) Revision() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.revision
}

// Snapshot implements plugin.Stateful.
func (v *visit) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return json.Marshal(v.notes)
}

// Restore implements plugin.Stateful. The revision continues after the restored one, so that each
// revision stands for one state.
func (v *visit) Restore(_ context.Context, m plugin.Meta, _ *plugin.ArtifactReader) error {
	var notes []string
	if m.State != nil {
		if err := json.Unmarshal(m.State, &notes); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notes, v.revision = slices.Clip(notes), m.Revision
	return nil
}
