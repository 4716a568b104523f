package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"lashd/engine"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

func TestNoSpace(t *testing.T) {
	t.Run("reliability/P17 a turn without space to store waits and continues by itself; no new work starts until then", func(t *testing.T) {
		dir := smallDisk(t)
		ran := 0
		g := newGate("work")
		count := toolFunc{name: "count", run: func(context.Context, tool.Invocation) (tool.Result, error) {
			ran++
			return tool.Result{Output: protocol.Succeed("counted")}, nil
		}}
		d := start(t, setup{dir: dir, model: replies(calls("work"), calls("count"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g, count}})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		idle := d.session(t)
		filler := d.fillDisk(t, id)
		close(g.open)
		for _, session := range []protocol.SessionID{id, idle} {
			if _, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: session, Input: text("more")}); !errors.Is(err, persistence.ErrFull) {
				t.Errorf("a turn was begun on a full disk: %v", err)
			}
		}
		if report := must[*protocol.TurnReport](t)(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: turn, TimeoutMs: 500})); report.State != protocol.TurnRunning || ran != 0 {
			t.Errorf("on a full disk the turn is %s, and the second tool ran %d times", report.State, ran)
		}
		ok(t, os.Remove(filler))
		report := d.wait(t, turn)
		if report.State != protocol.TurnCompleted || ran != 1 || len(report.ToolCalls) != 2 {
			t.Errorf("state %s, the tool ran %d times, %d calls", report.State, ran, len(report.ToolCalls))
		}
		o := d.observe(t, id, 0)
		o.over(turn)
		o.gapless(0)
	})
	t.Run("outside/29 a question whose deadline cannot be stored expires once there is space; lashd tries every second", func(t *testing.T) {
		log := lateLog{slog.DiscardHandler, make(chan time.Time, 1000)}
		d := start(t, setup{
			dir: smallDisk(t), model: replies(calls("run"), scripted.Reply{Text: "done"}), tools: []tool.Provider{says("run", "ran")},
			config: func(c *engine.Config) {
				c.Log, c.Defaults.Approval = slog.New(log), protocol.ApprovalConfig{Mode: protocol.ApproveAsk, DeadlineMs: 2000}
			},
		})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		d.observe(t, id, 0).typed(protocol.EventDecisionOpened)
		filler := d.fillDisk(t, id)
		var failed [3]time.Time
		for i := range failed {
			select {
			case failed[i] = <-log.late:
			case <-time.After(30 * time.Second):
				t.Fatalf("the deadline was tried %d times, want %d", i, len(failed))
			}
		}
		if took := failed[2].Sub(failed[0]); took < 1900*time.Millisecond {
			t.Errorf("the deadline was tried again twice within %v, want 2 s", took)
		}
		ok(t, os.Remove(filler))
		if got := cameTo(t, d.wait(t, turn)); got != "denied" {
			t.Errorf("after the deadline the call came to %q", got)
		}
	})
}

// lateLog receives a value when a deadline could not be stored.
type lateLog struct {
	slog.Handler
	late chan time.Time
}

func (lateLog) Enabled(context.Context, slog.Level) bool { return true }

func (l lateLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "could not store the default answer of an overdue decision; retrying" {
		l.late <- time.Now()
	}
	return nil
}

func (l lateLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// smallDisk returns a directory on a small file system.
func smallDisk(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=40m")
	skip.Unless(t, "MOUNT", err == nil, fmt.Sprint("no small file system can be mounted: ", err))
	t.Cleanup(func() { ok(t, syscall.Unmount(dir, 0)) })
	return dir
}

// fillDisk fills the store's disk with a file, including the space that the store reserves.
func (d *daemon) fillDisk(t *testing.T, id protocol.SessionID) (filler string) {
	t.Helper()
	fill(t, d.store.Dir())
	for d.store.Space() == nil { // until the store notices, which takes a commit that needs space
		_, err := d.Sessions.SetTitle(t.Context(), &protocol.SessionSetTitleParams{SessionID: id, Title: string(make([]byte, 1000))})
		if err != nil && !errors.Is(err, persistence.ErrFull) {
			t.Fatal(err)
		}
	}
	return fill(t, d.store.Dir())
}

// fill writes to a file system until it is full.
func fill(t *testing.T, dir string) (filler string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size >= 512; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return f.Name()
}
