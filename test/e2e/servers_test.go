package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
	"lashd/test/skip"
)

// buildServer builds the MCP server of the Go SDK.
var buildServer = sync.OnceValues(func() (string, error) {
	path := filepath.Join(bin, "mcpserver")
	build := exec.Command("go", "build", "-o", path, "lashd/test/e2e/mcpserver")
	build.Stderr = os.Stderr
	return path, build.Run()
})

func goServer(t *testing.T) string {
	t.Helper()
	path, err := buildServer()
	if err != nil {
		t.Fatal("build an MCP server:", err)
	}
	return path
}

// npmServer is the program of an MCP server from npm, as published.
func npmServer(t *testing.T, name string) string {
	t.Helper()
	_, err := exec.LookPath("node")
	skip.Unless(t, "NODE", err == nil, "node is not installed")
	return npmFile(t, "@modelcontextprotocol/server-"+name+"/dist/index.js")
}

// npmFile is a file of an npm package. Packages are installed as in scripts/test; "npm ci" would also
// need packages of other systems.
func npmFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs("servers/node_modules/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		command(t, "servers", 8*patience, "npm", "install", "--no-save")
	}
	return path
}

// server is the configuration of an MCP server in the form that other agents use.
type server struct {
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
}

// mcpJSON is a .mcp.json file.
func mcpJSON(servers map[string]server) string {
	return mustArgs(map[string]any{"mcpServers": servers})
}

// overHTTP starts an npm MCP server with streamable HTTP and returns its address.
func overHTTP(t *testing.T, program string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	free.Close()
	cmd := exec.Command("node", program, "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGKILL)
		cmd.Wait() // reports that it was killed
	})
	lines := bufio.NewScanner(said)
	for lines.Scan() && !strings.Contains(lines.Text(), "listening") {
	}
	go func() {
		for lines.Scan() { // keep reading, so that the server does not block
		}
	}()
	return "http://127.0.0.1:" + port + "/mcp"
}

