package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// brings creates a session with MCP servers of the client.
func (p *peer) brings(h *home, servers protocol.MCPServers) protocol.SessionID {
	p.t.Helper()
	return ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: h.work, MCPServers: servers}).SessionID
}

// overlays replaces the session's MCP servers of the client.
func (p *peer) overlays(id protocol.SessionID, servers protocol.MCPServers) protocol.SessionOverlayResult {
	p.t.Helper()
	return ask[protocol.SessionOverlayResult](p, "session/setOverlay", protocol.SessionOverlayParams{SessionID: id, MCPServers: servers})
}

// docs is the test server of the Go SDK as a client configures it.
func docs(t *testing.T, greeting string) protocol.MCPServers {
	return protocol.MCPServers{"docs": {Command: goServer(t), Env: map[string]string{"GREETING": greeting}}}
}

// provides waits until a session has a tool.
func (p *peer) provides(id protocol.SessionID, tool string) {
	p.t.Helper()
	eventually(p.t, "the session has "+tool, func() error {
		all := ask[protocol.ToolListResult](p, "tool/list", protocol.SessionParams{SessionID: id}).Data
		if slices.ContainsFunc(all, func(r protocol.ToolRecord) bool { return r.Name == tool && !r.Orphan }) {
			return nil
		}
		return fmt.Errorf("%d tools", len(all))
	})
}

