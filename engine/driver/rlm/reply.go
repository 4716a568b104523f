package rlm

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"lashd/engine/provider"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// reading is a reply as the driver reads it.
type reading struct {
	parts []protocol.Part // up to the end of the first cell; tool calls are left out
	text  string          // prose and code, as the model wrote them
	code  string          // the cell with its tags; "": there is none
	open  bool            // the cell is not closed
	calls bool            // the reply has native tool calls
}

// read finds the cell of a reply. Parts that arrived as a stream are split already and stay as they are.
func read(parts []protocol.Part, language string) reading {
	var r reading
	s := newSplitter(language)
	for _, p := range parts {
		switch p.Kind {
		case protocol.PartProse, protocol.PartCommentary, protocol.PartCode:
			r.add(p, merged(append(s.Write(p.Text), s.Break()...)))
		case protocol.PartToolCall:
			r.calls = true
		default:
			if !s.Done() {
				r.parts = append(r.parts, p)
			}
		}
	}
	r.open = r.code != "" && !s.Done()
	return r
}

// merged joins neighbouring pieces of one kind.
func merged(pieces []turn.Piece) (all []turn.Piece) {
	for _, p := range pieces {
		if n := len(all); n > 0 && all[n-1].Kind == p.Kind {
			all[n-1].Text += p.Text
			continue
		}
		all = append(all, p)
	}
	return all
}

// add adds the pieces of a part. The provider's own block stays with the last of them.
func (r *reading) add(p protocol.Part, pieces []turn.Piece) {
	for i, piece := range pieces {
		part := protocol.Part{Kind: p.Kind, Text: piece.Text}
		r.text += piece.Text
		switch {
		case piece.Kind == protocol.PartCode:
			part.Kind = protocol.PartCode
			r.code += piece.Text
		case p.Kind == protocol.PartCode: // text around a cell that a plugin changed
			part.Kind = protocol.PartProse
		}
		if i == len(pieces)-1 {
			part.Replay, part.Route = p.Replay, p.Route
		}
		r.parts = append(r.parts, part)
	}
}

// message returns the reply as it enters the conversation.
func (r *reading) message() protocol.Message {
	return protocol.Message{Role: protocol.RoleAssistant, Parts: r.parts}
}

// fingerprint identifies the text of a reply in diagnostics.
func (r *reading) fingerprint() string {
	sum := sha256.Sum256([]byte(r.text))
	return hex.EncodeToString(sum[:8])
}

// decision is what the driver does with a reply.
type decision string

const (
	execute       decision = "execute"       // run the cell
	finish        decision = "finish"        // the prose is the answer
	askForFinish  decision = "askForFinish"  // prose, but the turn must end with finish
	unclosedCell  decision = "unclosedCell"  // the cell has no closing tag
	cutCell       decision = "cutCell"       // the output limit cut the cell
	cutProse      decision = "cutProse"      // the output limit cut the prose
	foreignCell   decision = "foreignCell"   // code in a form that lashd does not run
	malformedCell decision = "malformedCell" // something like a cell, but the turn must end with finish
	nativeCall    decision = "nativeCall"    // a tool call, although the request offered no tools
	emptyReply    decision = "emptyReply"
	lateCell      decision = "lateCell"   // a cell after the budget of the turn, which has no reply after it to use its result
	wrongValue    decision = "wrongValue" // of finish: the value does not match the schema
)

// decide returns what to do with a reply that ended normally or at the output limit.
func decide(v turn.View, o options, r *reading, stop protocol.StopReason) decision {
	cut, prose := stop == protocol.StopOutputLimit, strings.TrimSpace(r.text)
	switch {
	case r.calls:
		return nativeCall
	case r.open && cut:
		return cutCell
	case r.open:
		return unclosedCell
	case r.code != "" && v.Grace && !o.mustFinish():
		return lateCell
	case r.code != "":
		return execute
	case cut:
		return cutProse
	case hasForeignCell(prose, v.Code.Language), isForeignFence(prose, v.Code.Language) && (o.mustFinish() || !repairedBefore(v, r.fingerprint())):
		return foreignCell
	case o.mustFinish() && looksLikeCell(prose, v.Code.Language):
		return malformedCell
	case o.mustFinish():
		return askForFinish
	case prose == "" && !afterOutput(v.Messages):
		return emptyReply
	}
	return finish
}

