package starlark

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	starlarkmath "go.starlark.net/lib/math"
	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// maxRange is the length of the longest range, and of other sequences that functions build from ranges.
const maxRange = 10_000_000

// historyName is the read-only global with the conversation.
const historyName = "history"

// reservedNames cannot be assigned, because nothing could bring them back. Other builtins can.
var reservedNames = map[string]string{
	historyName: "the conversation, which is read-only", "finish": "the function that ends the turn", "submit_error": "the function that fails the turn",
	"continue_as": "the function that starts a new frame", "parallel": "the function that runs calls together", "print": "a builtin function",
	"True": "a constant", "False": "a constant", "None": "a constant",
}

// reserved says what a name is that cannot be assigned, or "".
func (in *Interpreter) reserved(name string) string {
	if in.tools.modules[name] != nil && in.space.globals[name] == nil {
		return "a module with tools"
	}
	return reservedNames[name]
}

// builtin is the implementation of a function for cells. It runs on the goroutine of the cell while Interpreter.run is set.
type builtin = func(*starlark.Thread, *starlark.Builtin, starlark.Tuple, []starlark.Tuple) (starlark.Value, error)

// library has the functions of the modules that cells can use without asking the host for anything but time and randomness.
type library struct{ *Interpreter }

// universe returns the builtins of cells: those of Starlark, some of them with checks, and those of this package.
func (in *Interpreter) universe() starlark.StringDict {
	lib := library{in}
	all := maps.Clone(starlark.Universe)
	for name, f := range map[string]builtin{
		"parallel": in.parallel, "finish": in.finish, "submit_error": in.submitError, "continue_as": in.continueAs,
		"print": in.print, "str": in.str, "repr": in.repr, "fail": in.fail, "range": in.rangeOf, "struct": starlarkstruct.Make,
	} {
		all[name] = starlark.NewBuiltin(name, f)
	}
	for _, name := range []string{"list", "tuple", "set", "dict", "enumerate", "reversed", "sorted", "zip", "bytes"} {
		all[name] = in.checked(name)
	}
	for name, members := range map[string]map[string]builtin{
		"json": lib.jsonFunctions(), "re": lib.regexpFunctions(), "text": lib.textFunctions(),
		"time": lib.timeFunctions(), "random": lib.randomFunctions(),
	} {
		all[name] = moduleOf(name, members)
	}
	all["math"] = starlarkmath.Module
	return all
}

// moduleOf returns a module of functions.
// The functions carry the full name, such as text.cut, which is also how a stored reference to one is written.
func moduleOf(name string, members map[string]builtin) *starlarkstruct.Module {
	m := &starlarkstruct.Module{Name: name, Members: starlark.StringDict{}}
	for f, impl := range members {
		m.Members[f] = starlark.NewBuiltin(name+"."+f, impl)
	}
	return m
}

// lookup returns a builtin or a module of tools, or nil.
// Builtins win over modules of tools; Bind gives a module whose name a builtin has another name, so none is hidden.
func (in *Interpreter) lookup(name string) starlark.Value {
	if v := in.builtins[name]; v != nil {
		return v
	}
	if m := in.tools.modules[name]; m != nil {
		return m
	}
	return nil
}

// names returns the names that lookup knows.
// They are for suggestions and have no order.
func (in *Interpreter) names() []string {
	return append(slices.Collect(maps.Keys(in.builtins)), slices.Collect(maps.Keys(in.tools.modules))...)
}

// named returns the builtin function with a full name, such as json.decode, or nil.
// It is how a stored builtin is found again. A name that no longer exists makes only its global unusable.
func (in *Interpreter) named(name string) starlark.Value {
	if v := in.builtins[name]; v != nil {
		return v
	}
	module, member, _ := strings.Cut(name, ".")
	if m, ok := in.builtins[module].(*starlarkstruct.Module); ok {
		return m.Members[member]
	}
	return nil
}

// module returns the module with a name, or nil.
func (in *Interpreter) module(name string) starlark.Value {
	if m, ok := in.lookup(name).(*starlarkstruct.Module); ok {
		return m
	}
	return nil
}

// checked returns a builtin of Starlark that first checks the memory and the steps for its arguments. Iterables of unknown
// length are read into a list, with the same checks.
//
// The interpreter counts one step for a call of a builtin, whatever its size; so builtins that loop over their arguments charge
// one step for eight elements, and sorted also the logarithm of their number. The estimates of memory are those of a 64-bit
// system: 16 bytes for an element of a list or tuple, and 64 for an entry of a dict.
func (in *Interpreter) checked(name string) *starlark.Builtin {
	original := starlark.Universe[name].(*starlark.Builtin)
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		args = slices.Clone(args)
		for i, arg := range args {
			n, known, err := in.elements(arg)
			if err != nil {
				return nil, err
			}
			if known != nil {
				args[i] = known
			}
			work, memory := n, n*slot
			switch name {
			case "sorted":
				work = n * bits.Len(uint(n))
			case "dict", "set":
				memory = n * 4 * slot
			case "enumerate":
				memory = n * 4 * slot
			case "zip": // each argument adds an element to each tuple
				memory = n * 3 * slot
				if err := in.run.meter.room(n * slot * len(args)); err != nil {
					return nil, err
				}
			}
			if err := in.run.meter.charge(work / 8); err != nil {
				return nil, err
			}
			if err := in.run.meter.need(memory); err != nil {
				return nil, err
			}
		}
		return original.CallInternal(thread, args, kwargs)
	})
}

