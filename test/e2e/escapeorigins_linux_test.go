package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// escaper is a Python program that runs all scripts of a file beside it and prints what each printed.
const escaper = `import json, os, subprocess, sys
os.environ["PATH"] = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
here = os.path.dirname(os.path.abspath(__file__))
task = json.load(open(os.path.join(here, "escapes.json")))
def run():
    try:
        os.chdir(task["dir"])
    except OSError:
        pass
    all = []
    for script in task["scripts"]:
        try:
            text = subprocess.run(["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=10, close_fds=False).stdout
        except subprocess.TimeoutExpired as late:
            text = (late.stdout or b"") + b" timeout"
        all.append(text.decode(errors="replace")[:4000])
    return json.dumps(all)
if __name__ == "__main__":
    print(run())
`

// escapingServer is an MCP server with a tool that does the same.
const escapingServer = `import json, sys
from run import run
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    r = {}
    if m["method"] == "initialize":
        r = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}
    if m["method"] == "tools/list":
        r = {"tools": [{"name": "escape", "inputSchema": {"type": "object"}}]}
    if m["method"] == "tools/call":
        r = {"content": [{"type": "text", "text": run()}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
`

// origin is a way in which lashd runs a program for an agent.
type origin struct {
	name  string
	lives bool                                            // its program may run on after the call
	run   func(*prison, *peer, protocol.SessionID) string // returns what escaper prints
}

// tool calls a tool of the session and returns the text of its result.
func (p *prison) tool(c *peer, id protocol.SessionID, name string, args map[string]any) string {
	p.t.Helper()
	text, err := json.Marshal(args)
	if err != nil {
		p.t.Fatal(err)
	}
	return ask[protocol.ToolCallResult](c, "tool/call", protocol.ToolCallParams{SessionID: id, Name: name, Args: text}).Output.Text
}

// inBackground runs escaper by a tool that returns before the command ends, and waits for the report.
func inBackground(name string, args map[string]any) func(*prison, *peer, protocol.SessionID) string {
	return func(p *prison, c *peer, id protocol.SessionID) string {
		p.t.Helper()
		args["command"] = "python3 run.py > " + name + ".part; mv " + name + ".part " + name + ".report"
		started := p.tool(c, id, name, args)
		report := filepath.Join(p.work, name+".report")
		eventually(p.t, "the report of "+started, func() error { _, err := os.Stat(report); return err })
		return readText(p.t, report)
	}
}

// origins are all ways in which programs run for an agent in a sandbox.
var origins = []origin{
	{"shell", false, func(p *prison, c *peer, id protocol.SessionID) string {
		return p.tool(c, id, "shell", map[string]any{"command": "python3 run.py", "plain": true})
	}},
	{"a background command", false, inBackground("start_command", map[string]any{})},
	{"a monitor", false, inBackground("start_monitor", map[string]any{"id": "m"})},
	{"an MCP server", true, func(p *prison, c *peer, id protocol.SessionID) string {
		return p.tool(c, id, "mcp__x__escape", map[string]any{})
	}},
	{"a sandboxed plugin", false, func(p *prison, c *peer, id protocol.SessionID) string {
		return p.tool(c, id, "escape", map[string]any{})
	}},
	{"a sandboxed plugin that writes the workspace", false, func(p *prison, c *peer, id protocol.SessionID) string {
		return p.tool(c, id, "escape_writing", map[string]any{})
	}},
	// A cell has no modules such as os, but a way to them past the interpreter. The sandbox has to hold.
	{"a code worker", true, func(p *prison, c *peer, _ protocol.SessionID) string {
		cells := ask[protocol.SessionNewResult](c, "session/new", protocol.SessionNewParams{Cwd: p.work, Driver: "rlm"}).SessionID
		r := ask[protocol.CodeExecuteResult](c, "code/execute", protocol.CodeExecuteParams{SessionID: cells, Source: `g = [c for c in ().__class__.__base__.__subclasses__() if c.__name__ == "_wrap_close"][0].__init__.__globals__
print(g["popen"](g["sys"].executable + " " + g["environ"]["PLUGIN_ROOT"] + "/run.py 2>&1").read())`}).Result
		if r.Error != "" {
			p.t.Errorf("the cell failed: %s", r.Error)
		}
		return r.Printed
	}},
}

