// Package protocol defines the types that lashd and its clients share: ids, nodes, messages, items, events, tool and
// decision records, and the params and results of every method. The engine, the store and the wire use the same
// types, so no layer converts one into another. All types are plain data and safe to copy. Code must not change a value
// after publishing it in an event, a node or a read view.
//
// The comments of types and fields become docs/protocol.md, schema.json, openrpc.json and protocol.ts.
package protocol

// Version is the protocol version that initialize returns. It grows with every change that a client can notice.
const Version = 1

// TypeDoc is the documentation of a type: its comment, the comments of its fields by JSON name, and the values of an
// enumerated string.
type TypeDoc struct {
	Doc    string
	Fields map[string]string
	Values []ValueDoc
}

// ValueDoc is one value of an enumerated string and its meaning.
type ValueDoc struct{ Value, Doc string }
