package engine

import (
	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// TraceKind is what a trace record tells of.
type TraceKind string

const (
	TraceSessionStarted TraceKind = "session_started"          // a session was loaded
	TraceTurnStarted    TraceKind = "turn_started"             // a turn is driven, or driven on after a restart
	TracePromptBuilt    TraceKind = "prompt_built"             // with a fingerprint of each section, so that a cache miss can be explained
	TraceModelStarted   TraceKind = "llm_call_started"         // a model call begins
	TraceModelCompleted TraceKind = "llm_call_completed"       // it ended well: its record
	TraceModelFailed    TraceKind = "llm_call_failed"          // it did not: its record and the error
	TraceToolStarted    TraceKind = "tool_call_started"        // an attempt of a call begins
	TraceToolCompleted  TraceKind = "tool_call_completed"      // it has a result
	TraceEffectStarted  TraceKind = "journaled_effect_started" // the machine asks for an effect, and it is performed
	TraceEffectSettled  TraceKind = "journaled_effect_settled" // the machine has its answer
	TraceEffectDiff     TraceKind = "effect_envelope_diff"     // a resumed turn asks for something else than it did: what differs
	TraceWaitParked     TraceKind = "durable_wait_parked"      // a turn waits for a decision
	TraceWaitResolved   TraceKind = "durable_wait_resolved"    // the decision has its answer
	TraceStoreError     TraceKind = "store_error_observed"     // something could not be stored
	TraceProtocolStep   TraceKind = "protocol_step"            // the driver took an answer in
	TraceTokenUsage     TraceKind = "token_usage"              // tokens of a turn
	TraceTurnCompleted  TraceKind = "turn_completed"           // a turn ended, and that is stored
	TraceIssue          TraceKind = "issue"                    // something went wrong in a turn
	TraceCustom         TraceKind = "custom"                   // of a driver or plugin
)

type tracedSession struct {
	Driver   string          `json:"driver"`
	Model    string          `json:"model"`
	Provider string          `json:"provider"`
	Head     protocol.Head   `json:"head"`
	Kind     string          `json:"relation"`
	Turns    int             `json:"openTurns"`
	Budget   protocol.Budget `json:"budget"`
}

func (st *state) traced() tracedSession {
	cfg := st.row.Config
	return tracedSession{
		Driver: cfg.Driver, Model: cfg.Model.ID, Provider: cfg.Model.Provider, Head: st.row.Head,
		Kind: string(st.row.Relation.Kind), Turns: len(st.queue.Turns()), Budget: cfg.Budget,
	}
}

type tracedTurn struct {
	Resumed bool               `json:"resumed,omitempty"`
	Inputs  []protocol.InputID `json:"inputs"`
}

type tracedPrompt struct {
	System    string `json:"system"` // this and the next three are digests
	Tools     string `json:"tools"`
	History   string `json:"history"` // of the messages before the turn
	Turn      string `json:"turn"`    // of the turn's own
	Bytes     int    `json:"systemBytes"`
	ToolCount int    `json:"toolCount"`
	Messages  int    `json:"messageCount"`
}

type tracedEffect struct {
	ID   uint64          `json:"id"`
	Kind turn.EffectKind `json:"kind"`
}

type tracedStep struct {
	Effect   turn.EffectKind `json:"effect"`
	Messages int             `json:"messages"`
	Finished bool            `json:"finished,omitempty"`
}

type tracedWait struct {
	Decision protocol.DecisionID     `json:"decisionId"`
	Kind     protocol.DecisionKind   `json:"kind"`
	CallID   protocol.CallID         `json:"callId"`
	Choice   protocol.DecisionChoice `json:"choice,omitempty"`
}

type tracedError struct {
	Error string `json:"error"`
	Waits bool   `json:"waits,omitempty"` // it is tried again
}

type tracedDiff struct {
	Effect uint64 `json:"effect"`
	Kind   string `json:"kind"`
	Diff   string `json:"diff"`
}

type tracedModel struct {
	Record protocol.CallRecord `json:"record"`
	Parts  int                 `json:"parts"`
	Error  string              `json:"error,omitempty"`
}

// tracedCompletion is a model call outside of any turn.
type tracedCompletion struct {
	Label  string               `json:"label"`
	Model  string               `json:"model"`
	Record *protocol.CallRecord `json:"record,omitempty"` // of a call that ended well
	Error  string               `json:"error,omitempty"`
}

type tracedCall struct {
	Name     string                `json:"name"`
	Parent   protocol.CallID       `json:"parent,omitempty"`
	Attempt  int                   `json:"attempt"`
	ArgBytes int                   `json:"argBytes"`
	ArgsHash protocol.Digest       `json:"argsHash"`
	Status   protocol.OutputStatus `json:"status,omitempty"`
	Code     string                `json:"code,omitempty"` // of a failure
	Bytes    int                   `json:"bytes,omitempty"`
	Duration int64                 `json:"durationMs,omitempty"`
	Control  protocol.ControlKind  `json:"control,omitempty"`
}

type tracedUsage struct {
	Turn  protocol.Usage `json:"turn"`
	Calls int            `json:"calls"`
}

type tracedEnd struct {
	State      protocol.TurnState   `json:"state"`
	Outcome    protocol.OutcomeKind `json:"outcome"`
	Calls      int                  `json:"modelCalls"`
	ToolCalls  int                  `json:"toolCalls"`
	Issues     []string             `json:"issues,omitempty"` // codes
	DurationMs int64                `json:"durationMs"`
	Revision   int64                `json:"headRevision"`
}

// trace records something about a turn.
func (r *run) trace(kind TraceKind, body any) {
	if r.eng.Trace != nil {
		r.eng.Trace.append(kind, r.record(), body)
	}
}

// record is the context that the turn's records share.
func (r *run) record() TraceRecord {
	rec := TraceRecord{SessionID: r.session.id, TurnID: r.id, Frame: r.begin.Frame}
	if r.machine != nil {
		rec.Iteration = r.machine.Iteration()
	}
	return rec
}

func (r *run) traceRequest(effect turn.Effect, req *provider.Request) {
	if r.eng.Trace == nil {
		return
	}
	p := &r.prints
	r.trace(TracePromptBuilt, tracedPrompt{
		System: p.system(req.System), Tools: p.tools(req.Tools), History: p.history(r.shown()), Turn: p.messages(effect.Model.Messages),
		Bytes: len(req.System), ToolCount: len(req.Tools), Messages: len(req.Messages),
	})
	r.trace(TraceModelStarted, tracedEffect{ID: effect.ID, Kind: effect.Kind})
}

func (r *run) traceReply(effect turn.Effect, answer *turn.ModelReply, failed error) {
	if r.eng.Trace == nil {
		return
	}
	body := tracedModel{Record: answer.Record, Parts: len(answer.Reply.Parts)}
	kind := TraceModelCompleted
	if failed != nil {
		kind, body.Error = TraceModelFailed, failed.Error()
	}
	r.trace(kind, body)
}

// traceCall is the one place that tells of tool calls, so that those of models, code and people look alike.
func (r *run) traceCall(kind TraceKind, s *stage, reply *turn.ToolReply) {
	if r.eng.Trace == nil {
		return
	}
	body := tracedCall{Name: s.call.Name, Parent: s.call.Parent, Attempt: s.attempt, ArgBytes: len(s.call.Args), ArgsHash: protocol.DigestOf(s.call.Args)}
	if reply != nil {
		body.Status, body.Bytes, body.Duration = reply.Output.Status, len(reply.Output.Text), reply.DurationMs
		if reply.Output.Failure != nil {
			body.Code = reply.Output.Failure.Code
		}
		if reply.Control != nil {
			body.Control = reply.Control.Kind
		}
	}
	rec := TraceRecord{SessionID: r.session.id, TurnID: r.id, Frame: r.begin.Frame, CallID: s.call.CallID} // several at once: the machine is not asked
	r.eng.Trace.append(kind, rec, body)
}

func (r *run) traceDiff(e *JournalError) {
	r.trace(TraceEffectDiff, tracedDiff{Effect: e.Effect, Kind: e.Kind, Diff: e.Diff})
}

func (r *run) traceEnd(rep *protocol.TurnReport) {
	if r.eng.Trace == nil {
		return
	}
	end := tracedEnd{
		State: rep.State, Outcome: rep.Outcome.Kind, Calls: len(rep.Calls), ToolCalls: len(rep.ToolCalls),
		DurationMs: rep.DurationMs, Revision: rep.HeadRevision,
	}
	for _, i := range rep.Issues {
		end.Issues = append(end.Issues, i.Code)
	}
	r.trace(TraceTokenUsage, tracedUsage{Turn: rep.Usage, Calls: len(rep.Calls)})
	r.trace(TraceTurnCompleted, end)
}
