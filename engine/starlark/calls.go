package starlark

import (
	"errors"
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"

	"lashd/rpc/protocol"
)

// A call of a tool has three forms: a pending call, which Starlark code can pass around; a Call for the host; and a result.
// Arguments are converted to JSON when the pending call is made, so that a later change of a list does not change the call.

// pending is a call that has not been made. It is the result of the method later of a tool.
// A global that contains one cannot be saved and is reported to the model by name. Its result can be saved.
type pending struct {
	surface string
	call    Call
}

func (p *pending) String() string        { return "<call of " + p.surface + ">" }
func (p *pending) Type() string          { return "call" }
func (p *pending) Freeze()               {}
func (p *pending) Truth() starlark.Bool  { return true }
func (p *pending) Hash() (uint32, error) { return 0, errors.New("unhashable: call") }

// result is the output of a call: a value if ok, otherwise an error. It is immutable.
//
// Most tools say what they found in their text, for example the lines of a file, and describe it in their value, for
// example the numbers of these lines. So code needs both.
type result struct {
	ok    bool
	value starlark.Value  // the value, or a struct with code, kind and message
	text  starlark.String // what a model that calls the tool itself would read; that of a failure is its message
}

func (r *result) String() string        { s, _ := quoted(r, allocation); return s }
func (r *result) Type() string          { return "result" }
func (r *result) Freeze()               { r.value.Freeze() }
func (r *result) Truth() starlark.Bool  { return starlark.Bool(r.ok) }
func (r *result) Hash() (uint32, error) { return 0, errors.New("unhashable: result") }
func (r *result) AttrNames() []string   { return []string{"error", "ok", "text", "unwrap", "value"} }

// Attr returns a field. The field that a result does not have is None.
// A missing name is nil without an error, from which the interpreter makes its own message with a suggestion.
func (r *result) Attr(name string) (starlark.Value, error) {
	switch {
	case name == "ok":
		return starlark.Bool(r.ok), nil
	case name == "text":
		return r.text, nil
	case name == "value" && r.ok, name == "error" && !r.ok:
		return r.value, nil
	case name == "value", name == "error":
		return starlark.None, nil
	case name == "unwrap":
		return starlark.NewBuiltin("unwrap", unwrap).BindReceiver(r), nil
	}
	return nil, nil
}

// ownText returns the text, or None if the value is the text.
func (r *result) ownText() starlark.Value {
	if r.value == starlark.Value(r.text) {
		return starlark.None
	}
	return r.text
}

// says reports whether a result is shown with its text.
func (r *result) says() bool { return r.ok && r.text != "" && r.ownText() != starlark.None }

// unwrap returns the value of a result, or fails the cell with its error.
//
// Starlark has no exceptions, so this is how a cell says that it cannot continue without the value.
func unwrap(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if err := starlark.UnpackArgs("unwrap", args, kwargs); err != nil {
		return nil, err
	}
	r := b.Receiver().(*result)
	if r.ok {
		return r.value, nil
	}
	message := r.value.String()
	if s, ok := r.value.(*starlarkstruct.Struct); ok {
		m, _ := s.Attr("message")
		message, _ = starlark.AsString(m)
	}
	return nil, errors.New(message)
}

// callAll makes calls as one batch, with the clock of the cell stopped, and returns their results in the same order. It
// fails only if the host does, for example because the cell was cancelled. A tool that fails is a result.
// calls must not be empty. The host journals the batch in this order, so the order must be the same if the cell runs again.
func (in *Interpreter) callAll(calls []*pending) ([]starlark.Value, error) {
	wanted := make([]Call, len(calls))
	for i, p := range calls {
		wanted[i] = p.call
	}
	outputs, err := outside(in.run, func() ([]protocol.ToolOutput, error) { return in.run.host.Call(in.run.ctx, wanted) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", calls[0].surface, err)
	}
	if len(outputs) != len(calls) {
		return nil, fmt.Errorf("%d calls returned %d outputs", len(calls), len(outputs))
	}
	results := make([]starlark.Value, len(calls))
	for i := range outputs {
		if results[i], err = in.result(calls[i].surface, &outputs[i]); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// result converts the output of a tool. Without a structured value, its value is the text.
// The memory for the text and the value counts for the cell. A cell that
// reads too many large files fails here, before the value is built.
func (in *Interpreter) result(surface string, out *protocol.ToolOutput) (*result, error) {
	if out.Status != protocol.OutputSuccess || out.Failure != nil {
		return failure(surface, out), nil
	}
	text := starlark.String(out.Text)
	if err := in.run.meter.need(len(text)); err != nil {
		return nil, err
	}
	if len(out.Value) == 0 {
		return &result{ok: true, value: text, text: text}, nil
	}
	v, err := in.fromJSON(string(out.Value))
	if err != nil {
		return nil, fmt.Errorf("the value of %s: %w", surface, err)
	}
	return &result{ok: true, value: v, text: text}, nil
}

// failure converts the output of a tool that failed, was cancelled or has an unknown outcome. Its message begins with the name of the tool in code, because after unwrap it is all
// that the model reads. The class of the failure is named kind, because class is a reserved word of the language.
func failure(surface string, out *protocol.ToolOutput) *result {
	f := out.Failure
	if f == nil {
		f = &protocol.ToolFailure{Class: protocol.FailExecution, Code: string(out.Status), Message: out.Text}
	}
	message := f.Message
	if message == "" {
		message = out.Text
	}
	whole := starlark.String(surface + " failed: " + message)
	return &result{text: whole, value: starlarkstruct.FromStringDict(starlarkstruct.Default, starlark.StringDict{
		"code": starlark.String(f.Code), "kind": starlark.String(f.Class), "message": whole,
	})}
}

// parallel implements parallel(calls): it makes the calls together and returns their results in the shape of calls, which
// is a list, a tuple or a dict. Other values stay.
func (in *Interpreter) parallel(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var calls starlark.Iterable
	if err := starlark.UnpackArgs(b.Name(), args, kwargs, "calls", &calls); err != nil {
		return nil, err
	}
	var keys, values []starlark.Value
	dict, keyed := calls.(*starlark.Dict)
	if keyed {
		for k, v := range dict.Entries() {
			keys, values = append(keys, k), append(values, v)
		}
	} else {
		for v := range starlark.Elements(calls) {
			values = append(values, v)
		}
	}
	if err := in.replacePending(values); err != nil {
		return nil, err
	}
	if !keyed {
		return starlark.NewList(values), nil
	}
	out := starlark.NewDict(len(keys))
	for i, k := range keys {
		_ = out.SetKey(k, values[i]) // keys of a dict are hashable
	}
	return out, nil
}

// replacePending makes all pending calls among the values and replaces them by their results.
//
// All calls are checked before the first one is made: a mistake in one element has no effects.
func (in *Interpreter) replacePending(values []starlark.Value) error {
	var calls []*pending
	var at []int
	for i, v := range values {
		switch v := v.(type) {
		case *pending:
			calls, at = append(calls, v), append(at, i)
		case *result:
			return fmt.Errorf("parallel: element %d has already run; use the method later, as in parallel([tool.later(x), ...])", i)
		default:
			return fmt.Errorf("parallel: element %d is a %s, not a call; use the method later, as in parallel([tool.later(x), ...])", i, v.Type())
		}
	}
	if len(calls) == 0 {
		return nil
	}
	results, err := in.callAll(calls)
	if err != nil {
		return err
	}
	for i, r := range results {
		values[at[i]] = r
	}
	return nil
}
