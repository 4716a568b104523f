//go:build unix

package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
	"lashd/test/skip"
	"lashd/test/wait"
)

// pids are the processes of a plugin.
func pids(t *testing.T, id string) (all []int) {
	t.Helper()
	_, err := os.Stat("/proc/self/environ")
	skip.Unless(t, "PROC", err == nil, "there is no /proc")
	for _, p := range marked(nonce, id) {
		all = append(all, p.PID)
	}
	return all
}

func TestSupervision(t *testing.T) {
	t.Run("issue/4-7 a plugin gets only the variables that it may have", func(t *testing.T) {
		c := config(t, "good", only())
		c.Environ = []string{"PATH=/bin", "LC_ALL=C", "API_KEY=secret", "WANTED=yes", "LASHD_CHILD=somebody"}
		c.Allow = []string{"WANTED"}
		s := session(t, "ses_1", begin(t, c))
		r, err := s.Sources()[0].Provider.Execute(t.Context(), tool.Invocation{CallID: "c1", ToolID: "note", Args: []byte(`{"host":"env"}`)})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for v := range strings.SplitSeq(r.Output.Text, "\n") {
			name, _, _ := strings.Cut(v, "=")
			names = append(names, name)
		}
		slices.Sort(names)
		want := []string{"CLAUDE_PLUGIN_ROOT", "GORACE", "LASHD_CHILD", "LC_ALL", "PATH", "PLUGIN_DATA", "PLUGIN_ROOT", "PYTHONDONTWRITEBYTECODE", roleVariable, "WANTED"}
		if slices.Sort(want); !slices.Equal(names, want) {
			t.Errorf("variables %q, want %q", names, want)
		}
	})
	t.Run("issue/4-7 an eager plugin starts at once and restarts after a crash", func(t *testing.T) {
		c := config(t, "good", only(process.Hook{Name: process.BeforeTurn}))
		c.Eager = true
		f := begin(t, c)
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := pids(t, "notes")
		if len(first) != 1 {
			t.Fatalf("processes %v", first)
		}
		if err := syscall.Kill(first[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "another process", func() bool {
			now := pids(t, "notes")
			return len(now) == 1 && now[0] != first[0]
		})
	})
	t.Run("reliability/P14 a plugin that crashes on every use is quarantined, and others are not", func(t *testing.T) {
		c := config(t, "hook/beforeTurn:exit", only(process.Hook{Name: process.BeforeTurn}))
		f := begin(t, c)
		s := session(t, "ses_1", f)
		for range 6 {
			_ = turnHook(t.Context(), s)
		}
		began := time.Now()
		err := turnHook(t.Context(), s)
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "plugin_quarantined") || took > bound {
			t.Errorf("after six crashes, within %v: %v", took, err)
		}
		f.Resume()
		if err := turnHook(t.Context(), s); err == nil || !strings.Contains(err.Error(), "plugin_crashed") {
			t.Errorf("after Resume: %v", err)
		}
	})
	t.Run("issue/4-7 a plugin's log has the reason why it ended or did not start", func(t *testing.T) {
		gone := config(t, "good", only())
		gone.Argv = []string{filepath.Join(gone.Dir, "gone")}
		for want, c := range map[string]process.Config{
			"the process ended: exit status 4": config(t, "hook/beforeTurn:exit", only(process.Hook{Name: process.BeforeTurn})),
			"nested deeper than 64":            config(t, "hook/beforeTurn:deep", only(process.Hook{Name: process.BeforeTurn})),
			"no such file":                     gone,
		} {
			var log bytes.Buffer
			c.ID = strings.ReplaceAll(want, " ", "-")
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
			c.Output = child.NewLog(c.Log)
			f := begin(t, c)
			s := session(t, "ses_1", f)
			if err := errors.Join(turnHook(t.Context(), s), f.Start(t.Context())); err == nil {
				t.Error("nothing fails")
			}
			lines := c.Output.Newest()
			if len(lines) == 0 || !strings.HasPrefix(lines[0].Text, "lashd: plugin_") || !strings.Contains(lines[0].Text, want) {
				t.Errorf("the log has %+v, want %q", lines, want)
			}
			if strings.Contains(log.String(), "plugin output") {
				t.Errorf("the plugin is taken to have said it:\n%s", &log)
			}
		}
	})
	t.Run("reliability/P14 3.4-25 a hanging plugin is restarted", func(t *testing.T) {
		c := config(t, "hook/beforeTurn:stop", only(process.Hook{Name: process.BeforeTurn, Timeout: time.Second}, process.Hook{Name: process.BeforeToolCall}))
		s := session(t, "ses_1", begin(t, c))
		if err := turnHook(t.Context(), s); err == nil || !strings.Contains(err.Error(), "plugin_timeout") {
			t.Errorf("while it hangs: %v", err)
		}
		if err := toolHook(t.Context(), s); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
	t.Run("reliability/P14 nothing is lost or stuck when the process is killed under load", func(t *testing.T) {
		f := begin(t, config(t, "good", everything()))
		var all sync.WaitGroup
		for n := range 20 {
			s := session(t, protocol.SessionID(fmt.Sprint("ses_", n)), f)
			all.Go(func() { load(t, s) })
		}
		for range 3 {
			time.Sleep(150 * time.Millisecond)
			for _, pid := range pids(t, "notes") {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have gone by itself
			}
		}
		all.Wait()
	})
	t.Run("issue/4-7 issue/4-4 ending one factory of a plugin leaves the next one's process alone", func(t *testing.T) {
		c := config(t, "good", only(process.Hook{Name: process.BeforeTurn})) // of one daemon
		before, err := process.New(c)
		if err != nil {
			t.Fatal(err)
		}
		after := begin(t, c)
		if err := errors.Join(before.Start(t.Context()), after.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
		both := pids(t, "notes")
		if err := before.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		left := pids(t, "notes")
		if err := turnHook(t.Context(), session(t, "ses_1", after)); len(both) != 2 || len(left) != 1 || err != nil || !slices.Equal(pids(t, "notes"), left) {
			t.Errorf("of the processes %v are left %v, then %v: %v", both, left, pids(t, "notes"), err)
		}
	})
	t.Run("issue/4-7 a plugin that was shut down stays shut down and says so", func(t *testing.T) {
		f := begin(t, config(t, "good", only(process.Hook{Name: process.BeforeTurn})))
		s := session(t, "ses_1", f)
		if err := errors.Join(turnHook(t.Context(), s), f.Shutdown(t.Context())); err != nil {
			t.Fatal(err)
		}
		if err := turnHook(t.Context(), s); err == nil || !strings.Contains(err.Error(), "plugin_stopped") {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// load uses a session for a while. Captured state must survive, whatever happens to the process.
func load(t *testing.T, s *plugin.Session) {
	var kept json.RawMessage
	for until := time.Now().Add(time.Second); time.Now().Before(until); {
		ctx, cancel := context.WithTimeout(t.Context(), bound)
		_, err := s.Command(ctx, "notes.add", &plugin.OperationCall{Args: json.RawMessage(`{"n":1}`)}, plugin.Target{Current: true})
		typed(t, err)
		snap, err := s.Capture(ctx)
		typed(t, err)
		if err == nil {
			kept = snap.Entries["notes"].Meta.State
		}
		typed(t, turnHook(ctx, s))
		cancel()
	}
	if _, err := s.Query(t.Context(), "notes.list", &plugin.OperationCall{}, plugin.Target{Current: true}); err != nil {
		t.Errorf("at the end: %v", err)
	}
	snap, err := s.Capture(t.Context())
	if now := snap.Entries["notes"].Meta.State; err != nil || len(now) < len(kept) {
		t.Errorf("at the end there is the state %.80s of %.80s: %v", now, kept, err)
	}
}

// typed fails unless an error says what the plugin did.
func typed(t *testing.T, err error) {
	t.Helper()
	if e, ok := errors.AsType[*process.Error](err); err != nil && (!ok || e.Code != process.Crashed) {
		t.Errorf("%v", err)
	}
}
