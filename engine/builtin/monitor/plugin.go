// Package monitor is the plugin with the monitor tools. A monitor is a background command
// whose output lines wake the session, so the model does not have to poll.
package monitor

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/sandbox"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// ID is the id of the plugin.
const ID = plugin.MonitorOwner

// Factory builds the plugin. The engine holds the monitors, so the plugin itself has no
// state.
type Factory struct{}

// ID implements plugin.Factory.
func (Factory) ID() string { return ID }

// Build implements plugin.Factory.
func (f Factory) Build(plugin.BuildContext) (plugin.Plugin, error) { return f, nil }

// Register implements plugin.Plugin.
func (f Factory) Register(r *plugin.Registrar) error {
	r.Tools().Add(f)
	return nil
}

const (
	// Names of the tools.
	startTool = "start_monitor"
	stopTool  = "stop_monitor"
	listTool  = "list_monitors"
)

// startSchema is the schema of start_monitor. Its limits are those of task.CheckMonitor.
var startSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"id": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "description": "name of the monitor"},
		"command": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "command for sh; each line that it writes to standard output is an event"},
		"cwd": {"type": "string", "description": "working directory (default: the workspace)"},
		"persistent": {"type": "boolean", "description": "run without a time limit, and start again after a restart of lashd"},
		"timeoutMs": {"type": "integer", "minimum": 1, "maximum": 3600000, "description": "milliseconds after which it is stopped (default: 300000)"},
		"notifyOnly": {"type": "boolean", "description": "do not wake you; read the lines with list_monitors"},
		"outside": {"type": "boolean", "description": "run it outside the sandbox, if the session has one; a person is asked"},
		"hosts": {"type": "array", "items": {"type": "string"}, "maxItems": 32, "description": "hosts that the command needs to reach from the sandbox by HTTP or HTTPS, such as example.com or *.example.com:8080; a person is asked unless rules allow them"}
	},
	"required": ["id", "command"],
	"additionalProperties": false
}`)

// stopSchema is the schema of stop_monitor. Unlike start_monitor it accepts any id of up to 100
// characters, so the model gets the engine's error for an unknown one.
var stopSchema = json.RawMessage(`{
	"type": "object",
	"properties": {"id": {"type": "string", "minLength": 1, "maxLength": 100}},
	"required": ["id"],
	"additionalProperties": false
}`)

// listSchema is the schema of list_monitors.
var listSchema = json.RawMessage(`{
	"type": "object",
	"properties": {"updates": {"type": "boolean", "description": "also return new lines; each line is returned once"}},
	"additionalProperties": false
}`)

// startDescription is the description of start_monitor that the model reads.
const startDescription = "Run a command in the background and wake you with the lines that it prints, so that you need not wait " +
	"or poll. Lines printed together arrive in one turn; later lines wake you again after that turn. Make the command " +
	"print little: filter with grep --line-buffered, for example. Standard error never wakes you."

// Tools implements tool.Provider. The tools are safe to repeat: the call's id is the
// idempotency key of the request.
func (Factory) Tools() []tool.Tool {
	return []tool.Tool{
		{
			Manifest: protocol.ToolManifest{Name: startTool, Description: startDescription, Input: startSchema, Kind: protocol.ToolKindExecute, Like: "shell"},
			Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
		},
		{
			Manifest: protocol.ToolManifest{Name: stopTool, Description: "Stop a monitor and all processes that its command started.", Input: stopSchema, Kind: protocol.ToolKindOther},
			Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
		},
		{
			Manifest: protocol.ToolManifest{Name: listTool, Description: "List the monitors of this session with their commands, states and newest lines.", Input: listSchema, Kind: protocol.ToolKindRead},
			Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
		},
	}
}

// Programs implements tool.Confiner.
func (Factory) Programs(name string, args json.RawMessage) tool.Programs {
	var a struct{ Outside bool }
	switch {
	case name != startTool:
		return tool.ProgramsUnknown
	case json.Unmarshal(args, &a) != nil || a.Outside || sandbox.Available() != nil:
		return tool.ProgramsOutside
	}
	return tool.ProgramsInside
}

// Execute implements tool.Provider.
// It may run on several goroutines at once. Errors of the engine become failed results that the
// model reads; only a missing capability or an unknown tool is an error.
func (Factory) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	monitors, err := plugin.ForTool(call).NeedMonitors()
	if err != nil {
		return tool.Result{}, err
	}
	key := protocol.Mutation{IdempotencyKey: fmt.Sprintf("%s:%s:%s", call.Name, call.TurnID, call.CallID)}
	switch call.Name {
	case startTool:
		return start(ctx, monitors, key, call)
	case stopTool:
		return stop(ctx, monitors, key, call.Args)
	case listTool:
		return list(ctx, monitors, call.Args)
	}
	return tool.Result{}, fmt.Errorf("monitor: no tool %q", call.Name)
}

// start is start_monitor. Starting a monitor that already runs with the same spec succeeds;
// persistent monitors also restart with the daemon.
// The result does not wait for output: lines arrive later, as wakes.
func start(ctx context.Context, monitors plugin.MonitorService, key protocol.Mutation, call tool.Invocation) (tool.Result, error) {
	var a struct {
		ID         string   `json:"id"`
		Command    string   `json:"command"`
		Cwd        string   `json:"cwd"`
		Persistent bool     `json:"persistent"`
		TimeoutMs  int64    `json:"timeoutMs"`
		NotifyOnly bool     `json:"notifyOnly"`
		Outside    bool     `json:"outside"`
		Hosts      []string `json:"hosts"`
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return tool.Result{}, err // cannot happen: the arguments match the schema
	}
	if a.Outside && len(a.Hosts) > 0 {
		return tool.Result{Output: protocol.Fail(protocol.FailInvalidRequest, "invalid_arguments",
			"arguments of start_monitor: outside and hosts exclude each other: outside of the sandbox a command reaches every host", protocol.FromTool)}, nil
	}
	spec := protocol.MonitorSpec{ID: a.ID, Command: a.Command, Cwd: a.Cwd, Sandbox: call.Sandbox, Network: call.Network, Persistent: a.Persistent, TimeoutMs: a.TimeoutMs, Restart: a.Persistent}
	if a.NotifyOnly {
		spec.Wake = protocol.WakeNotify
	}
	r, err := monitors.Start(ctx, &protocol.MonitorStartParams{Mutation: key, Spec: spec})
	if err != nil {
		return failure(err), nil
	}
	text := fmt.Sprintf("The monitor %s is running. Continue, or end your turn; the monitor wakes you.", a.ID)
	if r.Existing {
		text = fmt.Sprintf("The monitor %s is already running.", a.ID)
	}
	return tool.Result{Output: protocol.Succeed(text)}, nil
}

// stop is stop_monitor. The result has the state of the monitor after the request.
func stop(ctx context.Context, monitors plugin.MonitorService, key protocol.Mutation, args json.RawMessage) (tool.Result, error) {
	var a struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return tool.Result{}, err
	}
	r, err := monitors.Stop(ctx, &protocol.MonitorStopParams{Mutation: key, MonitorID: a.ID})
	if err != nil {
		return failure(err), nil
	}
	return tool.Result{Output: protocol.Succeed(fmt.Sprintf("The monitor %s is %s.", a.ID, r.Monitor.State))}, nil
}

// listed is the structured result of list_monitors.
// Updates is absent unless the call asked for it and there are new lines.
type listed struct {
	Monitors []protocol.Monitor       `json:"monitors"`
	Updates  []protocol.MonitorUpdate `json:"updates,omitempty"`
}

// list is list_monitors. With updates it also takes the new lines, which later calls do not
// return again.
func list(ctx context.Context, monitors plugin.MonitorService, args json.RawMessage) (tool.Result, error) {
	var a struct {
		Updates bool `json:"updates"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return tool.Result{}, err
	}
	now, err := monitors.Snapshot(ctx)
	if err != nil {
		return failure(err), nil
	}
	out := listed{Monitors: now.Data}
	if a.Updates {
		news, err := monitors.Updates(ctx)
		if err != nil {
			return failure(err), nil
		}
		out.Updates = news.Events
	}
	value, err := json.Marshal(out)
	return tool.Result{Output: protocol.ToolOutput{Status: protocol.OutputSuccess, Value: value}}, err
}

// failure returns the result of a rejected request. The model reads the reason.
// The class is always invalidRequest, whatever the cause, so the text must say what to change.
func failure(err error) tool.Result {
	return tool.Result{Output: protocol.Fail(protocol.FailInvalidRequest, "refused", err.Error(), protocol.FromTool)}
}
