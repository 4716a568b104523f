package acp

import (
	"context"
	"slices"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// options maps the choices of a decision to the protocol's permission options.
// lashd has no permanent denial, so reject_always is missing.
var options = map[protocol.DecisionChoice]sdk.PermissionOption{
	protocol.ChooseAllowOnce:    {Kind: sdk.PermissionOptionKindAllowOnce, Name: "Allow once"},
	protocol.ChooseAllowSession: {Kind: sdk.PermissionOptionKindAllowAlways, Name: "Allow for this session"},
	protocol.ChooseAllowAlways:  {Kind: sdk.PermissionOptionKindAllowAlways, Name: "Always allow"},
	protocol.ChooseReject:       {Kind: sdk.PermissionOptionKindRejectOnce, Name: "Deny"},
	protocol.ChooseHappened:     {Kind: sdk.PermissionOptionKindAllowOnce, Name: "It took effect"},
	protocol.ChooseNotHappened:  {Kind: sdk.PermissionOptionKindRejectOnce, Name: "It did not run"},
	protocol.ChooseRunAgain:     {Kind: sdk.PermissionOptionKindAllowOnce, Name: "Run it again"},
	protocol.ChooseOpen:         {Kind: sdk.PermissionOptionKindAllowOnce, Name: "Open the page"},
	protocol.ChooseTellModel:    {Kind: sdk.PermissionOptionKindRejectOnce, Name: "Outcome unknown"},
}

// questions are the open decisions of a session that the editor has been asked.
// The session's goroutine asks; answers arrive on goroutines counted in ref.work.
// An unanswered question stays open in the daemon, where other clients can answer
// it until its deadline.
type questions struct {
	ref
	// view is used only on the session's goroutine, by ask.
	view    *view
	prompts *prompts

	mu    sync.Mutex
	asked map[protocol.DecisionID]context.CancelFunc // withdraws each open question
}

// waiting reports whether the editor has a question open.
func (q *questions) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.asked) > 0
}

// ask shows an open decision to the user, unless it is already shown. It does not
// wait for the answer. Decisions that wait for an external completion have no
// question and are skipped.
func (q *questions) ask(ctx context.Context, d *protocol.Decision) {
	if d == nil || d.Answer != nil || d.Kind == protocol.DecisionCompletion {
		return
	}
	q.mu.Lock()
	if _, asked := q.asked[d.ID]; asked {
		q.mu.Unlock()
		return
	}
	asking, withdraw := context.WithCancel(ctx)
	q.asked[d.ID] = withdraw
	q.mu.Unlock()
	updates, call := q.view.asked(d, q.id)
	q.send(ctx, updates...)
	if d.Kind == protocol.DecisionQuestion && (d.URL == "" && q.hasForms() || d.URL != "" && q.hasPages()) {
		q.work.Go(func() { q.elicit(asking, d, call.ToolCallId) })
		return
	}
	params := sdk.RequestPermissionRequest{SessionId: sdk.SessionId(q.id), ToolCall: call, Options: buttons(q.optionsFor(d))}
	q.work.Go(func() { q.put(asking, d, &params) })
}

// put sends a permission request, waits for the user's choice and sends it to the
// daemon. Dismissing the request, or an answer that it did not offer, denies the call;
// for a call of unknown outcome it lets the model decide. The daemon accepts the first
// answer of any client.
func (q *questions) put(ctx context.Context, d *protocol.Decision, params *sdk.RequestPermissionRequest) {
	r, err := sdk.SendRequest[sdk.RequestPermissionResponse](q.conn, ctx, sdk.ClientMethodSessionRequestPermission, params)
	switch {
	case ctx.Err() != nil:
		return // another client answered it, or the session was closed and it stays open
	case err != nil:
		q.Log.Warn("the editor did not show a question; it stays open", "session", q.id, "decision", d.ID, "error", err)
		return
	}
	if r.Outcome.Selected == nil && q.prompts.cancelling() {
		return // the cancelled turn closes the question
	}
	answer, known := protocol.DecisionRespondParams{}, false
	if r.Outcome.Selected != nil {
		answer, known = answerOf(q.optionsFor(d), r.Outcome.Selected.OptionId)
	}
	if known && r.Outcome.Selected.OptionId == rejectReason {
		answer.Reason = q.reason(ctx, params.ToolCall.ToolCallId)
	}
	switch {
	case known:
	case d.Kind == protocol.DecisionOutcome:
		answer.Choice = protocol.ChooseTellModel
	default:
		answer.Choice = protocol.ChooseReject
	}
	q.decide(ctx, d, answer)
}

// optionsFor returns the buttons for a decision. An editor with forms can also ask for
// a reason.
func (q *questions) optionsFor(d *protocol.Decision) []option {
	all := optionsOf(d)
	if d.Kind == protocol.DecisionApproval && q.hasForms() && slices.Contains(d.Choices, protocol.ChooseReject) {
		why := sdk.PermissionOption{OptionId: rejectReason, Kind: sdk.PermissionOptionKindRejectOnce, Name: "Deny with a reason"}
		all = append(all, option{why, protocol.ChooseReject, nil})
	}
	return all
}

