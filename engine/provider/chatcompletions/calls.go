package chatcompletions

import (
	"encoding/json"

	"lashd/engine/provider"
)

// calls gathers tool calls from their fragments.
// The fragments of several calls may alternate. It belongs to one decoder.
type calls struct {
	open    []openCall  // in the order in which they began
	last    map[int]int // index of a call: where in open the last one with it stands
	size    int         // of the open calls, as provider.Cost counts
	checked int         // bytes that whole has read
}

// openCall is a call of which more fragments may come.
type openCall struct {
	id   string // "" if the server gives none; the engine then makes one
	name string // of the called function
	args []byte // JSON as far as it came
}

// add adds a fragment to its call. Only the first fragment of a call must have an id and a name; later ones do not change them.
func (c *calls) add(d *callDelta) {
	call := c.find(d)
	if call.id == "" {
		call.id = string(d.ID)
		c.size += provider.Cost(string(d.ID))
	}
	if call.name == "" {
		call.name = d.Function.Name
		c.size += provider.Cost(d.Function.Name)
	}
	call.args = append(call.args, d.Function.Args...)
	c.size += provider.Cost(string(d.Function.Args))
}

// find returns the call that a fragment belongs to. Some servers give every call the index 0, or none: there a new id starts a
// new call.
func (c *calls) find(d *callDelta) *openCall {
	at, ok := len(c.open)-1, len(c.open) > 0 // without an index: the last one
	if d.Index != nil {
		at, ok = c.last[*d.Index]
	}
	if ok && !c.open[at].ends(d) {
		return &c.open[at]
	}
	c.open = append(c.open, openCall{})
	if d.Index != nil {
		if c.last == nil {
			c.last = map[int]int{}
		}
		c.last[*d.Index] = len(c.open) - 1
	}
	return &c.open[len(c.open)-1]
}

// whole reports whether there are calls and none can grow any more.
// It reads each call's arguments again, so checks bounds how much it reads in one reply.
func (c *calls) whole() bool {
	for i := range c.open {
		c.checked += len(c.open[i].args)
		if c.checked > checks || !json.Valid(c.open[i].args) {
			return false
		}
	}
	return len(c.open) > 0
}

// take returns the calls that were gathered and starts again.
// The server may then begin new calls with the same indexes.
func (c *calls) take() []openCall {
	done := c.open
	c.open, c.last, c.size = nil, nil, 0
	return done
}

// ends reports whether a fragment belongs to another call.
// A call that has no name yet accepts every fragment.
func (c *openCall) ends(d *callDelta) bool {
	named := d.Function.Name != "" && c.name != ""
	return named && (d.ID != "" && string(d.ID) != c.id || d.Index == nil && d.ID == "")
}

// checks bounds the work of whole, in bytes: a server could send text between any two bytes of an argument.
const checks = 8 << 20
