package encoding

import (
	"encoding/json"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// noInput is the schema of a tool that takes an object without properties.
const noInput = `{"type":"object","properties":{}}`

// Schema returns a tool's input schema in a form that all APIs accept: its root is an object with properties, and has no alternatives.
// Anthropic and OpenAI reject a request with any other tool, so one tool of an MCP server would end every turn. lashd checks arguments
// against the tool's own schema, so a root with less in it only tells the model less.
func Schema(t *protocol.ToolManifest) []byte {
	var root schemaWords
	if len(t.Input) == 0 || json.Unmarshal(t.Input, &root) != nil {
		return []byte(noInput)
	}
	if string(root["type"]) == `"object"` && root["properties"] != nil && !slices.ContainsFunc(rootless, root.has) {
		return t.Input
	}
	f := fold{root: root, properties: schemaWords{}}
	f.add(root, true, 0)
	return f.encode()
}

// schemaWords is a schema with its keywords, or another object of it.
type schemaWords map[string]json.RawMessage

// has reports whether the schema has a keyword.
func (s schemaWords) has(word string) bool { return s[word] != nil }

// list returns the schemas of a keyword such as anyOf. Those that are no objects have no words.
func (s schemaWords) list(word string) []schemaWords {
	var raw []json.RawMessage
	if json.Unmarshal(s[word], &raw) != nil {
		return nil
	}
	list := make([]schemaWords, len(raw))
	for i := range raw {
		list[i] = words(raw[i])
	}
	return list
}

// words decodes an object. Anything else has no words.
func words(raw json.RawMessage) schemaWords {
	var s schemaWords
	if json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return s
}

// rootless are the keywords that the root of a tool's schema must not have.
var rootless = []string{"$ref", "oneOf", "anyOf", "allOf", "not", "enum", "const"}

// foldDepth bounds how deep alternatives and references are followed, which may be cyclic.
const foldDepth = 8

// fold gathers the properties of a schema and of its alternatives in one object.
type fold struct {
	root       schemaWords
	properties schemaWords // the first one of each name
	required   []string    // by each alternative
}

// add adds the properties of a schema, of the schema that it refers to, and of its alternatives. demanded says that every value must fit
// the schema.
func (f *fold) add(s schemaWords, demanded bool, depth int) {
	if depth > foldDepth {
		return
	}
	for name, property := range words(s["properties"]) {
		if !f.properties.has(name) {
			f.properties[name] = property
		}
	}
	var required []string
	if demanded && json.Unmarshal(s["required"], &required) == nil {
		f.required = append(f.required, required...)
	}
	f.parts(s, demanded, depth+1)
}

// parts is add for the schemas that a schema consists of.
func (f *fold) parts(s schemaWords, demanded bool, depth int) {
	if s.has("$ref") {
		f.add(f.definition(s["$ref"]), demanded, depth)
	}
	for _, part := range s.list("allOf") {
		f.add(part, demanded, depth)
	}
	for _, word := range []string{"anyOf", "oneOf"} {
		for _, alternative := range s.list(word) {
			f.add(alternative, false, depth)
		}
	}
}

// definition returns the schema that a reference such as #/$defs/NAME names. Other references have no words.
func (f *fold) definition(ref json.RawMessage) schemaWords {
	var path string
	if json.Unmarshal(ref, &path) != nil {
		return nil
	}
	for _, place := range []string{"$defs", "definitions"} {
		if name, ok := strings.CutPrefix(path, "#/"+place+"/"); ok {
			return words(words(f.root[place])[strings.NewReplacer("~1", "/", "~0", "~").Replace(name)])
		}
	}
	return nil
}

// encode returns the object, with the root's other keywords.
func (f *fold) encode() []byte {
	out := schemaWords{}
	for word, value := range f.root {
		if !slices.Contains(rootless, word) {
			out[word] = value
		}
	}
	delete(out, "required")
	out["type"], out["properties"] = json.RawMessage(`"object"`), encoded(f.properties)
	if slices.Sort(f.required); len(f.required) > 0 {
		out["required"] = encoded(slices.Compact(f.required))
	}
	return encoded(out)
}

// encoded encodes what was decoded from JSON. Objects have sorted keys, so the same schema always becomes the same bytes.
func encoded(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("encode a part of a schema: " + err.Error())
	}
	return data
}
