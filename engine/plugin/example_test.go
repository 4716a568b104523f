package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// Quota limits the number of commands that the model may run in a session. The option limit sets the number; the default is
// 20. A fork continues with the count of its source.
type Quota struct{}

func (Quota) ID() string { return "quota" }

// Build reads the plugin's options.
func (Quota) Build(c plugin.BuildContext) (plugin.Plugin, error) {
	q := &quota{Limit: 20}
	if len(c.Options) == 0 {
		return q, nil
	}
	return q, json.Unmarshal(c.Options, q)
}

// quota is the plugin in one session. A query can run during a turn, so the shared counter is atomic.
type quota struct {
	Limit int64 `json:"limit"`
	used  atomic.Int64
}

func (q *quota) Register(r *plugin.Registrar) error {
	text := fmt.Sprintf("You may run %d commands in this session.", q.Limit)
	r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Tools: []string{"shell"}, Content: text})
	r.ToolCalls().Before(q.before)
	r.Turn().After(q.after)
	r.Operations().Query(protocol.OperationInfo{Name: "quota.left", Description: "Returns the number of commands left."}, q.left)
	return nil
}

// before denies commands once the limit is reached.
func (q *quota) before(_ context.Context, tc *plugin.ToolCallContext) ([]plugin.Directive, error) {
	if tc.Tool != "shell" || q.used.Load() < q.Limit {
		return nil, nil
	}
	denied := protocol.Fail(protocol.FailPermission, "quota_exhausted", "no commands are left", protocol.FromPlugin)
	return []plugin.Directive{plugin.ShortCircuit(denied)}, nil
}

// after counts the successful commands of the turn's report. After a crash the report is complete, while hooks before a call
// may have run twice or not at all. The new count is stored in the commit that ends the turn.
func (q *quota) after(_ context.Context, sum *plugin.TurnSummary) ([]plugin.Directive, error) {
	if sum.Report == nil {
		return nil, nil
	}
	for _, call := range sum.Report.ToolCalls {
		if call.Name == "shell" && call.Output.Status == protocol.OutputSuccess {
			q.used.Add(1)
		}
	}
	return nil, nil
}

func (q *quota) left(context.Context, *plugin.OperationCall) (json.RawMessage, error) {
	return json.Marshal(max(0, q.Limit-q.used.Load()))
}

// Revision identifies the state: different states have different revisions.
func (q *quota) Revision() uint64 { return uint64(q.used.Load()) }

func (q *quota) Snapshot(context.Context, *plugin.ArtifactWriter) (json.RawMessage, error) {
	return json.Marshal(q.used.Load())
}

// Restore loads stored state. Without state it resets the plugin.
func (q *quota) Restore(_ context.Context, m plugin.Meta, _ *plugin.ArtifactReader) error {
	var used int64
	if m.State != nil {
		if err := json.Unmarshal(m.State, &used); err != nil {
			return err
		}
	}
	q.used.Store(used)
	return nil
}

// Example calls a plugin the way the engine does: it opens a session, makes a call, ends a turn, and opens the session again
// with the stored state.
func Example() {
	ctx := context.Background()
	host, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{Quota{}})
	check(err)
	options := protocol.PluginOptions{"quota": json.RawMessage(`{"limit":1}`)}
	s, err := host.Open(ctx, standard.ID, options, plugin.BuildContext{SessionID: "ses_1", Cwd: "/project"})
	check(err)
	show(ctx, s)
	call := protocol.ToolCallRecord{Name: "shell", Output: protocol.Succeed("ok")}
	_, err = s.AfterTurn(ctx, &plugin.TurnSummary{Report: &protocol.TurnReport{ToolCalls: []protocol.ToolCallRecord{call}}})
	check(err)
	show(ctx, s)
	kept, err := s.Capture(ctx)
	check(err)
	check(s.Close())
	again, _, err := host.OpenFrom(ctx, plugin.Stored{Plugins: &kept}, standard.ID, options, plugin.BuildContext{SessionID: "ses_1", Cwd: "/project"})
	check(err)
	show(ctx, again)
	check(again.Close())
	// Output:
	// left 1, denied false
	// left 0, denied true
	// left 0, denied true
}

// show prints the rest of the quota, and whether a command would be denied.
func show(ctx context.Context, s *plugin.Session) {
	left, err := s.Query(ctx, "quota.left", &plugin.OperationCall{}, plugin.Target{Current: true})
	check(err)
	verdict, err := s.BeforeToolCall(ctx, &plugin.ToolCallContext{Tool: "shell", Args: json.RawMessage(`{"command":"ls"}`)})
	check(err)
	fmt.Printf("left %s, denied %t\n", left, verdict.Denied)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
