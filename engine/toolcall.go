package engine

import (
	"bytes"
	"encoding/json"

	"lashd/engine/approval"
	"lashd/engine/audit"
	"lashd/engine/decision"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// toolCall is one tool call on its way from request to result: of a model's reply, of another call,
// or of a client. It holds the request, the state of approval, the attempts and the result. The
// goroutine that makes the call owns it while it runs; the batch guards the result. callRow is the
// part that the journal keeps.
type toolCall struct {
	protocol.ToolCall                   // as it runs; hooks may have replaced the arguments
	original          protocol.ToolCall // as the model or caller requested it
	effect            uint64            // id of the turn's effect that the batch belongs to
	ordinal           int               // position of its row in the journal
	entry             *tool.Entry       // nil: the catalog no longer has the tool
	grant             *tool.Grant       // permits a tool outside the catalog; nil: the tool is in the catalog
	attempt           int
	replay            protocol.Replay       // what its tool declared when the call started; empty: not started
	judged            *approval.Request     // the request that approval judged; nil: not judged, because the call is made again
	decided           audit.Decided         // what was decided about judged
	allowed           allowance             // how it was allowed
	approval          *pluginApproval       // set if a plugin demands that a person is asked
	messages          []protocol.Message    // from plugins, added at the next checkpoint
	reply             *turn.ToolReply       // set once the call has its result
	ranked            bool                  // reply.Order is set
	resultLost        bool                  // an earlier daemon started it and its result was lost
	sandboxed         bool                  // a sandboxed plugin makes it or replaced its arguments
	clientOutput      *protocol.ToolOutput  // output that its client gave the earlier daemon; nil: none, or used already
	stored            bool                  // the journal has its result
	inner             nestedCalls           // calls that it makes itself
	item              protocol.ItemID       // shows the code cell that makes it; empty: something else makes it, or people see no cell
	index             int                   // position among the calls of the cell, from 1
	shownEnd          bool                  // people have seen how it ended
	cell              bool                  // a code cell makes it; it counts like a call of a reply
	attemptIntents    []protocol.ToolIntent // intents of the present attempt
	intents           []intent              // intents of all attempts, applied after the batch
	awaited           *decision.Open        // waits for the completion; nil: the tool requested no completion key
	parked            bool                  // its tool returned "pending"; it waits for its completion
	questionsAsked    int                   // questions asked by the present attempt
	overdue           bool                  // its completion missed the deadline, and the turn is to fail
}

// allowance is how a call was allowed: by an earlier run of the daemon, or by a person who changed it.
type allowance struct {
	paths   []string                   // where its paths led then
	sandbox protocol.SandboxMode       // its sandbox mode then
	network *protocol.NetworkAccess    // the hosts that it reached then
	change  *approval.Change           // how a person changed the arguments; nil: not
	shown   map[string]protocol.Digest // see tool.Invocation; nil: no person saw a diff
}

// callRow is the journal's row of one call. It is written when the call starts and again with its
// result. JSON names are stored data and must not change.
type callRow struct {
	Attempt      int                     `json:"attempt"`
	Replay       protocol.Replay         `json:"replay,omitempty"` // declared by its tool at that time
	Args         json.RawMessage         `json:"args,omitempty"`   // as it runs, if they differ from the request
	ClientOutput *protocol.ToolOutput    `json:"given,omitempty"`  // output from its client, until the reply exists
	Reply        *turn.ToolReply         `json:"reply,omitempty"`
	Messages     []protocol.Message      `json:"messages,omitempty"`
	Parked       bool                    `json:"parked,omitempty"`
	Overdue      bool                    `json:"overdue,omitempty"`
	Confined     bool                    `json:"confined,omitempty"` // toolCall.sandboxed; it keeps the limits of the sandbox after a restart
	Intents      []intent                `json:"intents,omitempty"`
	Places       []string                `json:"places,omitempty"` // targets of its paths when it was allowed
	Sandbox      protocol.SandboxMode    `json:"sandbox,omitempty"`
	Network      *protocol.NetworkAccess `json:"network,omitempty"` // hosts that it reaches from the sandbox
	Change       *approval.Change        `json:"change,omitempty"`  // how a person changed the arguments
	Decision     *protocol.CallDecision  `json:"decision,omitempty"`
}

// hash returns a digest of the requested call and its grant. restore rejects a journal row with
// another hash.
func (s *toolCall) hash() []byte {
	text := encode(s.original)
	if s.grant != nil {
		text = append(text, encode(s.grant)...)
	}
	return []byte(protocol.DigestOf(text))
}

// check finds the tool and validates the arguments. A failure becomes the call's result.
func (s *toolCall) check(catalog *tool.Catalog) {
	s.find(catalog)
	if s.reply == nil {
		s.validate()
	}
}

// find looks the tool up before hooks and approvals run. If there is none, the call gets a failed
// result that names similar tools.
func (s *toolCall) find(catalog *tool.Catalog) {
	if s.grant != nil {
		s.allow(catalog)
		return
	}
	var ok bool
	if s.entry, ok = catalog.Lookup(s.Name); !ok {
		_, err := catalog.Admit(s.Name, s.Args)
		s.answer(tool.Refusal(err))
	}
}

// allow looks up the tool of a grant, which may lie outside the catalog.
func (s *toolCall) allow(catalog *tool.Catalog) {
	var err error
	if s.entry, err = catalog.Granted(*s.grant); err != nil {
		s.answer(tool.Refusal(err))
	}
}

// validate checks the arguments against the tool's schema. A failure becomes the call's result.
func (s *toolCall) validate() {
	if err := s.entry.Validate(s.Args); err != nil {
		s.answer(tool.Refusal(err))
	}
}

// begin counts an attempt that is about to be made and records whether the tool may be repeated.
func (s *toolCall) begin() {
	s.attempt++
	s.replay = s.declaredReplay()
}

// fail gives the call a failed result.
func (s *toolCall) fail(class protocol.FailureClass, code, text string, source protocol.FailureSource) {
	s.answer(protocol.Fail(class, code, text, source))
}

// answer gives the call a result without running it.
func (s *toolCall) answer(out protocol.ToolOutput) {
	s.reply = &turn.ToolReply{CallID: s.CallID, Name: s.Name, Args: s.replaced(), Output: out}
}

// replaced returns the arguments as the call runs, or nil if they are those of the request.
func (s *toolCall) replaced() json.RawMessage {
	if bytes.Equal(s.original.Args, s.Args) {
		return nil
	}
	return s.Args
}

// row returns the journal's row in the call's present state.
func (s *toolCall) row() callRow {
	return callRow{
		Attempt: s.attempt, Replay: s.replay, Args: s.replaced(), ClientOutput: s.clientOutput, Reply: s.reply, Messages: s.messages, Parked: s.parked,
		Overdue: s.overdue, Intents: s.intents, Confined: s.sandboxed, Places: s.places(), Sandbox: s.sandbox(), Network: s.network(), Change: s.allowed.change,
		Decision: s.decided.Decision(),
	}
}

// places returns where the paths of the call led when it was allowed. File tools refuse the call if
// they lead elsewhere when it runs.
func (s *toolCall) places() []string {
	if s.judged != nil {
		return s.judged.Call.Places()
	}
	return s.allowed.paths
}

// sandbox returns the mode in which the programs of the call run, as it was decided when the call was allowed.
func (s *toolCall) sandbox() protocol.SandboxMode {
	if s.judged != nil {
		return s.judged.Sandbox()
	}
	return s.allowed.sandbox
}

// network returns the hosts that the programs of the call reach from their sandbox, as it was decided when the call was allowed.
func (s *toolCall) network() *protocol.NetworkAccess {
	if s.judged != nil {
		return s.judged.Network()
	}
	return s.allowed.network
}

// effectRow returns the store's form of a journal row.
func (s *toolCall) effectRow(turn protocol.TurnID, row callRow) persistence.Effect {
	return persistence.Effect{
		Turn: turn, ID: s.effect, Ordinal: s.ordinal, Kind: "call", Finished: row.Reply != nil, Hash: s.hash(), Body: encode(row),
	}
}
