package starlark

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// slot is the memory of an element of a list, and piece that of an element that is a new short string.
const (
	slot  = 16
	piece = 48
)

// maxBits bounds integers, because the time of a multiplication grows with the square of their length.
const maxBits = 1 << 20

// operand is the right operand of + or * in rewritten code. It checks the memory for the result and then applies the
// operator to the value.
//
// Operators that can double memory within one step are the ones that the watchdog could miss: 30 steps of x + x make a gigabyte.
// The interpreter has no hook for operators, but it lets the type of an operand define them. So rewritten code wraps the right
// operand, except where a literal shows that nothing can double.
type operand struct {
	starlark.Value
	in      *Interpreter
	inPlace bool // of an assignment, which extends a list
}

// guard implements the hidden function around right operands. Numbers need no check for +.
// The wrapper exists only for the operator that follows: Binary unwraps it, so no code ever sees an operand.
func (in *Interpreter) guard(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return &operand{args[0], in, false}, nil
}

// grow is guard for the operands of += and *=.
func (in *Interpreter) grow(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	return &operand{args[0], in, true}, nil
}

// Binary implements starlark.HasBinary.
// The interpreter calls it for the right operand after the left one has declined, which all types of cells do for an operand. Therefore
// the side is always the right one.
func (o *operand) Binary(op syntax.Token, x starlark.Value, _ starlark.Side) (starlark.Value, error) {
	m := o.in.run.meter
	if op == syntax.STAR {
		if err := product(m, x, o.Value); err != nil {
			return nil, err
		}
	} else if list, ok := x.(*starlark.List); ok && o.inPlace {
		return o.extend(list)
	} else if n := bulk(x) + bulk(o.Value); n > 0 {
		if err := m.need(n); err != nil {
			return nil, err
		}
	}
	return starlark.Binary(op, x, o.Value)
}

// extend appends the elements of the operand to a list.
// It keeps the list itself: += must be seen by all names of the list, as it is without the wrapper.
func (o *operand) extend(list *starlark.List) (starlark.Value, error) {
	elements, ok := o.Value.(starlark.Iterable)
	if !ok {
		return nil, fmt.Errorf("unknown binary op: list + %s", o.Type())
	}
	if err := o.in.run.meter.need(slot * max(0, starlark.Len(elements))); err != nil {
		return nil, err
	}
	method, err := list.Attr("extend")
	if err != nil {
		return nil, err
	}
	_, err = starlark.Call(o.in.run.thread, method, starlark.Tuple{elements}, nil)
	return list, err
}

// bulk returns the memory of the elements of a value that can be concatenated.
// Dicts and sets are missing on purpose: + and * are not defined for them.
func bulk(v starlark.Value) int {
	switch v := v.(type) {
	case starlark.String:
		return len(v)
	case starlark.Bytes:
		return len(v)
	case *starlark.List:
		return v.Len() * slot
	case starlark.Tuple:
		return len(v) * slot
	}
	return 0
}

// product checks the memory for a product.
func product(m *meter, x, y starlark.Value) error {
	n, xIsInt := x.(starlark.Int)
	k, yIsInt := y.(starlark.Int)
	switch {
	case xIsInt && yIsInt:
		return longNumbers(n, k)
	case xIsInt:
		return repeated(m, y, n)
	case yIsInt:
		return repeated(m, x, k)
	}
	return nil
}

// longNumbers rejects the product of numbers with too many digits.
// Numbers of 64 bits need no look at their length, and almost all numbers are such.
func longNumbers(x, y starlark.Int) error {
	if _, small := x.Int64(); small {
		if _, small := y.Int64(); small {
			return nil
		}
	}
	if x.BigInt().BitLen()+y.BigInt().BitLen() > maxBits {
		return fmt.Errorf("the product has more than %d bits", maxBits)
	}
	return nil
}

// repeated checks the memory for n copies of a value.
// The product is computed with 128 bits, because a count such as 1 << 62 would wrap around to a small size.
func repeated(m *meter, v starlark.Value, n starlark.Int) error {
	size := bulk(v)
	count, ok := n.Int64()
	if size == 0 || n.Sign() <= 0 {
		return nil
	}
	high, low := bits.Mul64(uint64(size), uint64(count))
	if !ok || high != 0 || low > uint64(m.limits.Memory) {
		return m.tooLarge()
	}
	return m.need(int(low))
}

// mod implements the operator %, which also formats strings.
func (in *Interpreter) mod(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	if s, ok := args[0].(starlark.String); ok {
		if err := in.formatting(len(s), args[1:], nil); err != nil {
			return nil, err
		}
	}
	return starlark.Binary(syntax.PERCENT, args[0], args[1])
}

// formatting checks the memory for a string that contains the text of values.
// Each value is measured once, although a format can name it several times; guardFormat charges those.
func (in *Interpreter) formatting(size int, args starlark.Tuple, kwargs []starlark.Tuple) error {
	for _, v := range args {
		n, err := textSize(v, in.config.Limits.Memory)
		if err != nil {
			return in.unwritable(v, err)
		}
		size += n
	}
	for _, pair := range kwargs {
		n, err := textSize(pair[1], in.config.Limits.Memory)
		if err != nil {
			return in.unwritable(pair[1], err)
		}
		size += n
	}
	return in.run.meter.need(size)
}

