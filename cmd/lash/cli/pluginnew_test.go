//go:build unix

package cli

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/test/skip"
)

// tools are the programs that plugins of a language need.
func tools(t *testing.T, p *place, lang string) {
	t.Helper()
	installed, _ := filepath.Glob("../../../.cache/node/node_modules/node-*/bin")
	path := os.Getenv("PATH")
	for _, dir := range installed {
		abs, _ := filepath.Abs(dir)
		path = abs + string(os.PathListSeparator) + path
	}
	p.environ = append(p.environ, "PATH="+path)
	switch lang {
	case "python":
		_, err := exec.LookPath("python3")
		skip.Unless(t, "PYTHON", err == nil, "there is no python3")
	case "go": // to compile the standard library for each home takes a minute
		cache, err := exec.Command("go", "env", "GOCACHE").Output()
		if err != nil {
			t.Fatal(err)
		}
		keep := exec.Command("go", "env", "-w", "GOCACHE="+strings.TrimSpace(string(cache)))
		if keep.Env = p.environ; keep.Run() != nil {
			t.Fatal("go env -w fails")
		}
	case "ts":
		node := exec.Command("sh", "-c", `node --eval 'process.exit(process.features.typescript ? 0 : 1)'`)
		node.Env = p.environ
		skip.Unless(t, "NODE", node.Run() == nil, "there is no node that runs TypeScript; scripts/test installs one")
	}
}

