package rpc

import "lashd/rpc/protocol"

//go:generate sh -c "cd .. && go run ./rpc/internal/gen"

// Generated are the files that are made from the method table and from what the source says of the types, by path from
// the root of the project.
func Generated(docs map[string]protocol.TypeDoc) map[string][]byte {
	return map[string][]byte{
		"rpc/protocol/openrpc.json":      openRPCDocument(docs),
		"rpc/protocol/schema.json":       jsonSchema(docs),
		"docs/protocol.md":               []byte(document(docs)),
		"editors/vscode/src/protocol.ts": []byte(typescript(docs)),
	}
}

// OpenRPC is the OpenRPC document of the protocol.
func OpenRPC() []byte { return openRPCDocument(protocol.Described()) }

// MethodSchema describes one method, with the schema of every type that it needs; nil if there is no such method.
func MethodSchema(name string) []byte {
	m, ok := Methods()[name]
	if !ok {
		return nil
	}
	return methodSchema(name, m, protocol.Described())
}
