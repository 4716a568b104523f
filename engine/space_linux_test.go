package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

func TestNoSpace(t *testing.T) {
	dir := t.TempDir()
	err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=40m")
	skip.Unless(t, "MOUNT", err == nil, fmt.Sprint("no small file system can be mounted: ", err))
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	t.Run("reliability/P17 a turn that finds no space waits and goes on by itself; nothing new is begun meanwhile", func(t *testing.T) {
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
		filler := fill(t, dir)
		for d.store.Space() == nil { // until the store has noticed, which takes a commit that needs space
			_, err := d.SetTitle(t.Context(), &protocol.SessionSetTitleParams{SessionID: id, Title: string(make([]byte, 1000))})
			if err != nil && !errors.Is(err, persistence.ErrFull) {
				t.Fatal(err)
			}
		}
		fill(t, dir) // what the store had kept back for this
		close(g.open)
		for _, session := range []protocol.SessionID{id, idle} {
			if _, err := d.StartTurn(t.Context(), &protocol.TurnStartParams{SessionID: session, Input: text("more")}); !errors.Is(err, persistence.ErrFull) {
				t.Errorf("a turn was begun on a full disk: %v", err)
			}
		}
		if report := must[*protocol.TurnReport](t)(d.WaitTurn(t.Context(), &protocol.TurnWaitParams{TurnID: turn, TimeoutMs: 500})); report.State != protocol.TurnRunning || ran != 0 {
			t.Errorf("on a full disk the turn is %s, and the second tool ran %d times", report.State, ran)
		}
		if err := os.RemoveAll(filler); err != nil {
			t.Fatal(err)
		}
		report := d.wait(t, turn)
		if report.State != protocol.TurnCompleted || ran != 1 || len(report.ToolCalls) != 2 {
			t.Errorf("state %s, the tool ran %d times, %d calls", report.State, ran, len(report.ToolCalls))
		}
		o := d.observe(t, id, 0)
		o.over(turn)
		o.gapless(0)
	})
}

// fill uses up a file system.
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