func TestPluginNew(t *testing.T) {
	for _, lang := range []string{"python", "ts", "go", "command"} {
		t.Run("issue/4-9 a new plugin and the suggested commands work in "+lang, func(t *testing.T) {
			p := newPlace(t)
			tools(t, p, lang)
			dir := filepath.Join(p.work, "my.guard-2")
			out := p.want(0, "", "", "plugin", "new", "--lang", lang, "my.guard-2", dir).out
			_, commands, ok := strings.Cut(out, "Next:\n")
			if !ok || strings.Count(strings.TrimSpace(commands), "\n") != 2 {
				t.Fatalf("output %q", out)
			}
			script := exec.Command("sh", "-e", "-c", "PATH="+programs+":$PATH\n"+commands)
			script.Dir, script.Env = p.work, p.environ
			said, err := script.CombinedOutput()
			if err != nil || lang != "command" && !regexp.MustCompile(`(?m)^hook beforeToolCall +ok`).Match(said) {
				t.Errorf("%s\n%v\n%s", commands, err, said)
			}
			if left, _ := filepath.Glob(filepath.Join(p.work, ".new-plugin-*")); len(left) > 0 {
				t.Errorf("left behind: %q", left)
			}
		})
	}
	t.Run("issue/4-9 nothing is overwritten, and an invalid name creates nothing", func(t *testing.T) {
		p := newPlace(t)
		taken := filepath.Join(p.work, "taken")
		if err := os.WriteFile(taken, []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.want(console.ExitFailed, "", "already exists", "plugin", "new", "--lang", "go", "taken", taken)
		p.want(console.ExitFailed, "", "plugin.json:2", "plugin", "new", "--lang", "go", "No Name", filepath.Join(p.work, "other"))
		p.want(console.ExitUsage, "", "--lang", "plugin", "new", "--lang", "cobol", "x")
		if files, _ := os.ReadDir(p.work); len(files) != 1 {
			t.Errorf("files: %v", files)
		}
		if text, _ := os.ReadFile(taken); string(text) != "mine" {
			t.Errorf("the file is now %q", text)
		}
	})
}

// misfits are Python plugins with one defect each, and the check that detects it.
var misfits = map[string]struct{ lashd, program, check, detail string }{
	"handler": {`"hooks":["afterTurn"]`, "plugin = lashd.Plugin()", "handshake", "the hook afterTurn has no handler"},
	"throws": {`"hooks":["afterTurn"]`, `plugin = lashd.Plugin()
@plugin.hook("afterTurn")
def f(call, context): raise ValueError("boom")`, "hook afterTurn", "boom"},
	"slow": {`"hooks":[{"on":"prompt","timeoutMs":300}]`, `plugin = lashd.Plugin()
@plugin.hook("prompt")
def f(call, context): call.cancelled.wait()`, "hook prompt", "plugin_timeout"},
	"forgets": {`"hooks":["prompt"],"state":"1"`, `plugin = lashd.Plugin(state=lambda: [1])
@plugin.hook("prompt")
def f(call, context): pass
@plugin.on("restore")
def g(session): session.state = []`, "state", "differs from the restored state"},
	"stays": {`"hooks":["prompt"]`, `plugin = lashd.Plugin()
@plugin.hook("prompt")
def f(call, context): pass
@plugin.on("shutdown")
def g(): import time; time.sleep(60)`, "stop", "did not exit when its stdin closed"},
	"leaves": {`"hooks":["prompt"]`, `plugin = lashd.Plugin()
@plugin.hook("prompt")
def f(call, context):
    import subprocess
    subprocess.Popen(["sleep", "60"], start_new_session=True)`, "stop", "left other processes behind"},
}

func TestPluginCheckRun(t *testing.T) {
	sdk, err := os.ReadFile("../../../plugins/sdk/python/lashd_plugin.py")
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range misfits {
		t.Run("issue/4-9 plugin check --run detects a plugin that "+name, func(t *testing.T) {
			p := newPlace(t)
			tools(t, p, "python")
			for file, text := range map[string]string{
				"plugin.json":     `{"name":"misfit","lashd":{"process":{"command":["python3","-B","${PLUGIN_ROOT}/main.py"]},` + m.lashd + `}}`,
				"lashd_plugin.py": string(sdk), "main.py": "import lashd_plugin as lashd\n" + m.program + "\nplugin.run()\n",
			} {
				if err := os.WriteFile(filepath.Join(p.work, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := p.want(console.ExitFailed, "", "", "plugin", "check", "--run", "--json", p.work)
			var v verdict
			if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.OK {
				t.Fatalf("%v: %s", err, r.out)
			}
			for _, c := range v.Checks {
				if c.OK == (c.Name == m.check) || !c.OK && !strings.Contains(c.Detail, m.detail) {
					t.Errorf("%+v, want only %s to fail", c, m.check)
				}
			}
		})
	}
}

// TestPluginOfTheDocument checks the plugin without an SDK from docs/plugin-protocol.md.
func TestPluginOfTheDocument(t *testing.T) {
	p := newPlace(t)
	tools(t, p, "python")
	doc, err := os.ReadFile("../../../docs/plugin-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(doc), "## A complete process\n")
	for name, block := range map[string]string{"plugin.json": "```json\n", "clock.py": "```python\n"} {
		_, text, _ := strings.Cut(section, block)
		text, _, _ = strings.Cut(text, "```")
		if err := os.WriteFile(filepath.Join(p.work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := p.run("plugin", "check", "--run", "--json", ".")
	for _, check := range []string{"handshake", "hook prompt", "hook beforeToolCall", "stop"} {
		if !strings.Contains(r.out, `"name":"`+check+`","ok":true`) {
			t.Errorf("issue/4-9 %s: exit code %d, %s%s", check, r.code, r.out, r.err)
		}
	}
}

// TestPluginNewWithNodeOfMachine uses the Node in the PATH of the machine. If it is too old, no
// TypeScript plugin is created.
func TestPluginNewWithNodeOfMachine(t *testing.T) {
	node, err := exec.LookPath("node")
	skip.Unless(t, "NODE", err == nil, "there is no node in the PATH")
	said, err := exec.Command(node, "--print", `process.version + " " + !!process.features.typescript`).Output()
	version, runs, ok := strings.Cut(strings.TrimSpace(string(said)), " ")
	if err != nil || !ok {
		t.Fatalf("%s prints %q: %v", node, said, err)
	}
	t.Run("outside/26 plugin new --lang ts with Node "+version+" creates a plugin only if Node runs TypeScript", func(t *testing.T) {
		p := newPlace(t)
		dir := filepath.Join(p.work, "guard")
		if runs == "true" {
			p.want(0, "", "", "plugin", "new", "--lang", "ts", "guard", dir)
			return
		}
		want := "a TypeScript plugin needs Node 22.18 or newer, but " + node + " is " + version
		p.want(console.ExitFailed, "", want, "plugin", "new", "--lang", "ts", "guard", dir)
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want none", dir, err)
		}
	})
}