// web serves MCP over HTTP to clients with a key. Its tool whoami returns the value of a header.
func web(t *testing.T, key string) (url string) {
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		s := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
		name := r.Header.Get("X-Name")
		mcp.AddTool(s, &mcp.Tool{Name: "whoami", Description: "Tells who asks."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "you are " + name}}}, nil, nil
		})
		return s
	}, nil)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key {
			http.Error(w, "unknown key "+r.Header.Get("Authorization"), http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL
}

// TestGuests has clients add MCP servers to sessions.
func TestGuests(t *testing.T) {
	w := newWorld(t, "allow")
	w.plugin("own", map[string]string{".mcp.json": mcpJSON(map[string]server{"taken": {Command: goServer(t)}})})
	d := w.serve()
	p := w.dial("editor")
	p.loads("own", nil)
	own := len(w.children()) // processes of its own servers, which run until no session needs them
	gone := func(t *testing.T) {
		t.Helper()
		began := time.Now()
		eventually(t, "the client's servers have stopped", func() error {
			if all := w.children(); len(all) > own {
				return fmt.Errorf("running: %v", all)
			}
			return nil
		})
		if took := time.Since(began); took > soon {
			t.Errorf("it took %v", took)
		}
	}
	t.Run("issue/4-2 a client brings servers, over stdio and HTTP, with args, env and headers", func(t *testing.T) {
		servers := docs(t, "hello")
		servers["web"] = protocol.MCPServer{URL: web(t, "a-good-key"), Headers: map[string]string{"Authorization": "Bearer a-good-key", "X-Name": "Ada"}}
		servers["files"] = protocol.MCPServer{Command: "node", Args: []string{npmServer(t, "filesystem"), w.work}}
		id := p.brings(w.home, servers)
		w.write(filepath.Join(w.work, "note"), "buy tea")
		p.provides(id, "mcp__files__read_text_file")
		p.says(id, "mcp__files__read_text_file", mustArgs(map[string]string{"path": filepath.Join(w.work, "note")}), "buy tea")
		p.says(id, "mcp__docs__greeting", `{}`, "hello")
		p.says(id, "mcp__web__whoami", `{}`, "you are Ada")
		if state := p.overlays(id, nil).Tools; !state.Tools["mcp__docs__greeting"].Orphaned || !state.Tools["mcp__web__whoami"].Orphaned {
			t.Errorf("without the servers: %+v", state)
		}
		if p.turn(id, "hello"); w.offers("mcp__docs__pid") {
			t.Error("the model is offered a tool without a server")
		}
		gone(t)
	})
	t.Run("issue/4-2 lashd expands no variables in the settings of a server", func(t *testing.T) {
		id := p.brings(w.home, docs(t, "${HOME} ${PLUGIN_ROOT:-x}"))
		p.says(id, "mcp__docs__greeting", `{}`, "${HOME} ${PLUGIN_ROOT:-x}")
		p.overlays(id, nil)
		gone(t)
	})
	t.Run("issue/4-2 sessions with equal servers share a process, which ends with the last session", func(t *testing.T) {
		other := w.dial("other")
		one, two := p.brings(w.home, docs(t, "shared")), other.brings(w.home, docs(t, "shared"))
		third := p.brings(w.home, docs(t, "mine alone"))
		pid := p.calls(one, "mcp__docs__pid", `{}`).Text
		if its := p.calls(two, "mcp__docs__pid", `{}`).Text; pid == "" || its != pid {
			t.Errorf("processes %q and %q", pid, its)
		}
		if its := p.calls(third, "mcp__docs__pid", `{}`).Text; its == pid {
			t.Error("a server with another environment shares the process")
		}
		p.overlays(one, nil)
		p.says(two, "mcp__docs__pid", `{}`, pid)
		p.overlays(third, nil)
		p.overlays(two, nil) // removes only servers of the same client
		p.says(two, "mcp__docs__pid", `{}`, pid)
		other.overlays(two, nil)
		gone(t)
	})
	t.Run("issue/4-2 the name of a plugin's server is rejected, and the request changes nothing", func(t *testing.T) {
		servers := docs(t, "x")
		servers["taken"] = servers["docs"]
		before := len(ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{Limit: 200}).Data)
		_, err := try[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: w.work, MCPServers: servers})
		if code, kind := refusal(err); code != -32011 || kind != protocol.KindServerTaken || !strings.Contains(err.Error(), "plugin own") {
			t.Errorf("rejected with %v", err)
		}
		after := len(ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{Limit: 200}).Data)
		if after != before || len(w.children()) != own {
			t.Errorf("%d sessions before, %d after; processes %v", before, after, w.children())
		}
		id := p.session(w.home)
		_, err = try[protocol.SessionOverlayResult](p, "session/setOverlay", protocol.SessionOverlayParams{SessionID: id, MCPServers: servers, Prompt: "not this"})
		if _, kind := refusal(err); kind != protocol.KindServerTaken {
			t.Errorf("rejected with %v", err)
		}
		if p.turn(id, "hello"); strings.Contains(w.body(), "not this") || w.offers("mcp__docs__pid") {
			t.Error("a part of the rejected request took effect")
		}
	})
	t.Run("issue/4-2 approval rules apply to tools of a client's server, and its questions become decisions", func(t *testing.T) {
		id := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: w.work, MCPServers: docs(t, "x"), Approval: &protocol.ApprovalConfig{
			Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "mcp__docs__p*", Action: protocol.ApproveDeny}},
		}}).SessionID
		if out := p.calls(id, "mcp__docs__pid", `{}`); out.Failure == nil || out.Failure.Class != protocol.FailPermission {
			t.Errorf("a denied call: %+v", out)
		}
		turn := p.start(id, fakemodel.ToolMarker("mcp__docs__colour", `{}`)).TurnID
		asked := p.event("the question", func(e protocol.Event) bool {
			return opened(e) && e.TurnID == turn && e.Decision.Kind == protocol.DecisionQuestion
		}).Decision
		if !strings.Contains(asked.Prompt, "client/docs") {
			t.Errorf("the question is %+v", asked)
		}
		ask[protocol.DecisionRespondResult](w.dial("person"), "decision/respond", protocol.DecisionRespondParams{
			DecisionID: asked.ID, Choice: protocol.ChooseAnswer, ArgsHash: asked.ArgsHash, Value: json.RawMessage(`{"colour":"red"}`),
		})
		if out := called(t, p.wait(turn), "mcp__docs__colour"); out.Text != "accept red" {
			t.Errorf("the call returned %+v", out)
		}
		p.overlays(id, nil)
		gone(t)
	})
	t.Run("issue/4-2 issue/4-7 servers that hang, die or do not exist delay a session only briefly and are reported", func(t *testing.T) {
		servers := docs(t, "here")
		servers["hangs"] = protocol.MCPServer{Command: "sleep", Args: []string{"1000"}}
		servers["missing"] = protocol.MCPServer{Command: "no-such-program"}
		servers["dies"] = protocol.MCPServer{Command: "false"}
		servers["far"] = protocol.MCPServer{URL: "http://127.0.0.1:1/mcp"}
		began := time.Now()
		id := p.brings(w.home, servers)
		if took := time.Since(began); took > 9*time.Second { // lashd gives up on a server after ten seconds
			t.Errorf("the session took %v", took)
		}
		p.says(id, "mcp__docs__greeting", `{}`, "here")
		for _, name := range []string{"hangs", "missing", "dies", "far"} {
			e := p.event(name+" is reported", func(e protocol.Event) bool {
				return e.Type == protocol.EventPluginStatus && e.SessionID == id && strings.Contains(e.Text, "MCP server "+name+" ")
			})
			if e.Name != "mcp_server_failed" {
				t.Errorf("%s: %+v", name, e)
			}
		}
		p.overlays(id, nil)
		gone(t)
	})
	t.Run("issue/4-2 after a crash the servers are gone until the client adds them again, and their settings are kept", func(t *testing.T) {
		id := p.brings(w.home, docs(t, "x"))
		p.provides(id, "mcp__docs__grow")
		ask[protocol.ToolStateResult](p, "tool/setMembership", protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"mcp__docs__grow": false}})
		d.kill()
		w.none(soon)
		d = w.serve()
		p = w.dial("editor")
		state := ask[protocol.ToolStateResult](p, "tool/state", protocol.SessionParams{SessionID: id}).State
		if pid, grow := state.Tools["mcp__docs__pid"], state.Tools["mcp__docs__grow"]; !pid.Orphaned || !grow.Orphaned || grow.IsMember() {
			t.Errorf("after the crash: %+v, %+v", pid, grow)
		}
		if p.turn(id, "hello"); w.offers("mcp__docs__pid") || len(w.children()) > 0 {
			t.Errorf("the model is offered tools without a server; processes %v", w.children())
		}
		state = p.overlays(id, docs(t, "x")).Tools
		if pid, grow := state.Tools["mcp__docs__pid"], state.Tools["mcp__docs__grow"]; pid.Orphaned || grow.Orphaned || grow.IsMember() {
			t.Errorf("added again: %+v, %+v", pid, grow)
		}
		if p.says(id, "mcp__docs__greeting", `{}`, "x"); w.offers("mcp__docs__grow") {
			t.Error("a disabled tool is enabled again")
		}
		d.stop()
		w.none(soon)
	})
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}

