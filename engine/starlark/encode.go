package starlark

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"
	"unsafe"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// The encoding of a global is the version, the order of its creation, the names of the globals to whose values it
// refers, and its value. A value is a tag and
// its contents; lengths are varints. Containers and functions are numbered in the order in which they begin, so that a
// second occurrence refers to the first one: sharing survives within a global, and across globals by the name of
// the global that owns the value, which is the oldest one.
const version = 1

// Tags of encoded values.
const (
	tagNone     = 'N'
	tagTrue     = 'T'
	tagFalse    = 'F'
	tagInt      = 'i' // zigzag varint
	tagBigInt   = 'I' // sign, magnitude
	tagFloat    = 'd' // bits, little endian
	tagString   = 's'
	tagBytes    = 'b'
	tagList     = 'l'
	tagTuple    = 't'
	tagDict     = 'D'
	tagSet      = 'S'
	tagRange    = 'g' // start, step, length
	tagStruct   = 'x'
	tagResult   = 'r' // ok, value or error
	tagFunction = 'f'
	tagTool     = 'o' // a tool, by name
	tagModule   = 'm' // a module, by name
	tagBuiltin  = 'u' // a builtin function, by name
	tagLocal    = 'R' // an earlier value of this global
	tagForeign  = 'X' // a value of another global
	tagLost     = 'U' // tombstone: type and reason
)

// maxLevels bounds the nesting of values that are saved, converted or printed.
const maxLevels = 1000

// place says where a shared value is encoded.
type place struct {
	owner *variable
	index int
	open  bool // its contents are being encoded
}

// encoder encodes globals that share values. The place of each value is known for all of them.
type encoder struct {
	in    *Interpreter
	limit int
	seen  map[any]*place // by pointer

	g     *variable
	out   []byte
	count int   // values with a number
	mine  []any // keys of seen that belong to g
	level int
	links []*variable
}

// newEncoder returns an encoder for a group of globals, which must contain all that share values with one of them.
func newEncoder(in *Interpreter) *encoder {
	return &encoder{in: in, limit: in.config.Limits.Value, seen: map[any]*place{}}
}

// encode encodes a global. An error says why it cannot be saved; values that others share with it then belong to the
// next global that contains them.
// The result is a slice of its own that the encoder does not touch again. The links of g are replaced: they say which globals must
// be encoded again together when one of them changes.
func (e *encoder) encode(g *variable) ([]byte, error) {
	e.g, e.count, e.level, e.mine, e.links = g, 0, 0, e.mine[:0], nil
	for other := range g.links {
		delete(other.links, g)
	}
	g.links = nil
	e.out = append(make([]byte, 0, max(64, len(g.saved)+len(g.saved)/8)), opening(g.order, nil)...)
	start := len(e.out)
	if err := e.value(g.value); err != nil {
		for _, key := range e.mine {
			delete(e.seen, key)
		}
		return nil, err
	}
	if e.links == nil {
		return slices.Clip(e.out), nil
	}
	owners := make([]string, len(e.links))
	for i, other := range e.links {
		link(g, other)
		owners[i] = other.name
	}
	return append(opening(g.order, owners), e.out[start:]...), nil
}

// opening returns the header of an encoding. Owners are the globals that it refers to.
func opening(order uint64, owners []string) []byte {
	out := binary.AppendUvarint([]byte{version}, order)
	out = binary.AppendUvarint(out, uint64(len(owners)))
	for _, name := range owners {
		out = appendText(out, name)
	}
	return out
}

// link records that two globals share a value.
// Links go both ways, because a change of either global can change the encoding of the other.
func link(a, b *variable) {
	for _, p := range [][2]*variable{{a, b}, {b, a}} {
		if p[0].links == nil {
			p[0].links = map[*variable]bool{}
		}
		p[0].links[p[1]] = true
	}
}

// tombstone is the encoding of a global that cannot be saved.
// A tombstone is stored so that a cell that uses the name after a restart reads why the value is gone, not that it never existed.
func tombstone(order uint64, kind, reason string) []byte {
	out := appendText(append(opening(order, nil), tagLost), kind)
	return appendText(out, reason)
}

func appendText(out []byte, s string) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}

func (e *encoder) text(tag byte, s string) { e.out = appendText(append(e.out, tag), s) }

func (e *encoder) size(tag byte, n int) { e.out = binary.AppendUvarint(append(e.out, tag), uint64(n)) }

// value appends a value.
// The limit is checked before each value, so that a large global costs no more than the limit to find out.
func (e *encoder) value(v starlark.Value) error {
	if len(e.out) > e.limit {
		return fmt.Errorf("it is larger than %s", bytesText(e.limit))
	}
	switch v := v.(type) {
	case starlark.NoneType:
		e.out = append(e.out, tagNone)
	case starlark.Bool:
		e.out = append(e.out, map[starlark.Bool]byte{true: tagTrue, false: tagFalse}[v])
	case starlark.Int:
		e.integer(v)
	case starlark.Float:
		e.out = binary.LittleEndian.AppendUint64(append(e.out, tagFloat), math.Float64bits(float64(v)))
	case starlark.String:
		return e.bytes(tagString, string(v))
	case starlark.Bytes:
		return e.bytes(tagBytes, string(v))
	default:
		return e.compound(v)
	}
	return nil
}

// bytes appends a string, unless it is too large.
func (e *encoder) bytes(tag byte, s string) error {
	if len(e.out)+len(s) > e.limit {
		return fmt.Errorf("it is larger than %s", bytesText(e.limit))
	}
	e.text(tag, s)
	return nil
}