// TestServersOfOthers has turns call independent MCP servers.
func TestServersOfOthers(t *testing.T) {
	w := newWorld(t, "allow")
	everything, filesystem := npmServer(t, "everything"), npmServer(t, "filesystem")
	w.plugin("reference", map[string]string{".mcp.json": mcpJSON(map[string]server{
		"everything": {Command: "node", Args: []string{everything, "stdio"}, Env: map[string]string{"GREETING": "hello"}},
		"web":        {URL: overHTTP(t, everything)},
	})})
	w.plugin("files", map[string]string{"plugin.json": mustArgs(map[string]any{"name": "files", "lashd": json.RawMessage(mcpJSON(map[string]server{
		"filesystem": {Command: "node", Args: []string{filesystem, w.work}},
		"sdk":        {Command: goServer(t)},
	}))})})
	w.serve()
	p := w.dial("")
	p.loads("reference", func(i protocol.PluginInfo) bool {
		return len(i.Servers) == 2 && i.Servers[0].Tools > 12 && i.Servers[1].Tools > 12
	})
	p.loads("files", nil)
	id := p.session(w.home)
	p.attach(id, 0)
	t.Run("issue/4-7 servers from npm are called by name, over stdio and HTTP", func(t *testing.T) {
		w.write(filepath.Join(w.work, "note"), "buy tea")
		p.says(id, "mcp__everything__echo", `{"message":"one"}`, "Echo: one")
		if items := ask[protocol.SessionReadResult](p, "session/read", protocol.SessionReadParams{SessionID: id}).Data; !slices.ContainsFunc(items, func(i protocol.Item) bool {
			return i.Kind == protocol.ItemToolCall && i.Title.Line(i.Status) == "Called everything: Echo Tool one"
		}) {
			t.Errorf("part13/vscode no call is called by the title of its tool: %+v", items)
		}
		p.says(id, "mcp__everything__get-env", `{}`, `"GREETING": "hello"`)
		p.says(id, "mcp__web__echo", `{"message":"two"}`, "Echo: two")
		p.says(id, "mcp__web__get-sum", `{"a":2,"b":3}`, "5")
		p.says(id, "mcp__filesystem__read_text_file", mustArgs(map[string]string{"path": filepath.Join(w.work, "note")}), "buy tea")
		out := p.calls(id, "mcp__filesystem__read_text_file", `{"path":"/etc/passwd"}`)
		if out.Failure == nil || out.Failure.Code != "mcp_tool_error" || !strings.Contains(out.Failure.Message, "denied") {
			t.Errorf("a file outside: %+v", out)
		}
	})
	t.Run("outside/20 a server gets lashd's version", func(t *testing.T) {
		turn := p.start(id, fakemodel.ToolMarker("mcp__sdk__client", `{}`)).TurnID
		if got := called(t, p.wait(turn), "mcp__sdk__client").Text; !regexp.MustCompile(`^lashd \d+\.\d+\.\d+`).MatchString(got) {
			t.Errorf("the server got %q", got)
		}
	})
	for _, name := range []string{"everything", "web"} {
		t.Run("issue/4-7 clients see the progress of a call of the server "+name, func(t *testing.T) {
			tool := "mcp__" + name + "__trigger-long-running-operation"
			turn := p.start(id, fakemodel.ToolMarker(tool, `{"duration":0.6,"steps":3}`)).TurnID
			for _, far := range []string{"1/3", "2/3"} {
				p.event("progress "+far, func(e protocol.Event) bool {
					return e.Type == protocol.EventToolProgress && e.TurnID == turn && strings.Contains(e.Text, far)
				})
			}
			if out := called(t, p.wait(turn), tool); !strings.Contains(out.Text, "completed") {
				t.Errorf("the call returned %+v", out)
			}
		})
		t.Run("issue/4-7 another client answers a question of the server "+name, func(t *testing.T) {
			tool := "mcp__" + name + "__trigger-elicitation-request"
			turn := p.start(id, fakemodel.ToolMarker(tool, `{}`)).TurnID
			asked := p.event("the question", func(e protocol.Event) bool { return opened(e) && e.TurnID == turn }).Decision
			if asked.Kind != protocol.DecisionQuestion || !strings.Contains(string(asked.Form), "birthdate") {
				t.Errorf("the question is %+v", asked)
			}
			other := w.dial("other")
			r := ask[protocol.DecisionRespondResult](other, "decision/respond", protocol.DecisionRespondParams{
				DecisionID: asked.ID, Choice: protocol.ChooseAnswer, ArgsHash: asked.ArgsHash, Value: json.RawMessage(`{"name":"Ada","integer":7}`),
			})
			if !r.Won {
				t.Errorf("the first answer does not count: %+v", r)
			}
			if out := called(t, p.wait(turn), tool); !strings.Contains(out.Text, "- Name: Ada") || !strings.Contains(out.Text, "- Favorite Integer: 7") {
				t.Errorf("the call returned %+v", out)
			}
		})
	}
	t.Run("issue/4-7 a question of the Go SDK's server can be declined", func(t *testing.T) {
		turn := p.start(id, fakemodel.ToolMarker("mcp__sdk__colour", `{}`)).TurnID
		asked := p.event("the question", func(e protocol.Event) bool { return opened(e) && e.TurnID == turn }).Decision
		ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{
			DecisionID: asked.ID, Choice: protocol.ChooseReject, ArgsHash: asked.ArgsHash,
		})
		if out := called(t, p.wait(turn), "mcp__sdk__colour"); !strings.HasPrefix(out.Text, "decline") {
			t.Errorf("the call returned %+v", out)
		}
	})
	t.Run("issue/4-7 a tool that a server adds later is available in the next turn", func(t *testing.T) {
		if w.offers("mcp__sdk__grown") {
			t.Fatal("the tool exists before")
		}
		p.says(id, "mcp__sdk__grow", `{}`, "grown")
		p.event("other tools", func(e protocol.Event) bool { return e.Type == protocol.EventToolsChanged && e.SessionID == id })
		p.says(id, "mcp__sdk__grown", `{}`, "I am new")
	})
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}

// offers reports whether the model's last request contained a tool.
func (w *world) offers(tool string) bool {
	return strings.Contains(w.body(), fmt.Sprintf(`"name":%q`, tool))
}