// escaping writes the programs of all origins.
func (p *prison) escaping() {
	p.t.Helper()
	task := map[string]any{"dir": p.work}
	var scripts []string
	for _, e := range escapes {
		scripts = append(scripts, p.fill(e.script, fmt.Sprint(p.victim.Process.Pid)))
	}
	task["scripts"] = append(scripts, `python3 -c 'print("control")'`)
	text, err := json.Marshal(task)
	if err != nil {
		p.t.Fatal(err)
	}
	w := &world{home: p.home}
	w.pythonPlugin()
	plugin := func(name, contributes string) {
		p.file(filepath.Join(p.plugins(), name, "plugin.json"), fmt.Sprintf(`{"name":%q,"lashd":%s}`, name, contributes))
	}
	plugin("server", `{"mcpServers":{"x":{"command":"python3","args":["${PLUGIN_ROOT}/server.py"]}}}`)
	interpreter, err := exec.Command("python3", "-c", "import os, sys; print(os.path.realpath(sys.executable))").Output()
	if err != nil {
		p.t.Fatal(err)
	}
	python := strings.TrimSpace(string(interpreter))
	boxed := func(name, tool, access string) {
		plugin(name, fmt.Sprintf(`{"tools":[{"name":%q,"description":"d","command":[%q,"${PLUGIN_ROOT}/run.py"]}],"sandbox":{"workspace":%q,"read":[%q]}}`,
			tool, python, access, filepath.Dir(filepath.Dir(python))))
	}
	boxed("boxed", "escape", "read")
	boxed("writing", "escape_writing", "write")
	p.file(filepath.Join(p.plugins(), "server", "server.py"), escapingServer)
	for _, dir := range []string{p.work, filepath.Join(p.plugins(), "server"), filepath.Join(p.plugins(), "boxed"), filepath.Join(p.plugins(), "writing"), filepath.Join(p.plugins(), "python-executor")} {
		p.file(filepath.Join(dir, "run.py"), escaper)
		p.file(filepath.Join(dir, "escapes.json"), string(text))
	}
	config := filepath.Join(p.dir, "config.toml")
	p.file(config, readText(p.t, config)+pythonConfig+"[plugins.python-executor]\nseconds = 100\n")
}

// TestEscapes runs scripts that try to leave the sandbox, from each origin, in the default mode.
func TestEscapes(t *testing.T) {
	t.Parallel()
	err := sandbox.Available()
	skip.Unless(t, "NAMESPACES", err == nil, fmt.Sprint(err))
	p := newPrison(t)
	p.escaping()
	p.serve()
	c := p.dial("")
	for _, plugin := range []string{"server", "boxed", "writing", "python-executor"} {
		c.loads(plugin, nil)
	}
	id := ask[protocol.SessionNewResult](c, "session/new", protocol.SessionNewParams{Cwd: p.work}).SessionID
	if got := ask[protocol.SessionReadResult](c, "session/read", protocol.SessionReadParams{SessionID: id}).Session.Config.Approval.Sandbox; got != protocol.SandboxWorkspace {
		t.Fatalf("a new session has the mode %q", got)
	}
	if got := p.tool(c, id, "shell", map[string]any{"command": "cat file; echo x > made; cat ~/other/file"}); !strings.HasPrefix(got, "work\nother\n") {
		t.Fatalf("an ordinary command does not work: %q", got)
	}
	var table strings.Builder
	table.WriteString(header)
	for _, o := range origins {
		t.Run("part11/escapes from "+o.name, func(t *testing.T) {
			n := p.attacked(t, c, id, o)
			table.WriteString(fmt.Sprintf("%-44s %d of %d\n", o.name, n, len(escapes)))
		})
	}
	t.Log(table.String())
	t.Run("part11/escapes while a command starts threads without end, the daemon answers", func(t *testing.T) { p.bombed(t, c, id) })
}

