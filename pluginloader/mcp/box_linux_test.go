package mcp_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/engine/sandbox"
	"lashd/engine/tool"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
	"lashd/test/skip"
	"lashd/test/wait"
)

// land is a home directory with a secret, two workspaces and the places of a daemon.
type land struct {
	places     sandbox.Places
	home, a, b string
}

// settled makes a land outside of /tmp, which is another one in a sandbox.
func settled(t *testing.T) land {
	t.Helper()
	err := sandbox.Available()
	skip.Unless(t, "NAMESPACES", err == nil, fmt.Sprint(err))
	base, err := os.MkdirTemp("/var/tmp", "lashd-mcp-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	l := land{home: filepath.Join(base, "home"), a: filepath.Join(base, "home", "a"), b: filepath.Join(base, "home", "b")}
	l.places = sandbox.Places{Home: l.home, State: filepath.Join(base, "state"), Scratch: filepath.Join(base, "state", "sandbox")}
	for _, dir := range []string{l.a, l.b, filepath.Join(l.home, "more"), filepath.Join(l.home, ".ssh"), l.places.State} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{filepath.Join(l.home, ".ssh", "key"): "the-secret", filepath.Join(l.a, "file"): "of-a"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// pool is a pool in a land.
func (l land) pool(t *testing.T, set func(*mcp.PoolConfig)) *mcp.Pool {
	return pooledOf(t, mcp.Times{Connect: patience, Stop: 500 * time.Millisecond, Terminate: 300 * time.Millisecond}, func(c *mcp.PoolConfig) {
		c.Sandboxes, c.Environ = l.places, append(c.Environ, "HOME="+l.home)
		if set != nil {
			set(c)
		}
	})
}

// inside calls a tool as a session does that has a mode and a workspace.
func inside(t *testing.T, p *mcp.Part, mode protocol.SandboxMode, cwd, name, text string) string {
	t.Helper()
	args, err := json.Marshal(words{text})
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Execute(t.Context(), tool.Invocation{
		SessionID: "ses_1", TurnID: "trn_1", CallID: "call_1", Attempt: 1, ToolID: "mcp__x__" + name, Name: "mcp__x__" + name, Args: args, Sandbox: mode, Cwd: cwd,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r.Output.Text
}

const (
	inWorkspace = protocol.SandboxWorkspace
	readOnly    = protocol.SandboxReadOnly
)

func TestSandboxes(t *testing.T) {
	t.Run("part11/7 a server writes to the workspace of the session and to its own files, and reads no secrets", func(t *testing.T) {
		l := settled(t)
		p := begin(t, l.pool(t, nil), config(t, map[string]manifest.Server{"x": guest("shell")}))
		script := fmt.Sprintf("cat %s/.ssh/key; cat file; echo w > %[2]s/made; echo w > %[3]s/made; echo w > /tmp/t && echo w > $XDG_CACHE_HOME/c && echo own $LASHD_SANDBOX", l.home, l.a, l.b)
		got := inside(t, p, inWorkspace, l.a, "sh", "cd "+l.a+"; "+script)
		if strings.Contains(got, "the-secret") || !strings.Contains(got, "of-a") || !strings.Contains(got, "own workspace") {
			t.Errorf("it prints %q", got)
		}
		if !exists(filepath.Join(l.a, "made")) || exists(filepath.Join(l.b, "made")) {
			t.Errorf("it wrote elsewhere, or not to its workspace: %q", got)
		}
		if got := inside(t, p, inWorkspace, l.a, "sh", "cat /tmp/t $XDG_CACHE_HOME/c"); got != "w\nw\n<nil>" {
			t.Errorf("later its own files have %q", got)
		}
		got = inside(t, p, inWorkspace, l.a, "sh", "mkdir -p "+l.a+"/new/.git; echo x > "+l.a+"/.envrc")
		if !strings.Contains(got, "While the command ran, files appeared that start programs outside of the sandbox: ") || !strings.Contains(got, ".envrc") {
			t.Errorf("part11/7 after a call that made a start-up file: %q", got)
		}
		if got := inside(t, p, readOnly, l.a, "sh", "cat "+l.a+"/file; echo w > "+l.a+"/other"); !strings.Contains(got, "of-a") || exists(filepath.Join(l.a, "other")) {
			t.Errorf("in the mode readOnly: %q", got)
		}
	})
	t.Run("part11/7 in the home directory a server writes nothing and reads no secrets", func(t *testing.T) {
		l := settled(t)
		p := begin(t, l.pool(t, nil), config(t, map[string]manifest.Server{"x": guest("shell")}))
		got := inside(t, p, inWorkspace, l.home, "sh", fmt.Sprintf("cat %s/.ssh/key; echo w > %[1]s/made; cat %[1]s/a/file", l.home))
		if strings.Contains(got, "the-secret") || exists(filepath.Join(l.home, "made")) || !strings.Contains(got, "of-a") {
			t.Errorf("it prints %q", got)
		}
	})
	t.Run("part11/7 a process never serves sessions with another mode or workspace", func(t *testing.T) {
		l := settled(t)
		pool := l.pool(t, nil)
		p := begin(t, pool, config(t, map[string]manifest.Server{"x": guest("shell")}))
		pids := map[string]string{}
		for _, s := range []struct {
			mode protocol.SandboxMode
			cwd  string
		}{{"", l.a}, {inWorkspace, l.a}, {inWorkspace, l.b}, {readOnly, l.a}, {readOnly, l.b}} {
			pid := mark(t, p, s.mode, s.cwd)
			if other, taken := pids[pid]; taken {
				t.Errorf("%s in %s has the process of %s", s.mode, s.cwd, other)
			}
			pids[pid] = string(s.mode) + " in " + s.cwd
			if again := mark(t, p, s.mode, s.cwd); again != pid {
				t.Errorf("%s in %s has two processes", s.mode, s.cwd)
			}
		}
		if one, other := mark(t, p, "", l.a), mark(t, p, protocol.SandboxFullAccess, l.b); one != other {
			t.Errorf("without a sandbox there are two processes, %s and %s", one, other)
		}
		second := begin(t, pool, config(t, map[string]manifest.Server{"x": guest("shell")}))
		if one, other := mark(t, p, inWorkspace, l.a), mark(t, second, inWorkspace, l.a); one != other {
			t.Errorf("two plugins with the same server have two processes in one sandbox")
		}
	})
	t.Run("part11/7 settings give a server a network and more directories, or take its sandbox away", func(t *testing.T) {
		l := settled(t)
		port := serving(t)
		probe := fmt.Sprintf("echo w > %s/more/made; cat %[1]s/.ssh/key; python3 -c 'import socket; print(socket.create_connection((\"127.0.0.1\",%s)).recv(9))'", l.home, port)
		for name, c := range map[string]struct {
			set                  manifest.ServerSandbox
			write, secret, reach bool
		}{
			"none":       {},
			"network":    {set: manifest.ServerSandbox{Network: true}, reach: true},
			"write":      {set: manifest.ServerSandbox{Write: []string{filepath.Join(l.home, "more")}}, write: true},
			"fullAccess": {set: manifest.ServerSandbox{Sandbox: manifest.ServerFullAccess}, write: true, secret: true, reach: true},
		} {
			for from, begins := range map[string]func() *mcp.Part{
				"the plugin": func() *mcp.Part {
					s := guest("shell")
					s.ServerSandbox = c.set
					return begin(t, l.pool(t, nil), config(t, map[string]manifest.Server{"x": s}))
				},
				"config.toml": func() *mcp.Part {
					return begin(t, l.pool(t, func(p *mcp.PoolConfig) { p.Settings = map[string]manifest.ServerSandbox{"x": c.set} }), config(t, map[string]manifest.Server{"x": guest("shell")}))
				},
			} {
				os.Remove(filepath.Join(l.home, "more", "made"))
				got := inside(t, begins(), inWorkspace, l.a, "sh", probe)
				if exists(filepath.Join(l.home, "more", "made")) != c.write || strings.Contains(got, "the-secret") != c.secret || strings.Contains(got, "reached") != c.reach {
					t.Errorf("%s in %s: %q", name, from, got)
				}
			}
		}
	})
	t.Run("part11/7 the user's configuration gives the server of a workspace nothing", func(t *testing.T) {
		l := settled(t)
		c := config(t, map[string]manifest.Server{"x": guest("shell")})
		c.Workspace = true
		p := begin(t, l.pool(t, func(p *mcp.PoolConfig) {
			p.Settings = map[string]manifest.ServerSandbox{"x": {Sandbox: manifest.ServerFullAccess}}
		}), c)
		if got := inside(t, p, inWorkspace, l.a, "sh", "cat "+l.home+"/.ssh/key"); strings.Contains(got, "the-secret") {
			t.Errorf("it reads %q", got)
		}
	})
	t.Run("part11/7 a setting opens no hidden directory", func(t *testing.T) {
		l := settled(t)
		s := guest("shell")
		s.Write = []string{l.home}
		p := begin(t, l.pool(t, nil), config(t, map[string]manifest.Server{"x": s}))
		if got := inside(t, p, inWorkspace, l.a, "sh", "cat "+l.home+"/.ssh/key"); strings.Contains(got, "the-secret") || !strings.Contains(got, "the setting write: "+l.home+" is in or above ") {
			t.Errorf("it says %q", got)
		}
	})
	t.Run("part11/7 a server ends when no session has used it for a while, and starts again", func(t *testing.T) {
		l := settled(t)
		pool := l.pool(t, func(c *mcp.PoolConfig) { c.Times.Idle = time.Second })
		p := begin(t, pool, config(t, map[string]manifest.Server{"x": guest("shell")}))
		before := len(processes(pools[pool]))
		first := mark(t, p, inWorkspace, l.a)
		wait.Until(t, "its end", func() bool { return len(processes(pools[pool])) == before })
		if again := mark(t, p, inWorkspace, l.a); again == first {
			t.Errorf("it is %s again", again)
		}
	})
	t.Run("part11/7 where sessions have a sandbox, a server lists its tools in one", func(t *testing.T) {
		l := settled(t)
		s := guest("shell", countVariable, filepath.Join(l.home, "count"))
		p := begin(t, l.pool(t, func(c *mcp.PoolConfig) { c.Default = inWorkspace }), config(t, map[string]manifest.Server{"x": s}))
		if len(p.Tools()) != len(goodNames)+1 {
			t.Fatalf("it lists %q", names(p))
		}
		if got := inside(t, p, readOnly, "", "sh", "cat "+l.home+"/.ssh/key; echo w > "+l.home+"/made"); strings.Contains(got, "the-secret") || exists(filepath.Join(l.home, "made")) {
			t.Errorf("it prints %q", got)
		}
	})
}

func TestListingInAWorkspace(t *testing.T) {
	l := settled(t)
	beside := t.TempDir()
	workspace := filepath.Join(beside, "ws")
	if !strings.HasPrefix(workspace, "/tmp/") {
		t.Fatalf("the workspace is %s, but only below /tmp a sandbox lacks it", workspace)
	}
	if err := os.Mkdir(workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{filepath.Join(workspace, "file"): "of-ws", filepath.Join(beside, "file"): "of-another"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	probe := fmt.Sprintf("pwd; cat file ../file %s/.ssh/key; echo w > made; echo w > %s/made; ls -A ..", l.home, l.a)
	server := guest("shell")
	server.Command, server.Args = "sh", []string{"-c", "(" + probe + ") >&2; exec " + copied(t, filepath.Join(l.home, "server"))}
	c := config(t, map[string]manifest.Server{"x": server})
	c.Workspace, c.Dir = true, workspace
	p := begin(t, l.pool(t, func(c *mcp.PoolConfig) { c.Default = inWorkspace }), c)
	if len(p.Tools()) != len(goodNames)+1 {
		t.Fatalf("part13/6 a server of a workspace below /tmp lists %q before a session uses it: %+v", names(p), p.Status())
	}
	if got := said(c); !strings.HasPrefix(got, "x: "+workspace+"\nx: of-ws") || !strings.HasSuffix(got, "\nx: ws") {
		t.Errorf("part13/6 while it lists its tools, it does not read its workspace, or has more beside it: %s", got)
	}
	if got := said(c); strings.Contains(got, "of-another") || strings.Contains(got, "the-secret") || exists(filepath.Join(workspace, "made")) || exists(filepath.Join(l.a, "made")) {
		t.Errorf("part13/6 while it lists its tools, it has more than a session that only reads: %s", got)
	}
	if got := inside(t, p, inWorkspace, workspace, "sh", "echo w > made"); got != "<nil>" || !exists(filepath.Join(workspace, "made")) {
		t.Errorf("part13/6 in a session that writes, it says %q", got)
	}
}

// The program npx of the tests downloads a server, which is the test binary.
const npx = `#!/bin/sh
python3 -c 'import socket; socket.create_connection(("127.0.0.1", int("%s")))' 2>/dev/null || {
	echo "npm error code ECONNREFUSED" >&2
	echo "npm error request to https://registry.npmjs.org/x failed, reason: connect ECONNREFUSED" >&2
	exit 1
}
exec %s
`

func TestRefusedStarts(t *testing.T) {
	t.Run("part11/7 a server that fails to start for lack of a network says so, with the setting to add", func(t *testing.T) {
		l := settled(t)
		bin := filepath.Join(l.home, "bin")
		program := filepath.Join(bin, "npx")
		if err := os.MkdirAll(bin, 0o700); err != nil {
			t.Fatal(err)
		}
		own := copied(t, filepath.Join(bin, "server"))
		if err := os.WriteFile(program, fmt.Appendf(nil, npx, serving(t), own), 0o700); err != nil {
			t.Fatal(err)
		}
		s := guest("shell")
		s.Command, s.Args = program, []string{"-y", "x"}
		c := config(t, map[string]manifest.Server{"x": s})
		p := begin(t, l.pool(t, func(c *mcp.PoolConfig) { c.Default = inWorkspace }), c)
		const want = "\nIt ran in a sandbox, where it has no network. If it needs more, add this to config.toml, and restart lashd:\n[mcp.x]\nnetwork = true"
		if got := p.Status()[0]; got.State != mcp.Failed && got.State != mcp.Quarantined && got.State != mcp.Starting || !strings.HasSuffix(got.LastError, want) || got.Sandbox != "that of the session" {
			t.Errorf("its status is %+v", got)
		}
		if !strings.Contains(said(c), "npm error code ECONNREFUSED") || !strings.Contains(said(c), "[mcp.x]") {
			t.Errorf("its log has %s", said(c))
		}
		_ = p.Shutdown(t.Context())
		with := begin(t, l.pool(t, func(c *mcp.PoolConfig) {
			c.Default, c.Settings = inWorkspace, map[string]manifest.ServerSandbox{"x": {Network: true}}
		}), config(t, map[string]manifest.Server{"x": s}))
		if got := inside(t, with, inWorkspace, l.a, "echo", "hi"); got != "you said hi" {
			t.Errorf("with a network it says %q", got)
		}
		if got := with.Status()[0].Sandbox; got != "that of the session, with network" {
			t.Errorf("its sandbox is %q", got)
		}
	})
	t.Run("part11/7 the server of a workspace names the setting in the plugin's file", func(t *testing.T) {
		l := settled(t)
		s := manifest.Server{Command: "sh", Args: []string{"-c", "echo EACCES >&2; exit 1"}}
		c := config(t, map[string]manifest.Server{"a.b": s})
		c.Workspace = true
		p := begin(t, l.pool(t, func(c *mcp.PoolConfig) { c.Default = inWorkspace }), c)
		const want = "add this to the server in the plugin's file, and trust the plugin again:\n\"sandbox\": \"fullAccess\""
		if got := p.Status()[0].LastError; !strings.HasSuffix(got, want) {
			t.Errorf("it says %q", got)
		}
	})
}

// mark returns what differs between processes of the server: its id, its start and its mounts.
func mark(t *testing.T, p *mcp.Part, mode protocol.SandboxMode, cwd string) string {
	t.Helper()
	return inside(t, p, mode, cwd, "sh", "echo $PPID; cut -d ' ' -f 22 /proc/$PPID/stat; readlink /proc/self/ns/mnt")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// serving returns the port of a server that says "reached".
func serving(t *testing.T) string {
	t.Helper()
	s, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	go func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "reached\n")
			c.Close()
		}
	}()
	return fmt.Sprint(s.Addr().(*net.TCPAddr).Port)
}

// copied copies the test binary.
func copied(t *testing.T, to string) string {
	t.Helper()
	data, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(to, data, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}
