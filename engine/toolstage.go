package engine

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// stage is where one call of a batch is.
type stage struct {
	asked     protocol.ToolCall // as the model wrote it
	call      protocol.ToolCall // as it runs: a plugin may have replaced the arguments
	effect    uint64            // of the turn, that its batch is
	ordinal   int               // of its row in the journal
	entry     *tool.Entry       // nil: the catalog has no such tool any more
	grant     *tool.Grant       // that allows the call; nil: the tool is one of the catalog
	attempt   int
	replay    protocol.Replay       // that its tool declared when it was begun; empty: it was not
	about     *subjects             // what it was judged by; nil: it was not, as it is made again
	allowed   []string              // where its paths led when an earlier run of the daemon was allowed to make it
	approval  *wanted               // a plugin wants a person to be asked
	messages  []protocol.Message    // of plugins, for the next checkpoint
	reply     *turn.ToolReply       // set once the call has its result
	ranked    bool                  // the result has its place in the order of settlement
	began     bool                  // an earlier run of the daemon started it, and its result was lost
	sandboxed bool                  // a plugin in a sandbox makes it, or has replaced its arguments
	given     *protocol.ToolOutput  // that its client gave that run of the daemon; nil: none, or it is used
	stored    bool                  // the journal has its result
	inner     inner                 // the calls that it makes itself
	wanted    []protocol.ToolIntent // by the present attempt
	intents   []intent              // by the call, until it is done
	awaited   *openDecision         // its completion, if it took a key
	parked    bool                  // it has returned and waits
	asking    int                   // how many questions the present attempt has asked
	overdue   bool                  // its completion did not come in time, and the turn is to fail
}

// callRow is the journal's row of one call: started with its attempt, then finished with its reply.
type callRow struct {
	Attempt  int                  `json:"attempt"`
	Replay   protocol.Replay      `json:"replay,omitempty"` // that its tool declared then
	Args     json.RawMessage      `json:"args,omitempty"`   // as it runs, where they are not the model's
	Given    *protocol.ToolOutput `json:"given,omitempty"`  // by its client, until there is the reply
	Reply    *turn.ToolReply      `json:"reply,omitempty"`
	Messages []protocol.Message   `json:"messages,omitempty"`
	Parked   bool                 `json:"parked,omitempty"`
	Overdue  bool                 `json:"overdue,omitempty"`
	Confined bool                 `json:"confined,omitempty"` // a plugin in a sandbox replaced the arguments: so calls that this one makes are asked about after a restart, too
	Intents  []intent             `json:"intents,omitempty"`
	Places   []string             `json:"places,omitempty"` // where its paths led when it was allowed
}

// recall takes what the journal knows of a call.
func (s *stage) recall(row persistence.Effect) error {
	if !bytes.Equal(row.Hash, s.hash()) {
		return &JournalError{Effect: row.ID, Kind: "tools", Diff: fmt.Sprintf("call %d", row.Ordinal)}
	}
	var known callRow
	if err := json.Unmarshal(row.Body, &known); err != nil {
		return fmt.Errorf("journal of call %d: %w", row.Ordinal, err)
	}
	s.attempt, s.reply, s.messages, s.parked, s.overdue = known.Attempt, known.Reply, known.Messages, known.Parked, known.Overdue
	s.intents, s.given, s.replay = known.Intents, known.Given, cmp.Or(known.Replay, protocol.ReplayNever)
	s.allowed = known.Places
	if known.Args != nil {
		s.call.Args = known.Args
	}
	s.sandboxed = s.sandboxed || known.Confined
	if s.given != nil && s.entry == nil { // the tool is gone, and with it what hooks would have to be told
		s.unfinished()
	}
	s.began, s.stored, s.ranked = !row.Finished, row.Finished, row.Finished
	return nil
}

// hash stands for the call as it was asked for, with what allows it.
func (s *stage) hash() []byte {
	text := encode(s.asked)
	if s.grant != nil {
		text = append(text, encode(s.grant)...)
	}
	return []byte(protocol.DigestOf(text))
}

// check finds the tool and validates the arguments.
func (s *stage) check(catalog *tool.Catalog) {
	s.find(catalog)
	if s.reply == nil {
		s.validate()
	}
}

// find finds the tool, before anybody is asked anything.
func (s *stage) find(catalog *tool.Catalog) {
	if s.grant != nil {
		s.allow(catalog)
		return
	}
	var ok bool
	if s.entry, ok = catalog.Lookup(s.call.Name); !ok {
		_, err := catalog.Admit(s.call.Name, s.call.Args)
		s.answer(tool.Refusal(err))
	}
}

// allow finds the tool of a grant.
func (s *stage) allow(catalog *tool.Catalog) {
	var err error
	if s.entry, err = catalog.Granted(*s.grant); err != nil {
		s.answer(tool.Refusal(err))
	}
}

func (s *stage) validate() {
	if err := s.entry.Validate(s.call.Args); err != nil {
		s.answer(tool.Refusal(err))
	}
}

// begin counts an attempt that is about to be made.
func (s *stage) begin() {
	s.attempt++
	s.replay = s.declared()
}

// declared says whether its tool lets calls be made again.
func (s *stage) declared() protocol.Replay {
	if s.entry == nil {
		return protocol.ReplayNever
	}
	return cmp.Or(s.entry.Terms().Replay, protocol.ReplayNever)
}

// repeatable tells whether a call that was started may be started again: as its tool is declared now, and was then. Another
// version of it cannot say what the one before has done.
func (s *stage) repeatable() bool {
	return repeats(s.declared()) && (s.replay == "" || repeats(s.replay))
}

func repeats(c protocol.Replay) bool {
	return c == protocol.ReplaySafe || c == protocol.ReplayIdempotent
}

func (s *stage) fail(class protocol.FailureClass, code, text string, source protocol.FailureSource) {
	s.answer(protocol.Fail(class, code, text, source))
}

func (s *stage) answer(out protocol.ToolOutput) {
	s.reply = &turn.ToolReply{CallID: s.call.CallID, Name: s.call.Name, Args: s.replaced(), Output: out}
}

// replaced are the arguments as the call runs, if they are not those of the model.
func (s *stage) replaced() json.RawMessage {
	if bytes.Equal(s.asked.Args, s.call.Args) {
		return nil
	}
	return s.call.Args
}

// unfinished gives a call its result that was started and is not brought to its end.
func (s *stage) unfinished() {
	if s.given != nil {
		s.answer(*s.given)
		s.given = nil
		return
	}
	s.settled(&protocol.DecisionAnswer{Choice: protocol.ChooseTellModel})
}

// row is what the journal is to have of a call.
func (s *stage) row() callRow {
	return callRow{
		Attempt: s.attempt, Replay: s.replay, Args: s.replaced(), Given: s.given, Reply: s.reply, Messages: s.messages, Parked: s.parked,
		Overdue: s.overdue, Intents: s.intents, Confined: s.sandboxed, Places: s.places(),
	}
}

// places are where the paths of the call led when it was allowed: also for one that is made again without being judged again.
func (s *stage) places() []string {
	if s.about != nil {
		return s.about.real()
	}
	return s.allowed
}
