package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// acpSchemas are the published schemas of what an agent writes: results of methods, and params of its
// requests and notifications.
type acpSchemas struct {
	results, params map[string]*jsonschema.Resolved
}

var loadACP = sync.OnceValues(func() (*acpSchemas, error) {
	raw, err := os.ReadFile("acpschema/schema.json")
	if err != nil {
		return nil, err
	}
	var whole struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	s := &acpSchemas{map[string]*jsonschema.Resolved{}, map[string]*jsonschema.Resolved{}}
	for name, def := range whole.Defs {
		var of struct {
			Side   string `json:"x-side"`
			Method string `json:"x-method"`
		}
		if err := json.Unmarshal(def, &of); err != nil {
			return nil, err
		}
		into := s.params
		switch {
		case of.Method == "":
			continue
		case strings.HasSuffix(name, "Response"):
			into = s.results
		}
		if of.Side != "protocol" && (of.Side == "client") == strings.HasSuffix(name, "Response") {
			continue // the client writes it
		}
		if into[of.Method], err = resolveACP(raw, name); err != nil {
			return nil, err
		}
	}
	var resolveErr error
	s.results[""], resolveErr = resolveACP(raw, "Error")
	return s, resolveErr
})

// resolveACP returns the schema of one definition.
func resolveACP(whole []byte, name string) (*jsonschema.Resolved, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(whole, &s); err != nil {
		return nil, err
	}
	s.AnyOf, s.Ref = nil, "#/$defs/"+name
	return s.Resolve(nil)
}

// frames checks what lashd acp writes against the protocol and passes it on.
type frames struct {
	t       *testing.T
	schemas *acpSchemas
	mu      sync.Mutex
	asked   map[string]string // methods of the client's requests, by id
	seen    map[string]int    // number of frames by kind
}

func newFrames(t *testing.T) *frames {
	t.Helper()
	schemas, err := loadACP()
	if err != nil {
		t.Fatal("read the schema:", err)
	}
	return &frames{t: t, schemas: schemas, asked: map[string]string{}, seen: map[string]int{}}
}

type acpFrame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// sent records a request of the client.
func (f *frames) sent(line []byte) {
	var m acpFrame
	if json.Unmarshal(line, &m) == nil && m.Method != "" && m.ID != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.asked[string(m.ID)] = m.Method
	}
}

// received fails the test unless a line is exactly one valid frame.
func (f *frames) received(line []byte) {
	var m acpFrame
	if err := json.Unmarshal(line, &m); err != nil || m.Version != "2.0" {
		f.t.Errorf("issue/6-3 stdout has a line that is no frame: %s", line)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case m.Method != "":
		f.checkLocked(m.Method, f.schemas.params[m.Method], m.Params, line)
	case m.Error != nil:
		f.checkLocked("error", f.schemas.results[""], m.Error, line)
	default:
		method := f.asked[string(m.ID)]
		f.checkLocked("result of "+method, f.schemas.results[method], m.Result, line)
	}
}

func (f *frames) checkLocked(what string, schema *jsonschema.Resolved, body json.RawMessage, line []byte) {
	f.seen[what]++
	if what == "result of session/set_model" {
		return // the published schema does not have it
	}
	if what == "result of session/fork" { // only the unstable schema has it, in the form of session/new
		schema = f.schemas.results["session/new"]
	}
	if schema == nil {
		f.t.Errorf("issue/6-3 the protocol has no %s: %s", what, line)
		return
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		f.t.Errorf("issue/6-3 %s: %v: %s", what, err, line)
		return
	}
	if err := schema.Validate(value); err != nil {
		f.t.Errorf("issue/6-3 %s does not fit its schema: %v\n%s", what, err, line)
	}
}

// check passes lines on after checking them.
func (f *frames) check(in io.Reader, out *io.PipeWriter) {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			f.received(bytes.TrimSpace(line))
			out.Write(line) // a reader that has stopped closed it
		}
		if err != nil {
			out.CloseWithError(err)
			return
		}
	}
}

// noting records written lines and passes them on.
type noting struct {
	io.WriteCloser
	note func([]byte)
}

func (n noting) Write(line []byte) (int, error) {
	n.note(line)
	return n.WriteCloser.Write(line)
}