// afterOutput reports whether the last message of the turn is the result of a cell.
func afterOutput(msgs []protocol.Message) bool {
	if len(msgs) == 0 {
		return false
	}
	parts := msgs[len(msgs)-1].Parts
	return len(parts) > 0 && parts[0].Kind == protocol.PartOutput
}

// Reply implements turn.Driver.
func (d Driver) Reply(v turn.View, reply provider.Reply) []turn.Action {
	o, _ := optionsOf(v) // Prepare has checked them
	r := read(reply.Parts, v.Code.Language)
	what := decide(v, o, &r, reply.Stop)
	actions := []turn.Action{diagnose(v, what, r.fingerprint())}
	if len(r.parts) > 0 && what != nativeCall {
		actions = append(actions, turn.Append(r.message()))
	}
	switch what {
	case execute:
		_, source, _ := protocol.SplitCell(r.code)
		return append(actions, turn.StartCode(turn.Cell{Language: v.Code.Language, Source: source, AcceptFinish: true, Schema: o.schema()}))
	case finish:
		msg := r.message()
		return append(actions, turn.CheckpointThen(protocol.BoundaryBeforeCompletion,
			&protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage, Text: msg.Answer()}))
	case lateCell:
		return append(actions, turn.Append(outputMessage("The code was not run: the turn has used up its budget of model calls.", nil)),
			turn.Finish(protocol.TurnOutcome{Kind: protocol.OutcomeMaxTurns, Text: "The turn was stopped: it has used up its budget of model calls."}))
	case nativeCall:
		return append(actions, failed("unexpected_tool_call", "The model called a tool, although the request offered none. In this session tools are called from code cells.")...)
	case emptyReply:
		return append(actions, turn.Report(protocol.Issue{Kind: "provider", Code: "empty_response", Message: "the model answered with nothing"}),
			turn.Finish(protocol.TurnOutcome{Kind: protocol.OutcomeProviderError, Text: "the model answered with nothing"}))
	}
	return append(actions, repair(what, repairText(what, v.Code.Language, o), r.fingerprint())...)
}

// diagnose emits a decision for observers.
func diagnose(v turn.View, what decision, fingerprint string) turn.Action {
	body, _ := json.Marshal(struct { // it is text: this cannot fail
		Decision    decision `json:"decision"`
		Iteration   int      `json:"iteration"`
		Fingerprint string   `json:"fingerprint"` // of the reply
	}{what, v.Iteration, fingerprint})
	return turn.Emit(protocol.PluginNode{Plugin: ID, Type: "rlm.decision", Body: body})
}

// repair answers an invalid reply, counts it as an attempt without progress and continues with the next iteration.
func repair(what decision, text, fingerprint string) []turn.Action {
	return []turn.Action{
		turn.Append(protocol.Message{Role: protocol.RoleEvent, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}),
		turn.Report(protocol.Issue{Kind: "protocol", Code: issueCodes[what], Message: text}),
		remember(fingerprint),
		turn.NoProgress(),
		turn.CheckpointThen(protocol.BoundaryAfterWork, nil),
	}
}

// issueCodes are the codes under which the report of a turn has its repairs.
var issueCodes = map[decision]string{
	askForFinish: "finish_required", unclosedCell: "unclosed_cell", cutCell: "cut_cell", cutProse: "cut_prose",
	foreignCell: "foreign_cell", malformedCell: "malformed_cell", wrongValue: "wrong_value",
}
