//go:build unix

package pluginloader_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// Each way in which a declared command can name a file of the workspace. WS is the workspace. The file is a script that prints
// what the tool says.
var namings = []struct{ what, file, more string }{
	{"an argument of sh", "prog", `{"command":["sh","WS/prog"]}`},
	{"a relative argument", "prog", `{"command":["sh","prog"]}`},
	{"a relative argument with dots", "prog", `{"command":["sh","./sub/../prog"]}`},
	{"an argument behind env", "prog", `{"command":["env","X=y","sh","WS/prog"]}`},
	{"a value of env", "prog", `{"command":["sh","-c",". \"$LIB\""],"env":{"LIB":"WS/prog"}}`},
	{"a line for sh", "prog", `{"command":["sh prog"],"shell":true}`},
	{"sh -c", "prog", `{"command":["sh","-c",". WS/prog"]}`},
	{"sh -c with quotes", "prog", `{"command":["sh","-c","sh 'WS/prog'"]}`},
	{"the original directory of the plugin", ".agents/plugins/x", `{"command":["sh",".agents/plugins/x"]}`},
	{"an option with a value", "prog", `{"command":["env","--split-string=sh WS/prog"]}`},
	{"a variable in code", "prog", `{"command":["sh","-c","X=WS/prog; . $X"]}`},
	{"a quoted variable before a path", "prog", `{"command":["sh \"$PWD\"/prog"],"shell":true}`},
	{"a quoted variable within a path", "a b/prog", `{"command":["sh \"$PWD/a b/prog\""],"shell":true}`},
	{"a quoted path within code", "a b/prog", `{"command":["sh -c 'sh \"$PWD/a b/prog\"'"],"shell":true}`},
	{"a path with a backslash", "a b/prog", `{"command":["sh a\\ b/prog"],"shell":true}`},
	{"a variable with a default", "prog", `{"command":["sh ${PWD:-.}/prog"],"shell":true}`},
	{"a program that a link leads to", "prog", `{"command":["WS/link"]}`},
	{"an argument that a link leads to", "prog", `{"command":["sh","WS/link"]}`},
}

func TestApprovalCoversNamedFiles(t *testing.T) {
	for _, c := range namings {
		t.Run("outside/4 "+c.what, func(t *testing.T) {
			cwd := must(filepath.EvalSymlinks(t.TempDir())).of(t)
			tool := strings.ReplaceAll(c.more, "WS", cwd)
			put(t, cwd, "plugin.json", `{"name":"guest","lashd":{"tools":[{"name":"say","description":"d",`+tool[1:]+`]}}`)
			file := filepath.Join(cwd, c.file)
			script := func(text string) {
				check(t, os.WriteFile(file+".new", []byte("#!/bin/sh\n"+text+"\n"), 0o755), os.Rename(file+".new", file))
			}
			check(t, os.MkdirAll(filepath.Dir(file), 0o755))
			script("printf one")
			check(t, os.Symlink("prog", filepath.Join(cwd, "link")), os.Mkdir(filepath.Join(cwd, "sub"), 0o755))
			w := newWorld(t).start()
			id := w.session(cwd)
			seen := must(w.Read(t.Context(), &protocol.PluginReadParams{Name: "guest", Cwd: cwd})).of(t)
			w.approve(cwd)
			if got := strings.TrimSpace(w.call(id, "say", `{}`)); got != "one" {
				t.Fatalf("approved, it says %q, %+v", got, seen.Reach)
			}
			script("printf two")
			if got := strings.TrimSpace(w.call(id, "say", `{}`)); got != "plugin_modified" {
				t.Errorf("changed, it says %q", got)
			}
			must(w.Reload(t.Context(), &protocol.PluginReloadParams{Cwd: cwd})).of(t)
			w.status(cwd, "guest", protocol.PluginModified)
			w.approve(cwd)
			if got := strings.TrimSpace(w.call(id, "say", `{}`)); got != "two" {
				t.Errorf("approved again, it says %q", got)
			}
		})
	}
	t.Run("outside/4 a file of a subdirectory does not take the place of an approved one", namedBelow)
	t.Run("outside/4 a file that appears after the approval", namedLater)
	t.Run("outside/4 approval shows what it covers and what it does not", toldUncovered)
	t.Run("outside/4 a process and an MCP server", namedByServers)
}

