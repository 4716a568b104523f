//go:build unix

package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// compiled is the plugin of testdata as one that is compiled in.
type compiled struct{}

func (compiled) ID() string { return "notes" }

func (compiled) Build(plugin.BuildContext) (plugin.Plugin, error) {
	return &notes{list: []string{}}, nil
}

// notes is the plugin in one session.
type notes struct {
	mu       sync.Mutex
	list     []string
	revision uint64
}

func (n *notes) Register(r *plugin.Registrar) error {
	r.Tools().Add(n)
	r.Prompt().Hook(func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) {
		return []plugin.Prompt{{Slot: plugin.SlotGuidance, Content: fmt.Sprintf("%d notes", len(n.all()))}}, nil
	})
	r.Output().Stream(func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) {
		c.Text = strings.ToUpper(c.Text)
		return c, nil
	})
	r.Catalog().Contribute(func(context.Context, *plugin.CatalogContext) ([]string, error) {
		if len(n.all()) > 0 {
			return []string{"hidden", "spare"}, nil
		}
		return []string{"hidden"}, nil
	})
	r.Protocol().Prose(func(_ context.Context, text string) (string, error) {
		return strings.ReplaceAll(text, "<code>", ""), nil
	})
	r.Tasks().Handler("build", build)
	r.Operations().Query(protocol.OperationInfo{Name: "notes.list"}, func(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
		return json.Marshal(n.all())
	})
	r.Operations().Command(protocol.OperationInfo{Name: "notes.add"}, func(_ context.Context, c *plugin.OperationCall) (*plugin.OperationResult, error) {
		n.add(string(c.Args))
		return &plugin.OperationResult{}, nil
	})
	return nil
}

func (n *notes) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list[:len(n.list):len(n.list)]
}

func (n *notes) add(text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, text)
	n.revision++
}

func (n *notes) Tools() []tool.Tool {
	return []tool.Tool{{Manifest: protocol.ToolManifest{Name: "note", Description: "Note something."}}}
}

func (n *notes) Execute(ctx context.Context, call tool.Invocation) (tool.Result, error) {
	var args struct {
		Mode, Text string
		Params     json.RawMessage
	}
	if err := json.Unmarshal(call.Args, &args); err == nil && args.Mode == "host" {
		return asked(ctx, plugin.ForTool(call), args.Text, args.Params)
	}
	n.add(string(call.Args))
	return tool.Result{Output: protocol.Succeed("noted")}, nil
}

func (n *notes) Revision() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.revision
}

func (n *notes) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	return json.Marshal(n.all())
}

func (n *notes) Restore(_ context.Context, m plugin.Meta, _ *plugin.ArtifactReader) error {
	list := []string{}
	if m.State != nil {
		if err := json.Unmarshal(m.State, &list); err != nil {
			return err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = list
	return nil
}

// build does the work of a task.
func build(ctx context.Context, run *plugin.TaskRun) *protocol.TaskOutcome {
	for range 2 {
		told := &plugin.TaskTold{TaskParams: protocol.TaskParams{TaskID: run.Task.ID}, Name: "seen", Key: "once", Payload: json.RawMessage(`{"n":1}`)}
		if _, err := run.Host.Tasks.TellTask(ctx, told); err != nil {
			return &protocol.TaskOutcome{Kind: protocol.TaskError, Message: err.Error()}
		}
	}
	value := fmt.Sprintf(`{"attempt":%d,"payload":%s}`, run.Task.Attempt, run.Task.Spec.Payload)
	return &protocol.TaskOutcome{Kind: protocol.TaskDone, Value: json.RawMessage(value)}
}

// asked is what comes of it when a plugin that is compiled in asks what a process would.
func asked(ctx context.Context, host plugin.Capabilities, method string, params json.RawMessage) (tool.Result, error) {
	var got any
	var err error
	switch method {
	case "taskStart":
		got, err = with(params, func(p *plugin.TaskStart) (any, error) {
			p.Spec.Plugin = "notes"
			return host.Tasks.StartTask(ctx, p)
		})
	case "taskAwait":
		got, err = with(params, func(p *protocol.TaskWaitParams) (any, error) { return host.Tasks.AwaitTasks(ctx, p) })
	case "taskList":
		got, err = with(params, func(p *protocol.TaskListParams) (any, error) { return host.Tasks.ListTasks(ctx, p) })
	case "taskCancel":
		got, err = with(params, func(p *protocol.TaskCancelParams) (any, error) { return host.Tasks.CancelTask(ctx, p) })
	case "monitorStart":
		got, err = with(params, func(p *protocol.MonitorStartParams) (any, error) { return host.Monitors.Start(ctx, p) })
	case "monitorStop":
		got, err = with(params, func(p *protocol.MonitorStopParams) (any, error) { return host.Monitors.Stop(ctx, p) })
	case "monitorSnapshot":
		got, err = host.Monitors.Snapshot(ctx)
	}
	if err != nil {
		return tool.Result{Output: protocol.Succeed("refused: " + err.Error())}, nil
	}
	text, err := json.Marshal(got)
	return tool.Result{Output: protocol.Succeed(string(text))}, err
}

func with[P any](params json.RawMessage, do func(*P) (any, error)) (any, error) {
	p := new(P)
	if err := json.Unmarshal(params, p); err != nil {
		return nil, err
	}
	return do(p)
}
