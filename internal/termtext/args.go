package termtext

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// mainArgs are the arguments that say the most about a call, in that order.
var mainArgs = []string{"command", "pattern", "query", "path", "url", "task", "prompt", "message", "id", "name"}

// argWidth is the longest value of another argument that Args shows, in characters.
const argWidth = 40

// member is a member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// Args returns the arguments of a tool call as a person reads them, without line breaks that the value does not have: first the main
// argument without its name, then the others as name=value. A value that is long or has several lines becomes an ellipsis. The main
// argument is the only one, or the first one that the call has of a list of usual names. Other values than objects are returned as JSON.
// The result is not safe to print; OneLine makes it so.
func Args(raw json.RawMessage) string {
	members, ok := membersOf(raw)
	if !ok {
		return Unescaped(raw)
	}
	main := mainOf(members)
	var parts []string
	if main >= 0 {
		parts = append(parts, bare(members[main].value))
	}
	for i, m := range members {
		if i != main {
			parts = append(parts, m.name+"="+short(bare(m.value)))
		}
	}
	return strings.Join(parts, " ")
}

// Arg is an argument of a tool call. Value is a string without quotes, or JSON. Neither is safe to print.
type Arg struct{ Name, Value string }

// Members returns the arguments of a tool call in their order, none if they are no JSON object.
func Members(raw json.RawMessage) (all []Arg) {
	members, _ := membersOf(raw)
	for _, m := range members {
		all = append(all, Arg{m.name, bare(m.value)})
	}
	return all
}

// mainOf returns the index of the main argument, -1 if there is none.
func mainOf(members []member) int {
	if len(members) == 1 {
		return 0
	}
	for _, name := range mainArgs {
		for i, m := range members {
			if m.name == name {
				return i
			}
		}
	}
	return -1
}

// bare returns a string without quotes, and any other value as JSON.
func bare(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil && text != "" {
		return text
	}
	return Unescaped(value)
}

// short returns a value, or an ellipsis if it does not fit.
func short(value string) string {
	if strings.Contains(value, "\n") || utf8.RuneCountInString(value) > argWidth {
		return "…"
	}
	return value
}

// membersOf returns the members of a JSON object in their order.
func membersOf(raw json.RawMessage) (members []member, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, false
		}
		m := member{name: name.(string)} // a key of an object is a string
		if dec.Decode(&m.value) != nil {
			return nil, false
		}
		members = append(members, m)
	}
	return members, true
}
