//go:build unix

package mcp_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// within is a pool whose servers have to shake hands in time.
func within(t *testing.T, connect time.Duration) *mcp.Pool {
	return pooledWith(t, mcp.Times{Connect: connect, Stop: 300 * time.Millisecond, Terminate: 200 * time.Millisecond})
}

func TestMisbehaviour(t *testing.T) {
	for role, want := range map[string]string{
		"mute":    "it did not answer in time",
		"exits":   "the program ended: exit status 7",
		"silent":  "closed its stdout",
		"garbage": "which is not a JSON-RPC message",
		"babbles": "wrote lines to stdout that are no messages",
		"huge":    "sent a message larger than 8388608 bytes",
		"wrong":   "tools/list",
	} {
		t.Run("runtime/K05 issue/4-7 a server without a handshake is reported in time, and others keep working: "+role, func(t *testing.T) {
			began, connect := time.Now(), patience
			if role == "mute" {
				connect = 5 * time.Second
			}
			p := begin(t, within(t, connect), config(t, map[string]manifest.Server{"bad": guest(role), "good": guest("good")}))
			if took := time.Since(began); took > bound {
				t.Errorf("it took %v", took)
			}
			all := p.Status()
			if all[0].State == mcp.Ready || !strings.Contains(all[0].LastError, want) {
				t.Errorf("bad is %+v, want %q", all[0], want)
			}
			if out, err := call(t.Context(), p, "mcp__good__echo", `{"text":"hi"}`, nil); err != nil || out.Text != "you said hi" {
				t.Errorf("good says %+v %v", out, err)
			}
		})
	}
	t.Run("runtime/K05 issue/4-7 a server that floods lashd fails only its own calls", func(t *testing.T) {
		p := begin(t, within(t, patience), config(t, map[string]manifest.Server{"bad": guest("floods"), "good": guest("good")}))
		wait.Until(t, "the end of the flood", func() bool { return strings.Contains(p.Status()[0].LastError, "too many notifications") })
		if out, err := call(t.Context(), p, "mcp__good__echo", `{"text":"hi"}`, nil); err != nil || out.Text != "you said hi" {
			t.Errorf("good says %+v %v", out, err)
		}
	})
	t.Run("runtime/K05 issue/4-7 lines on stdout that are no messages go to the log", func(t *testing.T) {
		c := config(t, map[string]manifest.Server{"x": guest("noisy")})
		p := begin(t, pooled(t), c)
		if out, err := call(t.Context(), p, "mcp__x__echo", `{"text":"hi"}`, nil); err != nil || out.Text != "you said hi" {
			t.Fatalf("%+v %v", out, err)
		}
		for _, want := range []string{"Welcome to the server!", "[1, 2, 3]", `{"level":"info","msg":"listening"}`, "it is warm in here"} {
			if !strings.Contains(said(c), want) {
				t.Errorf("%q is not in the log: %s", want, said(c))
			}
		}
	})
	t.Run("runtime/K05 issue/4-7 a crash of the server fails the call without repeating it, and the next call restarts it", func(t *testing.T) {
		count := filepath.Join(t.TempDir(), "calls")
		p := one(t, guest("good", countVariable, count))
		out, err := call(t.Context(), p, "mcp__x__dies", `{"text":""}`, nil)
		if err != nil || code(out) != "plugin_crashed" || !strings.Contains(out.Text, "the program ended: exit status 3") {
			t.Fatalf("%+v %v", out, err)
		}
		if out, err = call(t.Context(), p, "mcp__x__echo", `{"text":"hi"}`, nil); err != nil || out.Text != "you said hi" {
			t.Errorf("afterwards %+v %v", out, err)
		}
		if got := counted(count); got != "dies\necho\n" {
			t.Errorf("calls made: %q", got)
		}
	})
	t.Run("runtime/K05 issue/4-7 a server that crashes five times within a minute does not start until Resume", func(t *testing.T) {
		p := one(t, guest("good"))
		for range 5 {
			_, _ = call(t.Context(), p, "mcp__x__dies", `{"text":""}`, nil)
		}
		out, err := call(t.Context(), p, "mcp__x__echo", `{"text":"hi"}`, nil)
		if err != nil || code(out) != "plugin_quarantined" || p.Status()[0].State != mcp.Quarantined {
			t.Fatalf("%+v %v, %+v", out, err, p.Status())
		}
		p.Resume(t.Context())
		if out, err = call(t.Context(), p, "mcp__x__echo", `{"text":"hi"}`, nil); err != nil || out.Text != "you said hi" {
			t.Errorf("afterwards %+v %v", out, err)
		}
	})
	t.Run("runtime/K05 issue/4-7 a server that answers nothing at all is ended", func(t *testing.T) {
		if testing.Short() {
			return
		}
		s := guest("hangs")
		s.TimeoutMs = 100
		p := one(t, s)
		if out, err := call(t.Context(), p, "mcp__x__x", `{}`, nil); err != nil || code(out) != "plugin_timeout" {
			t.Fatalf("%+v %v", out, err)
		}
		wait.Until(t, "the end", func() bool { return strings.Contains(p.Status()[0].LastError, "no longer answers") })
	})
	t.Run("runtime/K05 issue/4-7 a server that ignores the end of stdin and SIGTERM is killed", func(t *testing.T) {
		pool := pooled(t)
		p := begin(t, pool, config(t, map[string]manifest.Server{"x": guest("stays")}))
		if n := len(processes(pools[pool])); n != 1 {
			t.Fatalf("%d processes", n)
		}
		began := time.Now()
		if err := p.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if took, left := time.Since(began), processes(pools[pool]); took > bound || len(left) > 0 {
			t.Errorf("after %v there are %q", took, left)
		}
	})
	t.Run("runtime/K05 issue/4-7 processes that a server leaves behind, or that hold its pipes, are killed", func(t *testing.T) {
		pool := pooled(t)
		p := begin(t, pool, config(t, map[string]manifest.Server{"x": guest("forks")}))
		wait.Until(t, "its end", func() bool { return strings.Contains(p.Status()[0].LastError, "the program ended") })
		wait.Until(t, "the end of its child", func() bool { return len(processes(pools[pool])) == 0 })
	})
	t.Run("runtime/K05 issue/4-7 a killed server is restarted", func(t *testing.T) {
		p := one(t, guest("good"))
		first, _ := call(t.Context(), p, "mcp__x__pid", `{"text":""}`, nil)
		kill(t, first)
		wait.Until(t, "its end", func() bool { return p.Status()[0].State == mcp.Failed })
		second, err := call(t.Context(), p, "mcp__x__pid", `{"text":""}`, nil)
		if err != nil || second.Status != protocol.OutputSuccess || second.Text == first.Text {
			t.Errorf("%+v, then %+v %v", first, second, err)
		}
	})
	t.Run("runtime/K05 issue/4-7 a server that does not start is retried, and its tools appear", func(t *testing.T) {
		c := config(t, map[string]manifest.Server{"x": {Command: "./server"}})
		told := make(chan struct{}, 8)
		c.Changed = func(context.Context) { told <- struct{}{} }
		p := begin(t, pooled(t), c)
		if got := p.Status()[0]; got.State == mcp.Ready || !strings.Contains(got.LastError, "no such file") || len(p.Tools()) != 0 {
			t.Fatalf("%+v", got)
		}
		if err := os.WriteFile(filepath.Join(c.Root, "server"), []byte("#!/bin/sh\n"+roleVariable+"=good exec "+os.Args[0]+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		soon(t, told)
		wait.Until(t, "it is ready", func() bool { return p.Status()[0].State == mcp.Ready })
		if len(p.Tools()) == 0 {
			t.Errorf("%+v", p.Status())
		}
	})
}

func kill(t *testing.T, out protocol.ToolOutput) {
	t.Helper()
	var pid int
	for _, c := range out.Text {
		pid = pid*10 + int(c-'0')
	}
	if pid < 2 || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Fatalf("no process %q", out.Text)
	}
}