// TestEscapesOfUser runs the escapes, in a sandbox and outside, in a process of a normal user, if this one is of root.
func TestEscapesOfUser(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		return // TestEscapes runs as a normal user
	}
	err := sandbox.Available()
	skip.Unless(t, "NAMESPACES", err == nil, fmt.Sprint(err))
	dir, err := os.MkdirTemp("/var/tmp", "lashd-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	work, examples := filepath.Join(dir, "test", "e2e"), filepath.Join("plugins", "examples")
	err = errors.Join(os.MkdirAll(work, 0o755), os.CopyFS(filepath.Join(dir, examples), os.DirFS(filepath.Join("..", "..", examples))))
	for name, from := range map[string]string{"lash": filepath.Join(bin, "lash"), "lashd": filepath.Join(bin, "lashd"), "tests": os.Args[0]} {
		program, failed := os.ReadFile(from)
		err = errors.Join(err, failed, os.WriteFile(filepath.Join(dir, name), program, 0o755))
	}
	if err := errors.Join(err, os.Chmod(dir, 0o755), os.Chown(dir, nobody, nobody)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "tests"), "-test.run", "^TestEscapes(Outside)?$", "-test.v")
	cmd.Dir, cmd.Env = work, append(os.Environ(), builtIn+"="+dir, "HOME="+dir, "TMPDIR="+dir, "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	t.Run("issue/20-1 the escapes of a normal user", func(t *testing.T) {
		out, err := cmd.CombinedOutput()
		_, table, ok := strings.Cut(string(out), header)
		if table, _, _ = strings.Cut(table, "---"); err != nil || !ok {
			t.Errorf("%v: %s", err, out)
		}
		t.Log(header + table)
	})
}

// header begins the table of results.
const header = "escapes that fire:\n"

// left returns the contents of the files of programs that an escape left behind, by path.
func (p *prison) left() map[string]string {
	all := map[string]string{}
	paths, _ := filepath.Glob(filepath.Join(p.work, "left-*")) // the pattern is right
	for _, path := range paths {
		all[path] = readText(p.t, path)
	}
	return all
}

// stays reports whether a program still writes to its file, other than those of before.
func (p *prison) stays(before map[string]string) bool {
	now := p.left()
	time.Sleep(500 * time.Millisecond)
	maps.DeleteFunc(now, func(path, text string) bool {
		_, earlier := before[path]
		return earlier || readText(p.t, path) == text
	})
	return len(now) > 0
}

// bombed runs bomb as a command, and asks the daemon for its status until it has ended.
func (p *prison) bombed(t *testing.T, c *peer, id protocol.SessionID) {
	other := p.dial("")
	ended, longest := make(chan string), time.Duration(0)
	go func() { ended <- p.tool(c, id, "shell", map[string]any{"command": python(bomb), "plain": true}) }()
	for {
		began := time.Now()
		ask[protocol.StatusResult](other, "server/status", nil)
		longest = max(longest, time.Since(began))
		select {
		case out := <-ended:
			if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n < 1000 || n > 4400 {
				t.Errorf("it prints %q", out)
			}
			if longest > 10*time.Second {
				t.Errorf("the daemon answered after %v", longest)
			}
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// attacked runs all escapes from an origin and returns how many fired.
func (p *prison) attacked(t *testing.T, c *peer, id protocol.SessionID, o origin) (fired int) {
	before, left := p.outside(), p.left()
	var outputs []string
	report := o.run(p, c, id)
	if err := json.NewDecoder(strings.NewReader(report)).Decode(&outputs); err != nil || len(outputs) != len(escapes)+1 || outputs[len(escapes)] != "control\n" {
		t.Fatalf("the report has %d of %d results, %v: %.2000q", len(outputs), len(escapes)+1, err, report)
	}
	for i, e := range escapes {
		out := outputs[i]
		if fires(e.never, out) {
			fired++
			t.Errorf("%s: it escaped: %q", e.name, out)
		}
		if strings.Contains(out, "SyntaxError") || strings.Contains(out, "not found") && !strings.Contains(e.script, "sudo") || strings.HasSuffix(out, " timeout") {
			t.Errorf("%s: the script itself fails: %q", e.name, out)
		}
	}
	if n := p.reached.Swap(0); n != 0 {
		fired++
		t.Errorf("one reached a server: %q", outputs)
	}
	eventually(t, "all is outside as before", func() error { // lashd undoes some changes when the command has ended
		if changes := cmp.Diff(before, p.outside()); changes != "" {
			return fmt.Errorf("one changed something outside: %s\n%q", changes, outputs)
		}
		return nil
	})
	if !o.lives && p.stays(left) {
		fired++
		t.Error("a program stays")
	}
	if !alive(p.victim.Process.Pid) {
		t.Fatalf("one ended another process: %q", outputs)
	}
	return fired
}
