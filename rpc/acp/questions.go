package acp

import (
	"context"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// options are the choices of a decision that a person makes, as the protocol has them. A lasting no is not among them: lashd has none.
var options = map[protocol.DecisionChoice]sdk.PermissionOption{
	protocol.ChooseAllowOnce:    {Kind: sdk.PermissionOptionKindAllowOnce, Name: "Allow once"},
	protocol.ChooseAllowSession: {Kind: sdk.PermissionOptionKindAllowAlways, Name: "Allow for this session"},
	protocol.ChooseAllowAlways:  {Kind: sdk.PermissionOptionKindAllowAlways, Name: "Always allow"},
	protocol.ChooseReject:       {Kind: sdk.PermissionOptionKindRejectOnce, Name: "Deny"},
	protocol.ChooseHappened:     {Kind: sdk.PermissionOptionKindAllowOnce, Name: "It took effect"},
	protocol.ChooseNotHappened:  {Kind: sdk.PermissionOptionKindRejectOnce, Name: "It did not run"},
	protocol.ChooseRunAgain:     {Kind: sdk.PermissionOptionKindAllowOnce, Name: "Run it again"},
	protocol.ChooseTellModel:    {Kind: sdk.PermissionOptionKindRejectOnce, Name: "Outcome unknown"},
}

// optionsOf are those of a decision that a person can choose. An answer in words is not among them: that wants a form.
func optionsOf(d *protocol.Decision) []sdk.PermissionOption {
	var all []sdk.PermissionOption
	for _, c := range d.Choices {
		if o, ok := options[c]; ok {
			if len(d.Varying) > 0 && o.Kind == sdk.PermissionOptionKindAllowAlways {
				o.Name += " with any " + strings.Join(d.Varying, ", ")
			}
			o.OptionId = sdk.PermissionOptionId(c)
			all = append(all, o)
		}
	}
	return all
}

// questions are the decisions of a session that the editor was asked for, and that are still open.
type questions struct {
	ref
	view    *view
	prompts *prompts

	mu    sync.Mutex
	asked map[protocol.DecisionID]context.CancelFunc
}

func (q *questions) waiting() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.asked) > 0
}

// ask puts an open decision to the person at the editor, unless it has been already. It does not wait for the answer.
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
	if d.Kind == protocol.DecisionQuestion && q.hasForms() {
		q.work.Go(func() { q.elicit(asking, d, call.ToolCallId) })
		return
	}
	params := sdk.RequestPermissionRequest{SessionId: sdk.SessionId(q.id), ToolCall: call, Options: optionsOf(d)}
	q.work.Go(func() { q.put(asking, d, &params) })
}

// put waits for the person's answer and passes it on. The first answer counts, whoever gives it.
func (q *questions) put(ctx context.Context, d *protocol.Decision, params *sdk.RequestPermissionRequest) {
	r, err := sdk.SendRequest[sdk.RequestPermissionResponse](q.conn, ctx, sdk.ClientMethodSessionRequestPermission, params)
	switch {
	case ctx.Err() != nil:
		return // it was answered elsewhere, or nobody is there any more: it stays open
	case err != nil:
		q.Log.Warn("the editor did not show a question; it stays open", "session", q.id, "decision", d.ID, "error", err)
		return
	}
	choice := protocol.ChooseReject // of a person who closes it
	if r.Outcome.Selected != nil {
		choice = protocol.DecisionChoice(r.Outcome.Selected.OptionId)
	} else if q.prompts.cancelling() {
		return // the turn ends, and the question with it
	}
	if d.Kind == protocol.DecisionOutcome && r.Outcome.Selected == nil {
		choice = protocol.ChooseTellModel
	}
	q.decide(ctx, d, protocol.DecisionRespondParams{Choice: choice})
}

// decide passes an answer on.
func (s *ref) decide(ctx context.Context, d *protocol.Decision, p protocol.DecisionRespondParams) {
	p.Mutation, p.DecisionID, p.ArgsHash = once(), d.ID, d.ArgsHash
	if err := s.daemon.call(context.WithoutCancel(ctx), "decision/respond", p, nil); err != nil {
		s.Log.Warn("the daemon did not accept an answer", "session", s.id, "decision", d.ID, "error", err)
	}
}

// withdraw takes a question back that is settled.
func (q *questions) withdraw(id protocol.DecisionID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel, ok := q.asked[id]; ok {
		cancel()
		delete(q.asked, id)
	}
}

// reconcile asks what is open by now, and takes back what is not.
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

// asked is the call that a decision is about, as it is shown before it runs. The editor knows it from then on.
func (v *view) asked(d *protocol.Decision, here protocol.SessionID) ([]update, sdk.ToolCallUpdate) {
	if d.Call == nil {
		id := sdk.ToolCallId(d.ID)
		return nil, sdk.ToolCallUpdate{ToolCallId: id, Title: &d.Prompt}
	}
	id := callID(d.TurnID, d.Call.CallID)
	u := v.begun(id, d.Call.Name, d.Call.Args, true)
	if d.Kind != protocol.DecisionApproval {
		u.Title = d.Prompt
	}
	call := sdk.ToolCallUpdate{
		ToolCallId: id, Title: &u.Title, Kind: &u.Kind, Status: &u.Status, Content: u.Content, Locations: u.Locations, RawInput: u.RawInput,
	}
	known := v.calls[id]
	switch {
	case d.Kind != protocol.DecisionApproval && known != nil && !known.asked:
		call.Status = nil // it runs
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

// resolved shows that a call runs which a person has allowed. Of a call of a session that works for this one nothing more is heard here:
// what was shown of it ends.
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

func statusUpdate(id sdk.ToolCallId, status sdk.ToolCallStatus) update {
	return &sdk.SessionToolCallUpdate{ToolCallId: id, Status: &status, SessionUpdate: "tool_call_update"}
}

// awaits notes which calls wait for a person's permission: those are shown as pending.
func (v *view) awaits(open []protocol.Decision) {
	v.unasked = map[sdk.ToolCallId]bool{}
	for i := range open {
		if d := &open[i]; d.Kind == protocol.DecisionApproval && d.Call != nil {
			v.unasked[callID(d.TurnID, d.Call.CallID)] = true
		}
	}
}

// askedFirst finds out whether a call that is told of waits for a person's permission: the question is durable with the call, but told
// of after it. If the daemon is gone, the editor is shown that the call runs until the question comes.
func (s *session) askedFirst(ctx context.Context) {
	var open protocol.DecisionListResult
	if err := s.link.Call(ctx, "decision/list", protocol.DecisionListParams{SessionID: s.id}, &open); err != nil {
		s.Log.Debug("could not list the open questions of a session", "session", s.id, "error", err)
	}
	s.view.awaits(open.Data)
}