// decide sends an answer to the daemon. The hash of the arguments proves that the
// user saw the same call. A rejected answer is logged: usually another client was
// faster.
func (s *ref) decide(ctx context.Context, d *protocol.Decision, p protocol.DecisionRespondParams) {
	p.Mutation, p.DecisionID, p.ArgsHash = newMutation(), d.ID, d.ArgsHash
	if err := s.daemon.call(context.WithoutCancel(ctx), "decision/respond", p, nil); err != nil {
		s.Log.Warn("the daemon did not accept an answer", "session", s.id, "decision", d.ID, "error", err)
	}
}

// withdraw cancels the editor's request for a decision that has been resolved.
func (q *questions) withdraw(id protocol.DecisionID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel, ok := q.asked[id]; ok {
		cancel()
		delete(q.asked, id)
	}
}

// reconcile is called after a reconnect with the decisions that are open now. It
// asks the new ones and withdraws those that were resolved in between.
func (q *questions) reconcile(ctx context.Context, open []protocol.Decision) {
	still := map[protocol.DecisionID]bool{}
	for i := range open {
		still[open[i].ID] = true
		q.ask(ctx, &open[i])
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for id, cancel := range q.asked {
		if !still[id] {
			cancel()
			delete(q.asked, id)
		}
	}
}

// asked returns the tool call of a decision for a permission request, and the
// updates to send before it. A call that the editor does not know yet is shown
// first, as pending. here is the session of the view: calls of subagents belong to
// another session and are marked below. A question of a running tool shows the
// running call.
func (v *view) asked(d *protocol.Decision, here protocol.SessionID) ([]update, sdk.ToolCallUpdate) {
	if d.Call == nil {
		id := sdk.ToolCallId(d.ID)
		return nil, sdk.ToolCallUpdate{ToolCallId: id, Title: &d.Prompt}
	}
	id := callID(d.TurnID, d.Call.CallID)
	u := v.newCall(id, d.Call.Name, d.Call.Args, true)
	u.Title = callTitle(protocol.TitleOf(*d.Call), d.Call.Name, d.Call.Args, "")
	if d.Kind == protocol.DecisionApproval {
		v.describeApproval(u, d)
	} else {
		u.Title = d.Prompt
	}
	call := sdk.ToolCallUpdate{
		ToolCallId: id, Title: &u.Title, Kind: &u.Kind, Status: &u.Status, Content: u.Content, Locations: u.Locations, RawInput: u.RawInput,
	}
	known := v.calls[id]
	switch {
	case d.Kind != protocol.DecisionApproval && known != nil && !known.asked:
		call.Status = nil // the call is running; keep its status
		return nil, call
	case known == nil:
		v.calls[id] = &shownCall{below: d.SessionID != here, asked: true}
		return []update{u}, call
	case known.asked:
		return nil, call
	}
	known.asked = true
	return []update{statusUpdate(id, u.Status)}, call
}

// resolved shows the result of an answer: an allowed call is in progress. For a
// call of a subagent it is also the last update, since its events go to another
// session, so the call is shown as completed or failed.
func (v *view) resolved(d *protocol.Decision, here protocol.SessionID) []update {
	if d.Call == nil || d.Answer == nil {
		return nil
	}
	id := callID(d.TurnID, d.Call.CallID)
	known, allowed := v.calls[id], d.Answer.Choice != protocol.ChooseReject && d.Answer.Choice != protocol.ChooseCancelled
	switch {
	case known == nil:
		return nil
	case d.SessionID != here && allowed:
		delete(v.calls, id)
		return []update{statusUpdate(id, sdk.ToolCallStatusCompleted)}
	case d.SessionID != here:
		delete(v.calls, id)
		return []update{statusUpdate(id, sdk.ToolCallStatusFailed)}
	case known.asked && allowed:
		known.asked = false
		return []update{statusUpdate(id, sdk.ToolCallStatusInProgress)}
	}
	return nil
}

// statusUpdate changes only the status of a tool call.
func statusUpdate(id sdk.ToolCallId, status sdk.ToolCallStatus) update {
	return &sdk.SessionToolCallUpdate{ToolCallId: id, Status: &status, SessionUpdate: "tool_call_update"}
}

// setPendingApprovals replaces the set of calls that wait for approval. Those are
// shown as pending instead of in progress.
func (v *view) setPendingApprovals(open []protocol.Decision) {
	v.pendingApprovals = map[sdk.ToolCallId]bool{}
	for i := range open {
		if d := &open[i]; d.Kind == protocol.DecisionApproval && d.Call != nil {
			v.pendingApprovals[callID(d.TurnID, d.Call.CallID)] = true
		}
	}
}

// loadPendingApprovals asks the daemon which calls wait for approval, before a
// tool call is shown. The decision is committed with the call, but its event comes
// after the call's. If the request fails, the call is shown as running until that
// event arrives.
func (s *session) loadPendingApprovals(ctx context.Context) {
	var open protocol.DecisionListResult
	if err := s.link.Call(ctx, "decision/list", protocol.DecisionListParams{SessionID: s.id}, &open); err != nil {
		s.Log.Debug("could not list the open questions of a session", "session", s.id, "error", err)
	}
	s.view.setPendingApprovals(open.Data)
}
