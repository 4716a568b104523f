//go:build linux

package process_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// greedy is a plugin that takes what it should not, at a method that may be empty.
func greedy(t *testing.T, at, what string, held child.Confinement) process.Config {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import os, sys; print(sys.executable, os.path.realpath(sys.base_prefix))").Output()
	skip.Unless(t, "PYTHON", err == nil, "there is no python3")
	c := config(t, "good", only(process.Hook{Name: process.BeforeTurn}, process.Hook{Name: process.Catalog}, process.Hook{Name: process.ProjectProse}))
	if c.DataDir, err = filepath.EvalSymlinks(c.DataDir); err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/greedy.py")
	if err == nil {
		err = os.WriteFile(filepath.Join(c.Dir, "greedy.py"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	where := strings.Fields(string(out))
	c.Argv = []string{where[0], "-S", filepath.Join(c.Dir, "greedy.py"), at, what}
	held.Root, held.Data = c.Dir, c.DataDir
	if held.Sandbox != nil {
		held.Sandbox.ReadPaths = append(held.Sandbox.ReadPaths, where[1])
	}
	c.Confine = &held
	return c
}

// does has the tool of a greedy plugin do something.
func does(t *testing.T, s *plugin.Session, what string, with ...string) string {
	t.Helper()
	args, err := json.Marshal(map[string]any{"do": what, "with": append([]string{}, with...)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Sources()[0].Provider.Execute(t.Context(), tool.Invocation{CallID: "c1", ToolID: "note", Name: "note", Args: args})
	if err != nil {
		t.Fatal(err)
	}
	if r.Output.Failure != nil {
		return r.Output.Failure.Code + ": " + r.Output.Failure.Message
	}
	return r.Output.Text
}

// TestCallsThatOnlyRead has a tool of a process that may change files called for work that may only read.
func TestCallsThatOnlyRead(t *testing.T) {
	skip.Unless(t, "LANDLOCK", proc.Confines().Sandbox >= 6, proc.Confines().String())
	file := filepath.Join(t.TempDir(), "file")
	c := greedy(t, "", "", child.Confinement{Sandbox: &child.Sandbox{WritePaths: []string{filepath.Dir(file)}}, Required: true})
	s := session(t, "ses_1", begin(t, c))
	args, err := json.Marshal(map[string]any{"do": "write", "with": []string{file}})
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[protocol.SandboxMode]string{protocol.SandboxWorkspace: "", protocol.SandboxReadOnly: "wider_sandbox"} {
		t.Run("part11/1 a call with the mode "+string(mode), func(t *testing.T) {
			os.Remove(file)
			r, err := s.Sources()[0].Provider.Execute(t.Context(), tool.Invocation{CallID: "c1", ToolID: "note", Name: "note", Args: args, Sandbox: mode})
			if err != nil {
				t.Fatal(err)
			}
			code := ""
			if r.Output.Failure != nil {
				code = r.Output.Failure.Code
			}
			if _, err := os.Stat(file); code != want || (err == nil) != (want == "") {
				t.Errorf("the call returned %+v, and the file exists: %v; want the code %q", r.Output, err == nil, want)
			}
		})
	}
}

func TestSandbox(t *testing.T) {
	skip.Unless(t, "LANDLOCK", proc.Confines().Sandbox >= 6, proc.Confines().String())
	state, mine := t.TempDir(), t.TempDir()
	secret, free := filepath.Join(state, "secret"), filepath.Join(mine, "file")
	if err := errors.Join(os.WriteFile(secret, []byte("the key"), 0o600), os.WriteFile(free, []byte("the text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	daemon, err := net.Listen("unix", filepath.Join(state, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer daemon.Close()
	web, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	_, port, _ := net.SplitHostPort(web.Addr().String())
	outside := session(t, "ses_1", begin(t, greedy(t, "", "", child.Confinement{Hidden: []string{state}})))
	sandbox := child.Sandbox{ReadPaths: []string{mine}}
	inside := greedy(t, "", "", child.Confinement{Hidden: []string{state}, Sandbox: &sandbox, Required: true})
	inside.ID = "inside"
	f := begin(t, inside)
	in := session(t, "ses_1", f)
	for _, c := range []struct {
		what, do, with, free, held string // free and held are the results without and with a sandbox
	}{
		{"files of lashd are not read", "read", secret, "the key", "refused: Permission denied"},
		{"files of lashd are not written", "write", filepath.Join(state, "trust"), "1", "refused: Permission denied"},
		{"files that are named are read", "read", free, "the text", "the text"},
		{"and not written", "write", free, "1", "refused: Permission denied"},
		{"what it keeps is written", "write", filepath.Join(inside.DataDir, "mine"), "1", "1"},
		{"its own files are read", "read", filepath.Join(inside.Dir, "greedy.py"), `"""A plugin`, `"""A plugin`},
		{"and not written", "write", filepath.Join(inside.Dir, "new.py"), "1", "refused: Permission denied"},
		{"the socket of lashd is out of reach", "local", daemon.Addr().String(), "connected", "refused: Permission denied"},
		{"no connection is opened", "tcp", port, "connected", "refused: Permission denied"},
		{"lashd is not signalled", "signals", fmt.Sprint(os.Getpid()), "may signal", "refused: "},
		{"the environment of lashd is not read", "read", fmt.Sprintf("/proc/%d/environ", os.Getpid()), "", "refused: "},
	} {
		t.Run("reliability/T10 "+c.what, func(t *testing.T) {
			if got := does(t, outside, c.do, c.with); !strings.HasPrefix(got, c.free) || strings.HasPrefix(got, "refused") {
				t.Errorf("without a sandbox: got %q, want %q", got, c.free)
			}
			got := strings.Replace(does(t, in, c.do, c.with), "Read-only file system", "Permission denied", 1) // the mount refuses before Landlock does
			if !strings.HasPrefix(got, c.held) {
				t.Errorf("in a sandbox: got %q, want %q", got, c.held)
			}
		})
	}
	t.Run("issue/4-7 a sandboxed plugin has its temporary files in its data directory", func(t *testing.T) {
		if got, want := does(t, in, "temp"), filepath.Join(inside.DataDir, "tmp")+"/"; !strings.HasPrefix(got, want) {
			t.Errorf("it uses %q, want it in %s", got, want)
		}
	})
	t.Run("issue/4-7 the sandbox is reported", func(t *testing.T) {
		if got, want := f.Sandbox(), fmt.Sprintf("landlock abi %d", proc.Confines().Sandbox); got != want {
			t.Errorf("it is %q, want %q", got, want)
		}
		unasked := config(t, "good", only())
		unasked.ID = "unasked"
		if got := begin(t, unasked).Sandbox(); !strings.HasPrefix(got, "none: ") {
			t.Errorf("without one it is %q", got)
		}
		var log bytes.Buffer
		inside.Log, inside.ID = slog.New(slog.NewTextHandler(&log, nil)), "told"
		f := begin(t, inside)
		for range 2 {
			if err := f.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(log.String(), `sandbox="landlock abi`); n != 1 {
			t.Errorf("it is logged %d times:\n%s", n, &log)
		}
	})
	t.Run("issue/4-7 a sandbox that does not apply is an error of the plugin", func(t *testing.T) {
		for want, s := range map[string]child.Sandbox{"serves all workspaces": {Workspace: true}, "lashd's own": {WritePaths: []string{state}}} {
			c := greedy(t, "", "", child.Confinement{Hidden: []string{state}, Sandbox: &s})
			if _, err := process.New(c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %q", s, err, want)
			}
		}
		c := greedy(t, "", "", child.Confinement{Sandbox: &child.Sandbox{Workspace: true}})
		c.Workspace, c.ID = mine, "workspace"
		if got := does(t, session(t, "ses_1", begin(t, c)), "read", free); got != "x" { // as the one without a sandbox has left it
			t.Errorf("of one workspace it reads %q there", got)
		}
	})
	t.Run("issue/4-7 a Go plugin works in a sandbox", func(t *testing.T) {
		c := config(t, "good", everything())
		c.Confine = &child.Confinement{Sandbox: &child.Sandbox{}, Root: c.Dir, Data: c.DataDir, Limits: proc.Limits{OpenFiles: 100, FileSize: 1 << 20}}
		contract(t, c)
	})
}

func TestSandboxWritesWorkspace(t *testing.T) {
	err := proc.Views()
	skip.Unless(t, "NAMESPACES", err == nil, "no namespaces")
	work, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(work, ".envrc"), []byte("mine"), 0o600), os.WriteFile(filepath.Join(work, "file"), nil, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	c := greedy(t, "", "", child.Confinement{Sandbox: &child.Sandbox{Workspace: true, Write: true}})
	c.Workspace = work
	s := session(t, "ses_1", begin(t, c))
	for _, call := range []struct{ what, file, want string }{
		{"writes the workspace", "file", "1"},
		{"cannot change a file that starts programs", ".envrc", "refused: Read-only file system"},
		{"tells of one that it makes", ".mcp.json", "1\n[While the command ran, files appeared that start programs outside of the sandbox: .mcp.json. "},
		{"tells of one that appeared after its start", ".bashrc", "1\n[While the command ran, files appeared that start programs outside of the sandbox: .bashrc (changed). "},
	} {
		t.Run("issue/20-1 a process plugin "+call.what, func(t *testing.T) {
			if call.file == ".bashrc" {
				if err := os.WriteFile(filepath.Join(work, call.file), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
				time.Sleep(30 * time.Millisecond) // longer than the precision of the times of files
			}
			if got := does(t, s, "write", filepath.Join(work, call.file)); !strings.HasPrefix(got, call.want) || call.want == "1" && got != "1" {
				t.Errorf("got %q, want %q", got, call.want)
			}
		})
	}
}

func TestGreed(t *testing.T) {
	limits := proc.Limits{Memory: 1 << 30, OpenFiles: 100, FileSize: 4 << 20, Processes: 20}
	for _, what := range []string{"memory", "files", "disk", "processes"} {
		for _, place := range places {
			t.Run("reliability/P14 3.4-26 takes "+what+" without end at "+place.name, func(t *testing.T) {
				c := greedy(t, place.method, what, child.Confinement{Limits: limits})
				c.Output = child.NewLog(c.Log)
				c.Deadlines.Hook, c.Deadlines.State, c.Deadlines.Stop = patience, patience, patience // so that it reaches its limit
				bad := begin(t, c)
				good := config(t, "good", process.Contributions{Hooks: []process.Hook{{Name: process.Checkpoint}}})
				good.ID = "bystander"
				s := session(t, "ses_1", bad, begin(t, good))
				bystands(t, s)
				began := time.Now()
				err := place.use(t, bad, s)
				if took := time.Since(began); took > patience {
					t.Errorf("it took %v", took)
				}
				if crashed := err != nil && strings.Contains(err.Error(), string(process.Crashed)); crashed == (place.name == "shutdown") {
					t.Errorf("got %v", err)
				}
				bystands(t, s)
				if err := bad.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				if left := pids(t, c.ID); len(left) > 0 {
					t.Errorf("processes %v are left", left)
				}
				said := fmt.Sprint(c.Output.Newest())
				want := map[string]string{"memory": "MemoryError", "files": "Too many open files", "disk": "File too large", "processes": "BlockingIOError"}[what]
				if !strings.Contains(said, want) {
					t.Errorf("its log has %.1000s, want %q", said, want)
				}
				if info, err := os.Stat(filepath.Join(c.DataDir, "fill")); what == "disk" && (err != nil || info.Size() > limits.FileSize) {
					t.Errorf("it has written %+v, %v", info, err)
				}
			})
		}
	}
}
