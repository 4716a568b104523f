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

// exact is v as it would be read back from its JSON: raw values compact, text valid UTF-8, empty lists absent where
// the field says so. It shares nothing with v.
func exact[T any](v T) (T, error) {
	out := v
	if !encodesItself(reflect.TypeFor[T]()) && faithful(reflect.ValueOf(&out).Elem()) {
		return out, nil
	}
	return reread(v)
}

// reread goes over JSON.
func reread[T any](v T) (T, error) {
	var out T
	text, err := json.Marshal(v)
	if err != nil {
		return out, err
	}
	if !utf8.Valid(text) { // raw values are not looked into by Marshal
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	err = json.Unmarshal(text, &out)
	return out, err
}

// Exact is the environment as its JSON would be read back. A response can say that it has one, and the machine then takes it
// in as it is, so that what serves many turns is read back once: for the tools that ship inside that takes a tenth of a
// millisecond. Nobody changes what it refers to. It fails if it cannot be encoded.
func (e Environment) Exact() (Environment, error) { return exact(e) }

var errMissing = errors.New("it has no field of the effect's kind")

// received is an answer as the machine takes it in, or an error if it does not answer the effect.
func (m *Machine) received(e *Effect, r Response) (Response, error) {
	fits := false
	switch e.Kind {
	case EffectSync:
		if fits = r.Sync != nil; fits && r.Exact {
			return Response{Sync: r.Sync}, nil
		}
		if fits && reflect.DeepEqual(*r.Sync, m.s.Env) {
			known := m.s.Env // nothing changed, as mostly: reading 200 tools back takes a millisecond
			return Response{Sync: &known}, nil
		}
	case EffectModel:
		if fits = r.Model != nil; fits {
			reply := *r.Model
			reply.Reply = wellFormed(reply.Reply)
			r.Model = &reply
		}
	case EffectTools:
		fits = true // an empty list is an answer too
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
			r.Tools[i] = failed(call, "malformed_output", fmt.Sprintf("what the tool answered is not JSON: %v", err))
		}
	}
	return exact(r)
}

// wellFormed is a reply whose JSON can be stored. Arguments that are no JSON become a string: they are refused, and the model can try
// again.
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

// resultsOf puts the results into the order of the calls. A call without a result gets a failure, so that each has
// exactly one.
func resultsOf(calls []protocol.ToolCall, replies []ToolReply) []ToolReply {
	ordered := make([]ToolReply, len(calls))
	for i, call := range calls {
		ordered[i] = replyTo(call, replies)
	}
	return ordered
}

func replyTo(call protocol.ToolCall, replies []ToolReply) ToolReply {
	for _, r := range replies {
		if r.CallID == call.CallID {
			r.Name = call.Name
			return r
		}
	}
	return failed(call, "batch_missing_result", "the batch came back without a result for this call")
}

func failed(call protocol.ToolCall, code, text string) ToolReply {
	return ToolReply{
		CallID: call.CallID, Name: call.Name, Output: protocol.Fail(protocol.FailInternal, code, text, protocol.FromRuntime),
	}
}
