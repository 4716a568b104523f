package starlark

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"go.starlark.net/starlark"
	"go.starlark.net/starlarkstruct"
)

// errDamaged means that an encoding is cut off or does not follow the format.
var errDamaged = errors.New("the encoding is damaged")

// decoder reads encoded globals. The data may be damaged in any way: it comes from a store, and the decoder must neither
// panic nor allocate more than a small multiple of the size of the data. Strings are parts of the data, not copies of them.
// The first error makes all further reads return zero values.
type decoder struct {
	in     *Interpreter
	data   string
	err    error
	level  int
	values []starlark.Value            // numbered values of this global; nil while a value is being read
	others map[string][]starlark.Value // numbered values of the globals that were decoded before
}

// text returns the bytes as a string without a copy. The data must never change afterwards: encodings are replaced, not
// modified.
func text(data []byte) string { return unsafe.String(unsafe.SliceData(data), len(data)) }

// header reads the order of a global, the owners of values that it refers to, and the reason of a tombstone.
//
// Restore reads only headers, which takes a microsecond for each global, and leaves the values to their first use.
func header(data []byte) (order uint64, owners []string, lost string, err error) {
	d := &decoder{data: text(data)}
	order, owners = d.header()
	if d.err == nil && d.data != "" && d.data[0] == tagLost {
		d.data = d.data[1:]
		d.text()
		lost = d.text()
	}
	return order, owners, lost, d.err
}

func (d *decoder) header() (order uint64, owners []string) {
	if d.byte() != version {
		d.fail()
	}
	order = d.uvarint()
	for range d.length() {
		owners = append(owners, d.text())
	}
	return order, owners
}

// savedType returns the type of an encoded value, or "".
// It reads the header and one tag, whatever the size of the value, because a list of globals names the types of all of them.
func savedType(data []byte) string {
	d := &decoder{data: text(data)}
	d.header()
	switch tag := d.byte(); tag {
	case tagLost:
		return d.text()
	default:
		return typeNames[tag]
	}
}

// typeNames has the types of values by tag.
var typeNames = map[byte]string{
	tagNone: "NoneType", tagTrue: "bool", tagFalse: "bool", tagInt: "int", tagBigInt: "int", tagFloat: "float", tagString: "string",
	tagBytes: "bytes", tagList: "list", tagTuple: "tuple", tagDict: "dict", tagSet: "set", tagRange: "range", tagStruct: "struct",
	tagResult: "result", tagFunction: "function", tagTool: "tool", tagModule: "module", tagBuiltin: "builtin_function_or_method",
}

// decode decodes a global and all that share values with it, the owners first.
//
// A global that cannot be decoded leaves the others usable: only those that refer to its values fail too.
func (s *namespace) decode(g *variable) error {
	tables := map[string][]starlark.Value{}
	var failed error
	for _, one := range connected(g) {
		if one.saved == nil || one.lost != "" || one.reason != "" {
			continue
		}
		d := &decoder{in: s.in, data: text(one.saved), others: tables}
		d.header()
		v := d.value()
		if d.err == nil && d.data != "" {
			d.err = errDamaged
		}
		if d.err != nil {
			if one == g {
				failed = d.err
			}
			continue
		}
		tables[one.name], one.value = d.values, v
	}
	if failed == nil && g.value == nil {
		failed = errDamaged
	}
	return failed
}

// fail records that the data is damaged and makes all further reads return at once.
func (d *decoder) fail() {
	if d.err == nil {
		d.err = errDamaged
	}
	d.data = ""
}

