//go:build unix

package mcp_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
)

// pidOf returns what the tool pid of a server prints.
func pidOf(t *testing.T, p *mcp.Part, server string) string {
	t.Helper()
	out, err := call(t.Context(), p, "mcp__"+server+"__pid", `{"text":"x"}`, nil)
	if err != nil || out.Failure != nil {
		t.Fatalf("%+v %v", out, err)
	}
	return out.Text
}

func TestRestart(t *testing.T) {
	t.Run("38 restarts one server of a plugin and leaves the others alone", func(t *testing.T) {
		p := begin(t, pooled(t), config(t, map[string]manifest.Server{"x": guest("good"), "y": guest("good", "OTHER", "1")}))
		x, y := pidOf(t, p, "x"), pidOf(t, p, "y")
		got, err := p.Restart(t.Context(), "x")
		if err != nil || got.State != mcp.Ready || got.Name != "x" {
			t.Errorf("after the restart: %+v %v", got, err)
		}
		if again := pidOf(t, p, "x"); again == x {
			t.Errorf("the same process %s runs", again)
		}
		if again := pidOf(t, p, "y"); again != y {
			t.Errorf("the other server has process %s, before it had %s", again, y)
		}
		if _, err := p.Restart(t.Context(), "z"); !errors.Is(err, mcp.ErrNoServer) {
			t.Errorf("a server that does not exist: %v", err)
		}
	})
	t.Run("38 a server that is not started yet starts", func(t *testing.T) {
		c := config(t, map[string]manifest.Server{"x": guest("good")})
		c.Known = begin(t, pooled(t), c).Known()
		p := begin(t, pooled(t), c)
		if got := p.Status()[0]; got.State != mcp.Idle {
			t.Fatalf("before: %+v", got)
		}
		if got, err := p.Restart(t.Context(), "x"); err != nil || got.State != mcp.Ready {
			t.Errorf("after the restart: %+v %v", got, err)
		}
	})
	t.Run("38 a failed start is a state with its error, and a later restart ends it", func(t *testing.T) {
		program := filepath.Join(t.TempDir(), "server")
		write := func(script string) {
			if err := os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		write("exit 3")
		server := guest("good")
		server.Command = program
		c := config(t, map[string]manifest.Server{"x": server})
		c.Known = map[string]mcp.List{"x": {}}
		p := begin(t, pooled(t), c)
		if got, err := p.Restart(t.Context(), "x"); err != nil || got.State != mcp.Failed || !strings.Contains(got.LastError, "exit status 3") {
			t.Errorf("of a program that exits: %+v %v", got, err)
		}
		write("exec " + os.Args[0])
		if got, err := p.Restart(t.Context(), "x"); err != nil || got.State != mcp.Ready || got.LastError != "" {
			t.Errorf("of a program that works now: %+v %v", got, err)
		}
	})
}

func TestLogNamesServers(t *testing.T) {
	c := config(t, map[string]manifest.Server{"x": guest("good"), "y": guest("good", "OTHER", "1")})
	for name, server := range c.Servers {
		script := "(printf 'half of '; printf '" + name + "\\nlast') >&2; exec " + os.Args[0]
		server.Command, server.Args = "sh", []string{"-c", script}
		c.Servers[name] = server
	}
	p := begin(t, pooled(t), c)
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(said(c), "\n")
	for _, want := range []string{"x: half of x", "y: half of y", "x: last", "y: last"} {
		found := 0
		for _, line := range lines {
			if line == want {
				found++
			}
		}
		if found != 1 {
			t.Errorf("37 the line %q is in the log %d times: %q", want, found, lines)
		}
	}
}
