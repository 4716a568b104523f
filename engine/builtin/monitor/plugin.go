// Package monitor is the plugin with which the model watches commands: their lines wake the session, so that nobody has to poll.
package monitor

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// ID is the plugin's.
const ID = plugin.MonitorOwner

// Factory gives every session the tools.
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
	startTool = "start_monitor"
	stopTool  = "stop_monitor"
	listTool  = "list_monitors"
)

var startSchema = json.RawMessage(`{
	"type": "object",
	"properties": {
		"id": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "description": "a name for it"},
		"command": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "what sh shall run; each line that it writes to its standard output is news"},
		"cwd": {"type": "string", "description": "directory to run it in; the workspace if not given"},
		"persistent": {"type": "boolean", "description": "it has no time limit, and is begun again after a restart"},
		"timeoutMs": {"type": "integer", "minimum": 1, "maximum": 3600000, "description": "milliseconds after which it is stopped; 300000 if not given"},
		"notifyOnly": {"type": "boolean", "description": "its lines do not wake you; list_monitors tells of them"}
	},
	"required": ["id", "command"],
	"additionalProperties": false
}`)

var stopSchema = json.RawMessage(`{
	"type": "object",
	"properties": {"id": {"type": "string", "minLength": 1, "maxLength": 100}},
	"required": ["id"],
	"additionalProperties": false
}`)

var listSchema = json.RawMessage(`{
	"type": "object",
	"properties": {"updates": {"type": "boolean", "description": "also take the newest lines, each of which is told of once"}},
	"additionalProperties": false
}`)

const startDescription = "Watch something in the background: a command whose lines wake you in a turn of their own, so that you need not wait " +
	"or poll. Lines that come together are told of together; further ones wake you again once that turn is over. Make the command " +
	"write little: filter with grep --line-buffered and the like. Its standard error never wakes you."

// Tools implements tool.Provider. A start is made once for each call, however often that is repeated.
func (Factory) Tools() []tool.Tool {
	return []tool.Tool{
		{
			Manifest: protocol.ToolManifest{Name: startTool, Description: startDescription, Input: startSchema, Kind: protocol.ToolKindExecute, Like: "shell"},
			Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
		},
		{
			Manifest: protocol.ToolManifest{Name: stopTool, Description: "Stop a monitor, with all that its command has started.", Input: stopSchema, Kind: protocol.ToolKindOther},
			Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
		},
		{
			Manifest: protocol.ToolManifest{Name: listTool, Description: "List the monitors of this session: what they run, whether they do, and their newest line.", Input: listSchema, Kind: protocol.ToolKindRead},
			Contract: protocol.ToolContract{Replay: protocol.ReplaySafe},
		},
	}
}

// Execute implements tool.Provider.
func (Factory) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	monitors, err := plugin.ForTool(call).NeedMonitors()
	if err != nil {
		return tool.Result{}, err
	}
	key := protocol.Mutation{IdempotencyKey: fmt.Sprintf("%s:%s:%s", call.Name, call.TurnID, call.CallID)}
	switch call.Name {
	case startTool:
		return start(ctx, monitors, key, call.Args)
	case stopTool:
		return stop(ctx, monitors, key, call.Args)
	case listTool:
		return list(ctx, monitors, call.Args)
	}
	return tool.Result{}, fmt.Errorf("monitor: no tool %q", call.Name)
}

func start(ctx context.Context, monitors plugin.MonitorService, key protocol.Mutation, args json.RawMessage) (tool.Result, error) {
	var a struct {
		ID         string `json:"id"`
		Command    string `json:"command"`
		Cwd        string `json:"cwd"`
		Persistent bool   `json:"persistent"`
		TimeoutMs  int64  `json:"timeoutMs"`
		NotifyOnly bool   `json:"notifyOnly"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return tool.Result{}, err // the arguments fit the schema: this does not happen
	}
	spec := protocol.MonitorSpec{ID: a.ID, Command: a.Command, Cwd: a.Cwd, Persistent: a.Persistent, TimeoutMs: a.TimeoutMs, Restart: a.Persistent}
	if a.NotifyOnly {
		spec.Wake = protocol.WakeNotify
	}
	r, err := monitors.Start(ctx, &protocol.MonitorStartParams{Mutation: key, Spec: spec})
	if err != nil {
		return refused(err), nil
	}
	text := fmt.Sprintf("The monitor %s runs. Go on, or end your turn: it wakes you.", a.ID)
	if r.Existing {
		text = fmt.Sprintf("The monitor %s runs already.", a.ID)
	}
	return tool.Result{Output: protocol.Succeed(text)}, nil
}

func stop(ctx context.Context, monitors plugin.MonitorService, key protocol.Mutation, args json.RawMessage) (tool.Result, error) {
	var a struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return tool.Result{}, err
	}
	r, err := monitors.Stop(ctx, &protocol.MonitorStopParams{Mutation: key, MonitorID: a.ID})
	if err != nil {
		return refused(err), nil
	}
	return tool.Result{Output: protocol.Succeed(fmt.Sprintf("The monitor %s is %s.", a.ID, r.Monitor.State))}, nil
}

// listed is what the model reads.
type listed struct {
	Monitors []protocol.Monitor       `json:"monitors"`
	Updates  []protocol.MonitorUpdate `json:"updates,omitempty"`
}

func list(ctx context.Context, monitors plugin.MonitorService, args json.RawMessage) (tool.Result, error) {
	var a struct {
		Updates bool `json:"updates"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return tool.Result{}, err
	}
	now, err := monitors.Snapshot(ctx)
	if err != nil {
		return refused(err), nil
	}
	out := listed{Monitors: now.Data}
	if a.Updates {
		news, err := monitors.Updates(ctx)
		if err != nil {
			return refused(err), nil
		}
		out.Updates = news.Events
	}
	value, err := json.Marshal(out)
	return tool.Result{Output: protocol.ToolOutput{Status: protocol.OutputSuccess, Value: value}}, err
}

// refused is what the model reads of a request that was not done.
func refused(err error) tool.Result {
	return tool.Result{Output: protocol.Fail(protocol.FailInvalidRequest, "refused", err.Error(), protocol.FromTool)}
}