// leaky is a program that prints its arguments and environment and is no MCP server.
const leaky = `printf 'it is %s\n' "$TOKEN" >&2; printf 'logged in with %s\n{"jsonrpc": %s\n' "$TOKEN" "$TOKEN"; sleep 1`

// TestSecretsOfGuests searches everything that lashd writes and sends for secrets in servers of a
// client.
func TestSecretsOfGuests(t *testing.T) {
	const token, key = `tok-4f1"9e\77-end`, "key-0b5d2e88c1"
	w := newWorld(t, "allow")
	logFile := filepath.Join(t.TempDir(), "log")
	d := w.serveLogging(logFile)
	p := w.dial("editor")
	env := map[string]string{"TOKEN": token, "GREETING": "hello"}
	servers := protocol.MCPServers{
		"docs":  {Command: goServer(t), Env: env},
		"leaks": {Command: "sh", Args: []string{"-c", leaky}, Env: env},
		"web":   {URL: web(t, "another"), Headers: map[string]string{"Authorization": "Bearer " + key}},
		"query": {URL: "http://127.0.0.1:1/mcp?key=" + key},
	}
	params := protocol.SessionNewParams{Mutation: protocol.Mutation{IdempotencyKey: "once"}, Cwd: w.work, MCPServers: servers}
	id := ask[protocol.SessionNewResult](p, "session/new", params).SessionID
	if again := ask[protocol.SessionNewResult](p, "session/new", params); again.SessionID != id || !again.Duplicate {
		t.Errorf("repeated: %+v", again)
	}
	p.provides(id, "mcp__docs__greeting")
	p.says(id, "mcp__docs__greeting", `{}`, "hello")
	for _, name := range []string{"leaks", "web", "query"} {
		p.event(name+" fails", func(e protocol.Event) bool {
			return e.Type == protocol.EventPluginStatus && strings.Contains(e.Text, "MCP server "+name+" ")
		})
	}
	p.overlays(id, servers)
	shown := map[string]string{"the model's request": w.body()}
	for what, params := range map[string]any{
		"a wrong name": protocol.MCPServers{"a": {Command: "x", Env: map[string]string{"A B": token}}},
		"a wrong kind": protocol.MCPServers{"a": {Command: "x", Headers: map[string]string{"A": key}}},
		"a wrong word": map[string]any{"a": map[string]string{"token": token}},
		"a wrong type": map[string]any{"a": map[string]any{"env": []string{token}}},
	} {
		_, err := try[protocol.SessionOverlayResult](p, "session/setOverlay", map[string]any{"sessionId": id, "mcpServers": params})
		if _, kind := refusal(err); kind != protocol.KindInvalidParams {
			t.Errorf("%s: %v", what, err)
		}
		shown[what] = fmt.Sprint(err)
	}
	ask[protocol.SnapshotResult](p, "snapshot/create", protocol.SnapshotMutationParams{SessionID: id, Name: "now"})
	for method, params := range map[string]any{
		"debug/prompt": protocol.SessionParams{SessionID: id}, "tool/list": protocol.SessionParams{SessionID: id}, "server/diagnostics": protocol.Empty{},
		"plugin/list": protocol.PluginListParams{}, "snapshot/read": protocol.SnapshotParams{SessionID: id, Name: "now"}, "session/read": protocol.SessionReadParams{SessionID: id},
	} {
		shown[method] = string(ask[json.RawMessage](p, method, params))
	}
	for _, e := range p.log(id) {
		shown["events"] += e.raw + "\n"
	}
	d.stop()
	w.written(shown, w.dir, logFile)
	t.Run("issue/4-2 values of env and headers are in no file, log, event or answer", func(t *testing.T) {
		quoted := strconv.Quote(token)
		for where, text := range shown {
			for _, secret := range []string{token, quoted[1 : len(quoted)-1], key} {
				if i := strings.Index(text, secret); i >= 0 {
					t.Errorf("%q occurs in %s: %.200q", secret, where, text[max(0, i-80):])
				}
			}
		}
		for _, there := range []string{"it is ${TOKEN}", "logged in with ${TOKEN}"} {
			if !strings.Contains(shown[logFile], there) {
				t.Errorf("the log does not contain %q: %s", there, shown[logFile])
			}
		}
	})
}

// serveLogging is serve with the daemon's log in a file.
func (h *home) serveLogging(path string) *daemon {
	h.t.Helper()
	log, err := os.Create(path)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	d := &daemon{home: h, cmd: h.command("serve")}
	d.cmd.Stderr, d.cmd.Args[slices.Index(d.cmd.Args, "error")] = log, "debug"
	if err := d.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() {
		if !d.over {
			d.kill()
		}
	})
	return d
}

// written returns all files below some directories.
func (h *home) written(files map[string]string, places ...string) {
	h.t.Helper()
	for _, place := range places {
		err := filepath.WalkDir(place, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			files[path] = string(data)
			return err
		})
		if err != nil {
			h.t.Fatal(err)
		}
	}
}
