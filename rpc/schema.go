package rpc

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"

	"lashd/rpc/protocol"
)

//go:generate sh -c "cd .. && go run ./rpc/internal/gen"

// The generated documents. TestGeneratedFilesAreCurrent compares them with the method table.
var (
	//go:embed protocol/openrpc.json
	openRPC []byte
	//go:embed protocol/schema.json
	schemaOfTypes []byte
)

// OpenRPC returns the OpenRPC document of the protocol.
func OpenRPC() []byte { return slices.Clone(openRPC) }

// methodSchema is the document that MethodSchema returns.
type methodSchema struct {
	Name    string                     `json:"name"`
	Summary string                     `json:"summary"`
	Params  schemaRef                  `json:"params"`
	Result  schemaRef                  `json:"result"`
	Defs    map[string]json.RawMessage `json:"$defs"`
}

// schemaRef refers to a type in $defs. An empty one accepts any JSON.
type schemaRef struct {
	Ref string `json:"$ref,omitempty"`
}

// defs is the path of types in the documents.
const defs = "#/$defs/"

// MethodSchema returns a JSON document with the params and the result of a method and the schemas of all types they use. It returns
// nil if there is no such method.
func MethodSchema(name string) []byte {
	m, ok := Methods()[name]
	if !ok {
		return nil
	}
	var types struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(schemaOfTypes, &types); err != nil {
		panic("decode our own schema: " + err.Error())
	}
	s := methodSchema{name, m.Doc, refTo(m.Params), refTo(m.Result), map[string]json.RawMessage{}}
	s.define(types.Defs, m.Params.Name())
	s.define(types.Defs, m.Result.Name())
	doc, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return append(doc, '\n')
}

// refTo refers to a wire type by its name.
func refTo(t reflect.Type) schemaRef {
	if t == reflect.TypeFor[json.RawMessage]() {
		return schemaRef{}
	}
	return schemaRef{defs + t.Name()}
}

// refs finds references to other types in a schema.
var refs = regexp.MustCompile(`"\$ref": *"` + regexp.QuoteMeta(defs) + `(\w+)"`)

// define adds the schema of a type and of all types it refers to.
func (s *methodSchema) define(all map[string]json.RawMessage, name string) {
	if all[name] == nil || s.Defs[name] != nil {
		return
	}
	s.Defs[name] = all[name]
	for _, ref := range refs.FindAllSubmatch(all[name], -1) {
		s.define(all, string(ref[1]))
	}
}

// Notifications lists the notifications that the daemon sends to clients. The generator documents
// them.
var Notifications = []struct {
	Method, Doc string
	Params      reflect.Type
}{
	{"session/event", "An event of a session that the connection is attached to.", reflect.TypeFor[protocol.Event]()},
	{"session/gap", "Some events of a session cannot be replayed: read the session again.", reflect.TypeFor[protocol.Gap]()},
	{"server/event", "A change of a session, a trigger, a plugin or the store.", reflect.TypeFor[protocol.ServerEvent]()},
}