func (e *encoder) integer(v starlark.Int) {
	if n, ok := v.Int64(); ok {
		e.out = binary.AppendVarint(append(e.out, tagInt), n)
		return
	}
	n := v.BigInt()
	e.out = append(e.out, tagBigInt, byte(n.Sign()+1))
	e.out = appendText(e.out, string(n.Bytes()))
}

// compound appends a value that contains others or is known by name.
// The level is counted after known values, because a reference does not nest.
func (e *encoder) compound(v starlark.Value) error {
	switch v := v.(type) {
	case *operation:
		e.text(tagTool, v.surface)
		return nil
	case *starlarkstruct.Module:
		e.text(tagModule, v.Name)
		return nil
	case *starlark.Builtin:
		return e.builtin(v)
	}
	if v.Type() == "range" {
		return e.span(v)
	}
	if key := identity(v); key != nil {
		if p := e.seen[key]; p != nil {
			return e.again(p, v)
		}
		p := &place{owner: e.g, index: e.count, open: true}
		e.count++
		e.seen[key], e.mine = p, append(e.mine, key)
		defer func() { p.open = false }()
	}
	if e.level++; e.level > maxLevels {
		return fmt.Errorf("it is nested more than %d levels deep", maxLevels)
	}
	defer func() { e.level-- }()
	return e.contents(v)
}

// identity returns what makes a value the same as another, or nil if it does not matter.
// It decides what sharing survives a restart. Strings and numbers cannot be changed, so nothing can observe whether they are shared.
func identity(v starlark.Value) any {
	switch v := v.(type) {
	case *starlark.List, *starlark.Dict, *starlark.Set, *starlark.Function, *starlarkstruct.Struct, *result:
		return v
	case starlark.Tuple:
		if len(v) > 0 {
			return tupleKey{unsafe.SliceData(v), len(v)}
		}
	}
	return nil
}

// tupleKey identifies a tuple by its elements.
// A tuple is a slice without a pointer of its own. The address of its first element is unique among tuples of the same length.
type tupleKey struct {
	first *starlark.Value
	n     int
}

// again appends a reference to a value that is already encoded.
// A value that is still open contains itself. The decoder rejects such data as damaged.
func (e *encoder) again(p *place, v starlark.Value) error {
	switch {
	case p.open:
		return fmt.Errorf("it contains itself: a %s contains a reference to itself", v.Type())
	case p.owner == e.g:
		e.size(tagLocal, p.index)
	default:
		e.text(tagForeign, p.owner.name)
		e.out = binary.AppendUvarint(e.out, uint64(p.index))
		if !slices.Contains(e.links, p.owner) {
			e.links = append(e.links, p.owner)
		}
	}
	return nil
}

// contents appends a container, a function or a result.
func (e *encoder) contents(v starlark.Value) error {
	switch v := v.(type) {
	case *starlark.List:
		e.size(tagList, v.Len())
		return e.elements(v)
	case starlark.Tuple:
		e.size(tagTuple, v.Len())
		return e.elements(v)
	case *starlark.Set:
		e.size(tagSet, v.Len())
		return e.elements(v)
	case *starlark.Dict:
		return e.dict(v)
	case *starlarkstruct.Struct:
		return e.structure(v)
	case *result:
		e.out = append(e.out, tagResult)
		if err := e.value(starlark.Bool(v.ok)); err != nil {
			return err
		}
		if err := e.value(v.ownText()); err != nil {
			return err
		}
		return e.value(v.value)
	case *starlark.Function:
		return e.function(v)
	case *pending:
		return fmt.Errorf("it contains a call that has not run; save its result instead")
	}
	return fmt.Errorf("it contains a %s, which cannot be saved", v.Type())
}

func (e *encoder) elements(v starlark.Iterable) error {
	for x := range starlark.Elements(v) {
		if err := e.value(x); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) dict(d *starlark.Dict) error {
	e.size(tagDict, d.Len())
	for k, v := range d.Entries() {
		if err := e.value(k); err != nil {
			return err
		}
		if err := e.value(v); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) structure(s *starlarkstruct.Struct) error {
	names := s.AttrNames()
	e.size(tagStruct, len(names))
	for _, name := range names {
		v, err := s.Attr(name)
		if err != nil {
			return err
		}
		e.out = appendText(e.out, name)
		if err := e.value(v); err != nil {
			return err
		}
	}
	return nil
}

// span appends a range.
// Start and step are read from the first two elements, since the library does not export them. A range of one element has step 1.
func (e *encoder) span(v starlark.Value) error {
	r := v.(starlark.Indexable)
	start, step := starlark.MakeInt(0), starlark.MakeInt(1)
	if r.Len() > 0 {
		start = r.Index(0).(starlark.Int)
	}
	if r.Len() > 1 {
		step = r.Index(1).(starlark.Int).Sub(start)
	}
	e.out = append(e.out, tagRange)
	e.integer(start)
	e.integer(step)
	e.out = binary.AppendUvarint(e.out, uint64(r.Len()))
	return nil
}

// builtin appends a function of the library by name. A method that is bound to a value has none.
func (e *encoder) builtin(b *starlark.Builtin) error {
	if b.Receiver() == nil && e.in.named(b.Name()) == b {
		e.text(tagBuiltin, b.Name())
		return nil
	}
	return fmt.Errorf("it contains the method %s, which cannot be saved; save the value and call the method later", b.Name())
}

// bigInt returns a number from its sign and magnitude.
func bigInt(sign int, magnitude string) *big.Int {
	n := new(big.Int).SetBytes([]byte(magnitude))
	if sign < 0 {
		n.Neg(n)
	}
	return n
}