// unwritable returns the error for a value that cannot be written as text.
// A value that is too long counts as memory and stops the cell. Other reasons, such as its depth, are ordinary errors of the call.
func (in *Interpreter) unwritable(v starlark.Value, err error) error {
	if errors.Is(err, errLong) {
		return in.run.meter.tooLarge()
	}
	return fmt.Errorf("a %s cannot be written as text: %w", v.Type(), err)
}

// A guardedMethod returns the memory that a call of a method of a string can need.
type guardedMethod func(in *Interpreter, s string, args starlark.Tuple, kwargs []starlark.Tuple) error

// guarded has the methods of strings whose result can be much larger than the string. All of them check before they run.
var guarded = map[string]guardedMethod{}

func init() {
	guarded["join"] = guardJoin
	guarded["replace"] = guardReplace
	guarded["format"] = func(in *Interpreter, s string, args starlark.Tuple, kwargs []starlark.Tuple) error {
		return guardFormat(in, s, args, kwargs)
	}
	guarded["extend"] = func(*Interpreter, string, starlark.Tuple, []starlark.Tuple) error { return nil } // of lists: see attr
	guarded["split"], guarded["rsplit"], guarded["splitlines"] = guardSplit, guardSplit, guardSplit
}

// guardJoin checks str.join.
// Wrong arguments pass: the method itself has the better message for them.
func guardJoin(in *Interpreter, s string, args starlark.Tuple, _ []starlark.Tuple) error {
	if len(args) != 1 {
		return nil
	}
	seq, ok := args[0].(starlark.Sequence)
	if !ok {
		return nil
	}
	size := 0
	for x := range starlark.Elements(seq) {
		if size += len(s) + bulk(x); size > in.config.Limits.Memory {
			break
		}
	}
	return in.run.meter.need(size)
}

// guardReplace checks str.replace.
// A limit on the number of replacements is ignored, so the estimate can be too high and is never too low.
func guardReplace(in *Interpreter, s string, args starlark.Tuple, _ []starlark.Tuple) error {
	if len(args) < 2 {
		return nil
	}
	from, _ := starlark.AsString(args[0])
	to, _ := starlark.AsString(args[1])
	n := strings.Count(s, from)
	if len(to) > 0 && n > in.config.Limits.Memory/len(to) {
		return in.run.meter.tooLarge()
	}
	return in.run.meter.need(len(s) + n*len(to))
}

// guardFormat checks str.format. Each pair of braces can insert the largest argument.
func guardFormat(in *Interpreter, s string, args starlark.Tuple, kwargs []starlark.Tuple) error {
	if err := in.formatting(len(s), args, kwargs); err != nil {
		return err
	}
	largest := 0
	for _, v := range args {
		n, _ := textSize(v, in.config.Limits.Memory)
		largest = max(largest, n)
	}
	for _, pair := range kwargs {
		n, _ := textSize(pair[1], in.config.Limits.Memory)
		largest = max(largest, n)
	}
	fields := strings.Count(s, "{")
	if largest > 0 && fields > in.config.Limits.Memory/largest {
		return in.run.meter.tooLarge()
	}
	return in.run.meter.need(fields * largest)
}

// guardSplit checks str.split, str.rsplit and str.splitlines.
// Without a separator it counts white space only in long texts. For short ones, half of the length is a bound that costs nothing.
func guardSplit(in *Interpreter, s string, args starlark.Tuple, _ []starlark.Tuple) error {
	pieces := len(s) / 2
	if len(args) > 0 {
		if sep, ok := starlark.AsString(args[0]); ok && sep != "" {
			pieces = strings.Count(s, sep)
		}
	} else if len(s) > allocation/piece {
		pieces = strings.Count(s, "\n") + strings.Count(s, " ") + strings.Count(s, "\t")
	}
	return in.run.meter.need(pieces * piece)
}

// attr implements the selector of a guarded method.
//
// For other types, and for methods that do not exist, it does what the selector does.
func (in *Interpreter) attr(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	name := string(args[1].(starlark.String))
	if list, ok := args[0].(*starlark.List); ok && name == "extend" {
		return in.extender(list), nil
	}
	s, ok := args[0].(starlark.String)
	if !ok {
		return starlark.Call(thread, starlark.Universe["getattr"], args, nil)
	}
	method, err := s.Attr(name)
	if err != nil || method == nil {
		return method, err
	}
	check := guarded[name]
	return starlark.NewBuiltin(name, func(thread *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		if err := check(in, string(s), args, kwargs); err != nil {
			return nil, err
		}
		return method.(*starlark.Builtin).CallInternal(thread, args, kwargs)
	}).BindReceiver(s), nil
}

// extender returns the method extend of a list, with a check of the memory.
// The method of the library would read an iterable of any length within one step.
func (in *Interpreter) extender(list *starlark.List) starlark.Value {
	return starlark.NewBuiltin("extend", func(_ *starlark.Thread, b *starlark.Builtin, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
		var elements starlark.Iterable
		if err := starlark.UnpackPositionalArgs(b.Name(), args, kwargs, 1, &elements); err != nil {
			return nil, err
		}
		_, err := (&operand{elements, in, true}).extend(list)
		return starlark.None, err
	}).BindReceiver(list)
}
