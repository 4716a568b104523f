//go:build unix

package mcp_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/tool"
	"lashd/pluginloader/manifest"
)

// curious is a server whose tool sends its argument as a request, and returns the response.
func curious() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Arguments                struct{ Text string }
				Capabilities, ClientInfo json.RawMessage
			}
		}
		_ = json.Unmarshal(in.Bytes(), &m)
		result := `{}`
		switch m.Method {
		case "initialize":
			declared = fmt.Sprintf("%s %s", m.Params.Capabilities, m.Params.ClientInfo)
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"curious","version":"0"}}`
		case "tools/list":
			result = `{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			response := declared
			if request := m.Params.Arguments.Text; request != "" {
				fmt.Println(request)
				in.Scan()
				response = in.Text()
			}
			quoted, _ := json.Marshal(response)
			result = fmt.Sprintf(`{"content":[{"type":"text","text":%s}]}`, quoted)
		}
		if m.ID != nil {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
	}
}

// declared is what the client has said about itself to a curious server.
var declared string

func TestUndeclared(t *testing.T) {
	p := one(t, guest("curious"))
	asked := func(t *testing.T, request string) string {
		t.Helper()
		args, _ := json.Marshal(words{request})
		out, err := call(t.Context(), p, "mcp__x__x", string(args), &host{})
		if err != nil {
			t.Fatal(err)
		}
		return out.Text
	}
	t.Run("outside/20 lashd declares only questions and roots, with its version", func(t *testing.T) {
		if got, want := asked(t, ""), `{"elicitation":{"form":{},"url":{}},"roots":{}} {"name":"lashd","version":"test"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	for name, c := range map[string]struct{ method, params, code string }{
		"sampling":                    {"sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}`, "-32601"},
		"tasks":                       {"tasks/list", `{}`, "-32601"},
		"an unknown method":           {"no/such", `{}`, "-32601"},
		"a page that others can read": {"elicitation/create", `{"mode":"url","message":"log in","url":"http://example.com","elicitationId":"1"}`, "-32602"},
		"an unknown mode of question": {"elicitation/create", `{"mode":"telepathy","message":"think"}`, "-32602"},
	} {
		t.Run("outside/20 undeclared requests are rejected: "+name, func(t *testing.T) {
			params := ""
			if c.params != "" {
				params = `,"params":` + c.params
			}
			got := asked(t, `{"jsonrpc":"2.0","id":"q","method":"`+c.method+`"`+params+`}`)
			if !strings.Contains(got, `"code":`+c.code+`,`) || !strings.Contains(got, `"id":"q"`) {
				t.Errorf("got %s, want the code %s", got, c.code)
			}
		})
	}
	t.Run("part13/6 a program learns the workspace of the session in whose call it asks, and no other", func(t *testing.T) {
		args, _ := json.Marshal(words{`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`})
		for cwd, want := range map[string]string{"/work/a b": `"roots":[{"name":"a b","uri":"file:///work/a%20b"}]`, "": `"roots":[]`} {
			r, err := p.Execute(t.Context(), tool.Invocation{SessionID: "ses_1", TurnID: "trn_1", CallID: "c", Attempt: 1, ToolID: "mcp__x__x", Name: "mcp__x__x", Args: args, Host: &host{}, Cwd: cwd})
			if err != nil || !strings.Contains(r.Output.Text, want) {
				t.Errorf("in %q the server got %s, %v; want %s", cwd, r.Output.Text, err, want)
			}
		}
	})
	t.Run("part13/6 a server of a workspace learns that workspace, also outside of a call of a session in it", func(t *testing.T) {
		c := config(t, map[string]manifest.Server{"x": guest("curious")})
		c.Dir = filepath.Join(t.TempDir(), "a b")
		if err := os.Mkdir(c.Dir, 0o755); err != nil {
			t.Fatal(err)
		}
		args, _ := json.Marshal(words{`{"jsonrpc":"2.0","id":"q","method":"roots/list"}`})
		for cwd, end := range map[string]string{"/work/c": `"uri":"file:///work/c"}]`, "": `/a%20b"}]`} {
			r, err := begin(t, pooled(t), c).Execute(t.Context(), tool.Invocation{SessionID: "ses_1", TurnID: "trn_1", CallID: "c", Attempt: 1, ToolID: "mcp__x__x", Name: "mcp__x__x", Args: args, Host: &host{}, Cwd: cwd})
			if err != nil || !strings.Contains(r.Output.Text, end) {
				t.Errorf("in %q the server got %s, %v; want %s", cwd, r.Output.Text, err, end)
			}
		}
	})
	t.Run("outside/20 ping is answered", func(t *testing.T) {
		if got := asked(t, `{"jsonrpc":"2.0","id":"q","method":"ping"}`); !strings.Contains(got, `"result":{}`) {
			t.Errorf("got %s", got)
		}
	})
}