func namedBelow(t *testing.T) {
	w, cwd := newWorld(t).start(), must(filepath.EvalSymlinks(t.TempDir())).of(t)
	sub, empty := filepath.Join(cwd, "sub"), filepath.Join(cwd, "empty")
	put(t, cwd, "plugin.json", `{"name":"guest","lashd":{"tools":[{"name":"say","description":"d","command":["sh","-c","test ! -e prog || sh prog"]}]}}`)
	check(t, os.Mkdir(filepath.Join(cwd, ".git"), 0o755), os.Mkdir(sub, 0o755), os.Mkdir(empty, 0o755))
	check(t, os.WriteFile(filepath.Join(cwd, "prog"), []byte("echo approved"), 0o644), os.WriteFile(filepath.Join(sub, "prog"), []byte("echo other"), 0o644))
	id, below, without := w.session(cwd), w.session(sub), w.session(empty)
	w.approve(cwd)
	for session, want := range map[protocol.SessionID]string{id: "approved", below: "plugin_modified", without: ""} {
		if got := strings.TrimSpace(w.call(session, "say", `{}`)); got != want {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}

func namedLater(t *testing.T) {
	w, cwd := newWorld(t).start(), t.TempDir()
	put(t, cwd, "plugin.json", `{"name":"guest","lashd":{"tools":[{"name":"say","description":"d","command":["sh","-c","test ! -e later.sh || sh ./later.sh"]}]}}`)
	id := w.session(cwd)
	w.approve(cwd)
	if got := strings.TrimSpace(w.call(id, "say", `{}`)); got != "" {
		t.Errorf("approved, it says %q", got)
	}
	check(t, os.WriteFile(filepath.Join(cwd, "later.sh"), []byte("echo later"), 0o644))
	if got := strings.TrimSpace(w.call(id, "say", `{}`)); got != "plugin_modified" {
		t.Errorf("then it says %q", got)
	}
}

func toldUncovered(t *testing.T) {
	w, cwd := newWorld(t).start(), must(filepath.EvalSymlinks(t.TempDir())).of(t)
	put(t, cwd, "plugin.json", `{"name":"guest","lashd":{"tools":[`+
		`{"name":"a","description":"d","command":["python3","-m","pkg"]},`+
		`{"name":"b","description":"d","command":["sh","-c","cd lib && sh $NAME"]},`+
		`{"name":"c","description":"d","command":["make","check"]},`+
		`{"name":"d","description":"d","command":["sh","prog"]}]}}`)
	check(t, os.Mkdir(filepath.Join(cwd, "lib"), 0o755), os.WriteFile(filepath.Join(cwd, "prog"), nil, 0o644))
	w.session(cwd)
	reach := must(w.Read(t.Context(), &protocol.PluginReadParams{Name: "guest", Cwd: cwd})).of(t).Reach
	if !slices.ContainsFunc(reach.Files, func(f protocol.PluginFile) bool { return f.Path == filepath.Join(cwd, "prog") }) {
		t.Errorf("files: %+v", reach.Files)
	}
	for _, want := range []string{"python3 -m pkg", "sh -c", filepath.Join(cwd, "lib"), "make check", "sh prog"} {
		if !slices.ContainsFunc(reach.Uncovered, func(text string) bool { return strings.Contains(text, want) }) {
			t.Errorf("it does not list %q: %q", want, reach.Uncovered)
		}
	}
}

func namedByServers(t *testing.T) {
	cwd := must(filepath.EvalSymlinks(t.TempDir())).of(t)
	self := must(os.Executable()).of(t)
	prog := filepath.Join(cwd, "prog")
	env := `"env":{"` + guestVariable + `":"KIND","GORACE":"atexit_sleep_ms=0"}`
	put(t, cwd, "plugin.json", `{"name":"guest","lashd":{"process":{"command":["sh","`+prog+`"],`+strings.Replace(env, "KIND", "1", 1)+`},`+
		`"tools":[{"name":"pid","description":"p"}]}}`)
	put(t, cwd, ".mcp.json", `{"s":{"command":"sh","args":["`+prog+`"],`+strings.Replace(env, "KIND", "mcp", 1)+`}}`)
	script := func(text string) { check(t, os.WriteFile(prog, []byte(text), 0o755)) }
	script("exec " + self + "\n")
	w := newWorld(t).start()
	id := w.session(cwd)
	w.approve(cwd)
	for _, tool := range []string{"pid", "mcp__s__pid"} {
		pid := w.call(id, tool, `{}`)
		if strings.Contains(pid, "_") {
			t.Fatalf("%s says %q", tool, pid)
		}
		script("exec " + self + " # changed\n")
		kill(pid)
		for range 3 {
			if got := w.call(id, tool, `{}`); !w.refused(got, "plugin_modified") {
				t.Errorf("%s: with another program at the path the call returns %q", tool, got)
			}
		}
		script("exec " + self + "\n")
	}
}
