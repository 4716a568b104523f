// Package protocol is the vocabulary that lashd and its clients share: ids, nodes, messages, items, events, tool and
// decision records, and the params and results of every method. The engine, the store and the wire use these same
// types, so there is no layer that copies one into another. Everything here is plain data: values are safe to copy,
// and a value that was published (put into an event, a node or a read view) is never changed afterwards.
package protocol

// Version is the protocol version that initialize answers; it grows when a client could tell the difference.
const Version = 1

// TypeDoc is what the source says of a type: its comment, those of its fields by JSON name, and for a word of a fixed
// vocabulary what it may be.
type TypeDoc struct {
	Doc    string
	Fields map[string]string
	Values []ValueDoc
}

// ValueDoc is a value of a type, and what it means.
type ValueDoc struct{ Value, Doc string }
