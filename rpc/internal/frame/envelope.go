package frame

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/internal/strictjson"
)

// maxMethod is the maximum length of a method name, in bytes.
const maxMethod = 256

// message is one JSON-RPC object as received: a request (id set), a notification (id nil), a
// response (ignored, because lashd sends no requests), or an invalid object (problem set; id too if
// it is readable).
type message struct {
	id       []byte
	method   string
	params   []byte
	response bool
	problem  *problem
	num      uint64 // internal number of an admitted request
}

// memberNames are the members of a request.
var memberNames = []string{"jsonrpc", "id", "method", "params"}

// parse reads one JSON object that has passed strictjson.Check. The message refers to data, which
// must not change before store.
func parse(data []byte) message {
	if data = bytes.TrimSpace(data); data[0] != '{' {
		return message{problem: invalidRequest("A request must be an object with jsonrpc, id, method and params.")}
	}
	members := make(map[string][]byte, len(memberNames))
	strange := ""
	for name, value := range strictjson.Members(data) {
		if slices.Contains(memberNames, name) || name == "result" || name == "error" {
			members[name] = value
		} else if strange == "" && !strings.HasPrefix(name, "_") {
			strange = name
		}
	}
	if members["method"] == nil && (members["result"] != nil || members["error"] != nil) {
		return message{response: true}
	}
	return fromMembers(members, strange)
}

// fromMembers validates the members of a request. strange is the first unknown member, or "".
func fromMembers(members map[string][]byte, strange string) message {
	m := message{params: members["params"]}
	if string(m.params) == "null" {
		m.params = nil // Emacs' jsonrpc.el sends null for no params
	}
	var idProblem *problem
	m.id, idProblem = readID(members["id"])
	method, ok := text(members["method"])
	m.method = method
	switch version, _ := text(members["jsonrpc"]); {
	case version != "2.0":
		m.problem = invalidRequest(`The member jsonrpc must be "2.0".`)
	case idProblem != nil:
		m.problem = idProblem
	case !ok:
		m.problem = invalidRequest("The member method must be a string.")
	case method == "" || len(method) > maxMethod || strings.ContainsFunc(method, unicode.IsControl):
		m.problem = invalidRequest("A method has 1 to %d bytes and no control characters.", maxMethod)
	case m.params != nil && m.params[0] != '{' && m.params[0] != '[':
		m.problem = invalidRequest("The member params must be an object or an array; leave it out if there are none.")
	case members["result"] != nil || members["error"] != nil:
		m.problem = invalidRequest("A message with a method has no result and no error.")
	case strange != "":
		m.problem = unknownMember(strange)
	}
	return m
}

// readID returns the id as the peer wrote it, or nil if there is none or it is invalid.
func readID(raw []byte) ([]byte, *problem) {
	switch {
	case raw == nil:
		return nil, nil
	case raw[0] == 'n':
		return nil, invalidRequest("The id must not be null; leave it out of a notification.")
	case strings.IndexByte("{[tf", raw[0]) >= 0:
		return nil, invalidRequest("The id must be a string or a number.")
	}
	return raw, nil
}

// text returns the string that raw encodes. ok is false if raw is missing or no string.
func text(raw []byte) (string, bool) {
	if raw == nil {
		return "", false
	}
	return strictjson.Text(raw)
}

// unknownMember returns the problem of a misspelled or unknown member.
func unknownMember(name string) *problem {
	if near := strictjson.Nearest(name, memberNames); near != "" {
		return invalidRequest("Unknown member %s, did you mean %q?", strictjson.Quote(name), near)
	}
	return invalidRequest("Unknown member %s; only names that begin with _ may be added.", strictjson.Quote(name))
}

// store writes the message, with its internal number as id, to v. v is what jsonrpc2 passes to
// ReadObject, or a *jsonrpc2.Request, which takes a copy of the params as received.
func (m message) store(v any) error {
	if req, ok := v.(*jsonrpc2.Request); ok {
		*req = jsonrpc2.Request{Method: m.method, ID: jsonrpc2.ID{Num: m.num}, Notif: m.id == nil}
		if m.params != nil {
			req.Params = new(json.RawMessage(bytes.Clone(m.params)))
		}
		return nil
	}
	method, err := json.Marshal(m.method)
	if err != nil {
		return err
	}
	buf := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s`, method)
	if m.id != nil {
		buf = fmt.Appendf(buf, `,"id":%d`, m.num)
	}
	if m.params != nil {
		buf = append(append(buf, `,"params":`...), m.params...)
	}
	return json.Unmarshal(append(buf, '}'), v)
}