// elements returns the number of elements of an iterable. If only iterating tells, it also returns the elements.
func (in *Interpreter) elements(v starlark.Value) (int, starlark.Value, error) {
	if n := starlark.Len(v); n >= 0 {
		return n, nil, nil
	}
	iterable, ok := v.(starlark.Iterable)
	if !ok {
		return 0, nil, nil
	}
	var all []starlark.Value
	for x := range starlark.Elements(iterable) {
		all = append(all, x)
		if len(all)%(allocation/slot) == 0 {
			if err := in.run.meter.need(2 * allocation); err != nil {
				return 0, nil, err
			}
		}
	}
	return len(all), starlark.NewList(all), nil
}

// rangeOf implements range, with a limit to its length.
//
// A range takes no memory, but most of what code does with a long one does.
func (in *Interpreter) rangeOf(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := starlark.Universe["range"].(*starlark.Builtin).CallInternal(thread, args, kwargs)
	if err == nil && starlark.Len(v) > maxRange {
		return nil, fmt.Errorf("range: %d elements, at most %d are allowed; use while for a longer loop", starlark.Len(v), maxRange)
	}
	return v, err
}

// str implements str.
func (in *Interpreter) str(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 1 && len(kwargs) == 0 {
		if _, isBytes := args[0].(starlark.Bytes); !isBytes {
			return in.textOf(args[0], written)
		}
	}
	return starlark.Universe["str"].(*starlark.Builtin).CallInternal(thread, args, kwargs)
}

// repr implements repr.
func (in *Interpreter) repr(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	var x starlark.Value
	if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &x); err != nil {
		return nil, err
	}
	return in.textOf(x, quoted)
}

// textOf returns a value as text, if there is memory for it.
func (in *Interpreter) textOf(v starlark.Value, write func(starlark.Value, int) (string, error)) (starlark.Value, error) {
	n, err := textSize(v, in.config.Limits.Memory)
	if err != nil {
		return nil, in.unwritable(v, err)
	}
	if err := in.run.meter.need(n); err != nil {
		return nil, err
	}
	s, err := write(v, in.config.Limits.Memory)
	if err != nil {
		return nil, in.unwritable(v, err)
	}
	return starlark.String(s), nil
}

// print implements print. When the limit stops the cell, the model still sees the beginning of the output.
func (in *Interpreter) print(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	sep := " "
	if err := starlark.UnpackArgs("print", nil, kwargs, "sep?", &sep); err != nil {
		return nil, err
	}
	out, limit := &in.run.printed, in.config.Limits.Output
	for i, v := range args {
		if i > 0 {
			out.WriteString(sep)
		}
		s, err := written(v, limit-out.Len())
		out.WriteString(s[:min(len(s), max(0, limit-out.Len()))])
		if errors.Is(err, errDeep) {
			return nil, in.unwritable(v, err)
		}
		if err != nil || out.Len() > limit {
			return nil, in.run.meter.stop("the cell printed more than %s; print less, such as a count or the first lines", bytesText(limit))
		}
	}
	out.WriteByte('\n')
	return starlark.None, nil
}

// fail implements fail.
func (in *Interpreter) fail(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	sep := " "
	if err := starlark.UnpackArgs("fail", nil, kwargs, "sep?", &sep); err != nil {
		return nil, err
	}
	parts := make([]string, len(args))
	for i, v := range args {
		parts[i], _ = written(v, maxMessage)
	}
	return nil, errors.New(strings.Join(parts, sep))
}

// maxMessage bounds the text of an error.
const maxMessage = 4 << 10

// jsonFunctions returns the module json.
func (in library) jsonFunctions() map[string]builtin {
	encode := func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var x starlark.Value
		indent := 0
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x", &x, "indent?", &indent); err != nil {
			return nil, err
		}
		data, err := toJSON(x, in.config.Limits.Memory/4)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
		if err := in.run.meter.need(2 * len(data)); err != nil {
			return nil, err
		}
		return starlark.String(indented(data, indent)), nil
	}
	decode := func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var x string
		var fallback starlark.Value
		if err := starlark.UnpackArgs(b.Name(), args, kwargs, "x", &x, "default?", &fallback); err != nil {
			return nil, err
		}
		v, err := in.fromJSON(x)
		if err != nil && fallback != nil && !errors.Is(err, errStopped) {
			return fallback, nil
		}
		return v, err
	}
	return map[string]builtin{"encode": encode, "decode": decode, "dumps": encode, "loads": decode}
}
