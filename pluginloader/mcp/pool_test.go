//go:build unix

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
	"lashd/test/skip"
	"lashd/test/wait"
)

func TestPool(t *testing.T) {
	t.Run("runtime/K05 peers/71 200 sessions with the same five servers hold five processes", func(t *testing.T) {
		servers := map[string]manifest.Server{}
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			servers[name] = guest("good", "WHICH", name)
		}
		pool := pooled(t)
		p := begin(t, pool, config(t, servers))
		h, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{plugin.Builder("notes", p.Spec)})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 200 {
			id := protocol.SessionID(fmt.Sprintf("ses_%d", n))
			s, err := h.Open(t.Context(), standard.ID, nil, plugin.BuildContext{SessionID: id, Cwd: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if n%20 == 0 {
				if out, err := call(t.Context(), p, "mcp__c__echo", `{"text":"hi"}`, nil); err != nil || out.Text != "you said hi" {
					t.Fatalf("%+v %v", out, err)
				}
			}
		}
		if got := processes(pools[pool]); len(got) != 5 {
			t.Errorf("%d processes: %q", len(got), got)
		}
	})
	t.Run("runtime/K05 plugins with equal servers share them, and the last user ends them", func(t *testing.T) {
		pool := pooled(t)
		a := config(t, map[string]manifest.Server{"x": guest("good")})
		b := config(t, map[string]manifest.Server{"y": guest("good"), "z": guest("good", "MORE", "1")})
		b.Plugin = "other"
		first, second := begin(t, pool, a), begin(t, pool, b)
		if n := len(processes(pools[pool])); n != 2 {
			t.Fatalf("%d processes", n)
		}
		_ = first.Shutdown(t.Context())
		if out, err := call(t.Context(), second, "mcp__y__echo", `{"text":"hi"}`, nil); err != nil || out.Text != "you said hi" {
			t.Errorf("%+v %v", out, err)
		}
		_ = second.Shutdown(t.Context())
		if left := processes(pools[pool]); len(left) > 0 {
			t.Errorf("there are %q", left)
		}
	})
	t.Run("reliability/T6 only plugins with equal contents share a program", func(t *testing.T) {
		pool := pooled(t)
		root := t.TempDir()
		script := "#!/bin/sh\n" + roleVariable + "=good exec " + os.Args[0] + "\n"
		if err := os.WriteFile(filepath.Join(root, "server"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		for n, how := range []manifest.Server{{Command: "./server"}, {Command: "${PLUGIN_ROOT}/server"}, {Command: "sh", Args: []string{"server"}}} {
			c := config(t, map[string]manifest.Server{"x": how})
			c.Root = root
			before := begin(t, pool, c)
			c.Digest = "other"
			after := begin(t, pool, c)
			a, _ := call(t.Context(), before, "mcp__x__pid", `{"text":""}`, nil)
			b, _ := call(t.Context(), after, "mcp__x__pid", `{"text":""}`, nil)
			if a.Status != protocol.OutputSuccess || b.Status != protocol.OutputSuccess || a.Text == b.Text {
				t.Errorf("%d: %+v and %+v", n, a, b)
			}
			if got, _ := call(t.Context(), after, "mcp__x__env", `{"text":"PLUGIN_ROOT"}`, nil); got.Text != root+" in "+root {
				t.Errorf("%d: %q", n, got.Text)
			}
		}
	})
	t.Run("runtime/K05 a server with a known list starts with the first call", func(t *testing.T) {
		c := config(t, map[string]manifest.Server{"x": guest("good")})
		before := begin(t, pooled(t), c)
		kept, err := json.Marshal(before.Known())
		_ = before.Shutdown(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(kept, &c.Known); err != nil {
			t.Fatal(err)
		}
		pool := pooled(t)
		p := begin(t, pool, c)
		if got := p.Status()[0]; got.State != mcp.Idle || got.Tools != len(goodNames) || len(processes(pools[pool])) != 0 {
			t.Fatalf("%+v, %d processes", got, len(processes(pools[pool])))
		}
		if got := strings.Join(names(p), " "); got != strings.Join(goodNames, " ") {
			t.Errorf("tools %s", got)
		}
		if out, err := call(t.Context(), p, "mcp__x__echo", `{"text":"hi"}`, nil); err != nil || out.Text != "you said hi" {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("runtime/K05 a server gets only the variables that it names", func(t *testing.T) {
		s := guest("good", "MINE", "${OURS}/${PLUGIN_DATA}")
		s.PassEnv = []string{"OURS"}
		c := config(t, map[string]manifest.Server{"x": s})
		c.Data = "/data"
		p := begin(t, pooled(t, "OURS=value", "SECRET=x"), c)
		for name, want := range map[string]string{"MINE": "value//data", "OURS": "value", "SECRET": "", "PLUGIN_DATA": "/data"} {
			if out, _ := call(t.Context(), p, "mcp__x__env", `{"text":"`+name+`"}`, nil); out.Text != want+" in "+c.Root {
				t.Errorf("%s is %q, want %q", name, out.Text, want)
			}
		}
	})
	t.Run("runtime/K05 issue/4-7 a server runs within its plugin's sandbox and limits", func(t *testing.T) {
		skip.Unless(t, "LIMITS", proc.Confines().Limits, proc.Confines().String())
		c := config(t, map[string]manifest.Server{"x": guest("good")})
		pool := pooled(t)
		free, c2 := begin(t, pool, c), c
		c2.Confine = &child.Confinement{Limits: proc.Limits{OpenFiles: 100}}
		held := begin(t, pool, c2)
		if out, _ := call(t.Context(), held, "mcp__x__env", `{"text":"NOFILE"}`, nil); out.Text != "100" {
			t.Errorf("held to %q files", out.Text)
		}
		if out, _ := call(t.Context(), free, "mcp__x__env", `{"text":"NOFILE"}`, nil); out.Text == "100" {
			t.Error("who is held to nothing shares a server that is")
		}
	})
	t.Run("runtime/K05 lashd uses the newest protocol with a server that knows no other", func(t *testing.T) {
		if out, err := call(t.Context(), one(t, guest("modern")), "mcp__x__x", `{}`, nil); err != nil || out.Text != "modern times" {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("runtime/K05 issue/4-7 a change notice before the handshake does no harm", func(t *testing.T) {
		if out, err := call(t.Context(), one(t, guest("hasty")), "mcp__x__x", `{}`, nil); err != nil || out.Text != "here" {
			t.Errorf("%+v %v", out, err)
		}
	})
	t.Run("runtime/K05 many sessions call at once, and each gets its own answer", func(t *testing.T) {
		p := one(t, guest("good"))
		errs := make(chan error, 200)
		for n := range 200 {
			go func() {
				want := fmt.Sprint("you said ", n)
				out, err := call(t.Context(), p, "mcp__x__echo", fmt.Sprintf(`{"text":"%d"}`, n), nil)
				if err == nil && out.Text != want {
					err = fmt.Errorf("%q, want %q", out.Text, want)
				}
				errs <- err
			}()
		}
		for range 200 {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("issue/4-7 shutdown does not wait for a server that is starting", func(t *testing.T) {
		pool := pooled(t)
		p, err := pool.Part(config(t, map[string]manifest.Server{"x": guest("mute")}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			wait.Until(t, "the process", func() bool { return len(processes(pools[pool])) == 1 })
			cancel()
		}()
		p.Start(ctx)
		began := time.Now()
		_ = p.Shutdown(t.Context())
		if took, left := time.Since(began), processes(pools[pool]); took > bound || len(left) > 0 {
			t.Errorf("after %v there are %q", took, left)
		}
	})
}