func (d *decoder) byte() byte {
	if d.data == "" {
		d.fail()
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

// Unlike binary.Uvarint it rejects a tenth byte that continues, and needs no copy of the data.
func (d *decoder) uvarint() uint64 {
	var x uint64
	for shift := uint(0); shift < 64; shift += 7 {
		b := d.byte()
		x |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return x
		}
	}
	d.fail()
	return 0
}

// length reads a count of things that take at least one byte each.
// The bound is what keeps damaged data from allocating: a caller may make a slice of this length at once.
func (d *decoder) length() int {
	n := d.uvarint()
	if n > uint64(len(d.data)) {
		d.fail()
		return 0
	}
	return int(n)
}

// The text shares memory with the whole encoding of its global, which stays alive as long as any string of it does.
func (d *decoder) text() string {
	n := d.length()
	s := d.data[:n]
	d.data = d.data[n:]
	return s
}

// The magnitude of a big integer is big-endian, and its sign is stored as 0, 1 or 2.
func (d *decoder) integer() starlark.Int {
	switch d.byte() {
	case tagInt:
		u := d.uvarint()
		return starlark.MakeInt64(int64(u>>1) ^ -int64(u&1))
	case tagBigInt:
		sign := int(d.byte()) - 1
		return starlark.MakeBigInt(bigInt(sign, d.text()))
	}
	d.fail()
	return starlark.MakeInt(0)
}

// value reads a value. It returns nil after an error.
func (d *decoder) value() starlark.Value {
	if d.data == "" {
		d.fail()
		return nil
	}
	switch d.data[0] {
	case tagInt, tagBigInt:
		return d.integer()
	}
	switch tag := d.byte(); tag {
	case tagNone:
		return starlark.None
	case tagTrue:
		return starlark.True
	case tagFalse:
		return starlark.False
	case tagFloat:
		if len(d.data) < 8 {
			d.fail()
			return nil
		}
		bits := d.data[:8]
		d.data = d.data[8:]
		return starlark.Float(math.Float64frombits(binary.LittleEndian.Uint64([]byte(bits))))
	case tagString:
		return starlark.String(d.text())
	case tagBytes:
		return starlark.Bytes(d.text())
	case tagRange:
		return d.span()
	case tagTool, tagModule, tagBuiltin:
		return d.named(tag)
	case tagLocal:
		return d.numbered(d.values)
	case tagForeign:
		return d.numbered(d.others[d.text()])
	default:
		return d.container(tag)
	}
}

// numbered reads the number of an earlier value.
//
// A value that is still being read has no entry yet, so a cycle in damaged data is an error.
func (d *decoder) numbered(values []starlark.Value) starlark.Value {
	n := d.uvarint()
	if n >= uint64(len(values)) || values[n] == nil {
		d.fail()
		return nil
	}
	return values[n]
}

// named reads something that is known by name. A tool that no longer exists is an error when it is called.
func (d *decoder) named(tag byte) starlark.Value {
	name := d.text()
	var v starlark.Value
	switch tag {
	case tagTool:
		return d.in.tools.reference(name)
	case tagModule:
		v = d.in.module(name)
	case tagBuiltin:
		v = d.in.named(name)
	}
	if v == nil && d.err == nil {
		d.err = fmt.Errorf("%s no longer exists", name)
	}
	return v
}

// container reads a value that has a number. The number is taken before the contents are read, as in the encoder.
func (d *decoder) container(tag byte) starlark.Value {
	if d.level++; d.level > maxLevels+1 {
		d.fail()
		return nil
	}
	defer func() { d.level-- }()
	at := len(d.values)
	d.values = append(d.values, nil)
	v := d.contents(tag)
	if d.err != nil {
		return nil
	}
	d.values[at] = v
	return v
}

// contents reads the contents of a container, a result or a function.
func (d *decoder) contents(tag byte) starlark.Value {
	switch tag {
	case tagList:
		return starlark.NewList(d.elements())
	case tagTuple:
		return starlark.Tuple(d.elements())
	case tagSet:
		set := starlark.NewSet(0)
		for _, x := range d.elements() {
			if d.err == nil && set.Insert(x) != nil {
				d.fail()
			}
		}
		return set
	case tagDict:
		return d.dict()
	case tagStruct:
		fields := starlark.StringDict{}
		for range d.length() {
			name := d.text()
			fields[name] = d.value()
		}
		if d.err != nil {
			return nil
		}
		return starlarkstruct.FromStringDict(starlarkstruct.Default, fields)
	case tagResult:
		ok, text, value := d.value(), d.value(), d.value()
		if text == starlark.None {
			text = value
		}
		s, _ := text.(starlark.String)
		return &result{ok: ok == starlark.True, text: s, value: value}
	case tagFunction:
		return d.function()
	}
	d.fail()
	return nil
}

// It stops at the first error and returns nil, because the interpreter does not expect a nil value in a list.
func (d *decoder) elements() []starlark.Value {
	n := d.length()
	all := make([]starlark.Value, n)
	for i := range all {
		if all[i] = d.value(); d.err != nil {
			return nil
		}
	}
	return all
}

// A key that cannot be hashed is damage: the encoder writes only dicts that exist.
func (d *decoder) dict() starlark.Value {
	n := d.length()
	dict := starlark.NewDict(n)
	for range n {
		k, v := d.value(), d.value()
		if d.err != nil {
			return nil
		}
		if dict.SetKey(k, v) != nil {
			d.fail()
		}
	}
	return dict
}

// span reads a range.
// The type of ranges is private to the library, so the builtin range makes it again. Its length is bounded, because a range is
// small in the data whatever its length is.
func (d *decoder) span() starlark.Value {
	start, step, n := d.integer(), d.integer(), d.uvarint()
	if d.err != nil || n > maxRange {
		d.fail()
		return nil
	}
	stop := start.Add(step.Mul(starlark.MakeUint64(n)))
	v, err := starlark.Call(&starlark.Thread{}, starlark.Universe["range"], starlark.Tuple{start, stop, step}, nil)
	if err != nil {
		d.fail()
		return nil
	}
	return v
}
