package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// retries asks the user whether a call to which the sandbox refused something should
// run once more. At most one offer of a session is open: that of the newest such call.
type retries struct {
	ref
	view *view // used only on the session's goroutine
	// offered has the turns and arguments of calls that had an offer: the result of a
	// call that started a background command and the end of its task may both have the
	// refusal. Used only on the session's goroutine.
	offered map[string]bool

	mu       sync.Mutex
	withdraw context.CancelFunc // withdraws the open offer; nil: there was none
}

// The buttons of an offer.
const (
	runWithHosts sdk.PermissionOptionId = "runWithHosts"
	runOutside   sdk.PermissionOptionId = "runOutside"
	runNot       sdk.PermissionOptionId = "no"
)

// retry is a call that an offer may make.
type retry struct {
	button sdk.PermissionOption
	title  string
	args   json.RawMessage
}

// retriesOf returns how a refused call can run again, with as little as possible
// first.
func retriesOf(r *protocol.SandboxRefusal) (all []retry) {
	add := func(id sdk.PermissionOptionId, how string, args json.RawMessage) {
		all = append(all, retry{sdk.PermissionOption{OptionId: id, Kind: sdk.PermissionOptionKindAllowOnce, Name: "Run once " + how}, how, args})
	}
	if r != nil && r.WithHosts != nil {
		add(runWithHosts, "with "+termtext.OneLine(strings.Join(r.WithHosts.Hosts, ", "), 200), r.WithHosts.Retry)
	}
	if r != nil && len(r.Retry) > 0 {
		add(runOutside, "outside the sandbox", r.Retry)
	}
	return all
}

// completed offers to run a completed call again, if the sandbox refused something to
// it. It does not wait for the answer. Only the session's goroutine calls it.
func (o *retries) completed(ctx context.Context, item *protocol.Item) {
	if item.Output != nil {
		o.offer(ctx, item.TurnID, callID(item.TurnID, item.CallID), item.Tool, item.Output.Refusal)
	}
}

// taskEnded offers to run a background command again, or the newest refused call of
// a subagent that worked in the session's directory: the agent of this session reads
// the result. Only the session's goroutine calls it.
func (o *retries) taskEnded(ctx context.Context, t *protocol.Task) {
	if t.Outcome != nil {
		o.offer(ctx, t.Origin.TurnID, sdk.ToolCallId(t.ID), "start_command", t.Outcome.Refusal)
	}
	child := t.Spec.Subagent
	if child == nil {
		return
	}
	var r protocol.SessionReadResult
	err := o.daemon.call(ctx, "session/read", protocol.SessionReadParams{SessionID: child.SessionID}, &r)
	if err != nil || r.Session.Cwd != o.view.cwd { // the session may be deleted
		return
	}
	for _, item := range slices.Backward(r.Data) {
		if item.TurnID == child.TurnID && item.Output != nil && len(retriesOf(item.Output.Refusal)) > 0 {
			o.completed(ctx, &item)
			return
		}
	}
}

// offer offers to run a call again. tool is the tool that was called.
func (o *retries) offer(ctx context.Context, turn protocol.TurnID, id sdk.ToolCallId, tool string, refusal *protocol.SandboxRefusal) {
	all := retriesOf(refusal)
	if len(all) == 0 {
		return
	}
	key := string(turn) + "\n" + string(all[0].args)
	if o.offered[key] {
		return
	}
	o.offered[key] = true
	tool = cmp.Or(refusal.Tool, tool)
	u := o.view.newCall(id+"/again", tool, all[0].args, true)
	u.Title, u.Content = "Run again? "+argumentsOf(all[0].args).title(""), textContent(refusal.What)
	o.send(ctx, u)
	asking, withdraw := context.WithCancel(ctx)
	o.mu.Lock()
	if o.withdraw != nil {
		o.withdraw()
	}
	o.withdraw = withdraw
	o.mu.Unlock()
	o.work.Go(func() { o.put(asking, u, tool, all) })
}

// put sends the permission request of an offer and does what the user chooses. Each
// other outcome leaves the call as it is.
func (o *retries) put(ctx context.Context, u *sdk.SessionUpdateToolCall, tool string, all []retry) {
	call := sdk.ToolCallUpdate{ToolCallId: u.ToolCallId, Title: &u.Title, Kind: &u.Kind, Status: &u.Status, Content: u.Content, RawInput: u.RawInput}
	params := sdk.RequestPermissionRequest{SessionId: sdk.SessionId(o.id), ToolCall: call}
	for _, r := range all {
		params.Options = append(params.Options, r.button)
	}
	params.Options = append(params.Options, sdk.PermissionOption{OptionId: runNot, Kind: sdk.PermissionOptionKindRejectOnce, Name: "Do not run it"})
	r, err := sdk.SendRequest[sdk.RequestPermissionResponse](o.conn, ctx, sdk.ClientMethodSessionRequestPermission, &params)
	if err == nil && r.Outcome.Selected != nil {
		for _, one := range all {
			if one.button.OptionId == r.Outcome.Selected.OptionId {
				o.run(ctx, u, tool, one)
				return
			}
		}
	}
	o.end(ctx, u, sdk.ToolCallStatusFailed, "It did not run again.")
}

// run makes the call and shows its result. The model reads the result at its next
// step.
func (o *retries) run(ctx context.Context, u *sdk.SessionUpdateToolCall, tool string, r retry) {
	ctx = context.WithoutCancel(ctx) // a newer offer does not take back an answer
	o.send(ctx, statusUpdate(u.ToolCallId, sdk.ToolCallStatusInProgress))
	p := protocol.ToolCallParams{Mutation: newMutation(), SessionID: o.id, Name: tool, Args: r.args, Tell: true}
	var ran protocol.ToolCallResult
	if err := o.daemon.call(ctx, "tool/call", p, &ran); err != nil {
		o.end(ctx, u, sdk.ToolCallStatusFailed, "It did not run "+r.title+": "+requestError(err).Message)
		return
	}
	status := sdk.ToolCallStatusCompleted
	if ran.Output.Status != protocol.OutputSuccess {
		status = sdk.ToolCallStatusFailed
	}
	o.end(ctx, u, status, "It ran once "+r.title+".\n\n"+ran.Output.Text)
}

// end shows how an offer ended.
func (o *retries) end(ctx context.Context, u *sdk.SessionUpdateToolCall, status sdk.ToolCallStatus, text string) {
	o.send(context.WithoutCancel(ctx), &sdk.SessionToolCallUpdate{ToolCallId: u.ToolCallId, Status: &status, Content: textContent(text), SessionUpdate: "tool_call_update"})
}
