package turn

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"unicode/utf8"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// exact returns a deep copy of v as reading back its JSON would give it: raw values compact, text valid UTF-8, and
// empty omitempty lists nil. Replay from a journal then produces identical effects.
func exact[T any](v T) (T, error) {
	out := v
	if !encodesItself(reflect.TypeFor[T]()) && faithful(reflect.ValueOf(&out).Elem()) {
		return out, nil
	}
	return reread(v)
}

// reread encodes v as JSON and decodes it again.
func reread[T any](v T) (T, error) {
	var out T
	text, err := json.Marshal(v)
	if err != nil {
		return out, err
	}
	if !utf8.Valid(text) { // Marshal does not check raw values
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	err = json.Unmarshal(text, &out)
	return out, err
}

// Exact returns the environment as reading back its JSON would give it. A Response with such an environment sets Exact,
// and the machine then skips the conversion; one environment serves many turns. Nothing may modify what it refers to.
// It fails if the environment cannot be encoded.
func (e Environment) Exact() (Environment, error) { return exact(e) }

// Exact returns the environment as reading back its JSON would give it.
func (e CodeEnvironment) Exact() (CodeEnvironment, error) { return exact(e) }

// errMissing means that a Response lacks the field of its effect's kind.
var errMissing = errors.New("the field for this effect is missing")

// received converts an answer for the machine, or fails if it does not answer the effect.
func (m *Machine) received(e *Effect, r Response) (Response, error) {
	fits := false
	switch e.Kind {
	case EffectSync:
		if fits = r.Sync != nil; fits && r.Exact {
			return Response{Sync: r.Sync}, nil
		}
		if fits && reflect.DeepEqual(*r.Sync, m.s.Env) {
			known := m.s.Env // usually unchanged: rereading 200 tools takes a millisecond
			return Response{Sync: &known}, nil
		}
	case EffectModel:
		if fits = r.Model != nil; fits {
			reply := *r.Model
			reply.Reply = wellFormed(reply.Reply)
			r.Model = &reply
		}
	case EffectTools:
		fits = true // an empty list is a valid answer
		r.Tools = resultsOf(e.Tools.Calls, r.Tools)
	case EffectCode:
		fits = r.Code != nil
	case EffectCheckpoint:
		fits = r.Checkpoint != nil
	}
	if !fits {
		return r, errMissing
	}
	out, err := exact(r)
	if err == nil || e.Kind != EffectTools {
		return out, err
	}
	for i, call := range e.Tools.Calls {
		if _, err := exact(r.Tools[i]); err != nil {
			r.Tools[i] = failed(call, "malformed_output", fmt.Sprintf("the tool's output is not valid JSON: %v", err))
		}
	}
	return exact(r)
}

// wellFormed returns a reply whose JSON can be stored. Arguments that are not JSON become a JSON string: the call is
// rejected, and the model can retry.
func wellFormed(reply provider.Reply) provider.Reply {
	parts := slices.Clone(reply.Parts)
	for i := range parts {
		if parts[i].Replay != nil && !json.Valid(parts[i].Replay) {
			parts[i].Replay, parts[i].Route = nil, ""
		}
		if c := parts[i].Call; c != nil {
			call := *c
			call.Args = provider.Arguments(c.Args)
			parts[i].Call = &call
		}
	}
	reply.Parts = slices.DeleteFunc(parts, func(p protocol.Part) bool { return p.Kind == protocol.PartToolCall && p.Call == nil })
	return reply
}

// resultsOf returns exactly one result per call, in the order of the calls. A missing result becomes a failure.
func resultsOf(calls []protocol.ToolCall, replies []ToolReply) []ToolReply {
	ordered := make([]ToolReply, len(calls))
	for i, call := range calls {
		ordered[i] = replyTo(call, replies)
	}
	return ordered
}

// replyTo returns the result of one call, or a failure if there is none.
func replyTo(call protocol.ToolCall, replies []ToolReply) ToolReply {
	for _, r := range replies {
		if r.CallID == call.CallID {
			r.Name = call.Name
			return r
		}
	}
	return failed(call, "batch_missing_result", "the batch returned no result for this call")
}

// failed returns the failed result of a call.
func failed(call protocol.ToolCall, code, text string) ToolReply {
	return ToolReply{
		CallID: call.CallID, Name: call.Name, Output: protocol.Fail(protocol.FailInternal, code, text, protocol.FromRuntime),
	}
}
