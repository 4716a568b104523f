package engine_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/engine"
	"lashd/engine/tool"
	"lashd/engine/undo"
	"lashd/persistence"
	"lashd/rpc/protocol"
	"lashd/test/tree"
)

// gated is a tool that changes files, says that it has, and goes on when it is let.
func gated(name string, work func()) (toolFunc, chan struct{}, chan struct{}) {
	at, on := make(chan struct{}), make(chan struct{})
	return toolFunc{name: name, run: func(ctx context.Context, _ tool.Invocation) (tool.Result, error) {
		work()
		at <- struct{}{}
		select {
		case <-on:
		case <-ctx.Done():
		}
		return tool.Result{Output: protocol.Succeed("done")}, nil
	}}, at, on
}

// beside is another session in the same directory.
func (d *daemon) beside(t testing.TB, dir string) protocol.SessionID {
	t.Helper()
	return must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: dir})).SessionID
}

func onlyFiles(id protocol.SessionID, turn protocol.TurnID) protocol.SessionRewindParams {
	return protocol.SessionRewindParams{SessionID: id, ToTurn: turn, Files: protocol.RewindOnly}
}

func TestFilePointsBesideOthers(t *testing.T) {
	t.Run("issue/6-2 nothing is restored while a turn or tools of another session run", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "a.txt", "old\n")
		work, at, on := gated("work", func() { write(t, dir, "a.txt", "new\n") })
		d := start(t, setup{model: callsWork(), tools: []tool.Provider{work}})
		first, second := d.beside(t, dir), d.beside(t, dir)
		turn := d.begin(t, first, "go")
		<-at
		on <- struct{}{}
		d.wait(t, turn.TurnID)
		other := d.begin(t, second, "go")
		<-at
		params := onlyFiles(first, turn.TurnID)
		if _, err := d.History.Rewind(t.Context(), &params); !errors.Is(err, undo.ErrInUse) {
			t.Errorf("beside another session: %v", err)
		}
		running := onlyFiles(second, other.TurnID)
		if _, err := d.History.Rewind(t.Context(), &running); !errors.As(err, new(*engine.TurnActiveError)) {
			t.Errorf("beside its own turn: %v", err)
		}
		on <- struct{}{}
		d.wait(t, other.TurnID)
		d.undo(t, params)
		if got := tree.Read(t, dir)["a.txt"]; !strings.HasSuffix(got, " old\n") {
			t.Errorf("a.txt is %q", got)
		}
	})
	t.Run("issue/6-2 changes that two sessions may share are undone only by force", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "a.txt", "old\n")
		n := 0
		work, at, on := gated("work", func() { n++; write(t, dir, fmt.Sprint(n), "new\n") })
		d := start(t, setup{model: callsWork(), tools: []tool.Provider{work}})
		first, second := d.beside(t, dir), d.beside(t, dir)
		one := d.begin(t, first, "go")
		<-at
		two := d.begin(t, second, "go")
		<-at
		on <- struct{}{}
		on <- struct{}{}
		d.wait(t, one.TurnID)
		d.wait(t, two.TurnID)
		params := onlyFiles(first, one.TurnID)
		_, err := d.History.Rewind(t.Context(), &params)
		refused, ok := errors.AsType[*undo.ConflictError](err)
		if !ok || refused.Files[0].Conflict != protocol.ConflictShared {
			t.Errorf("rewind: %v", err)
		}
	})
	t.Run("issue/6-2 changes of subagents are undone with the session's turn", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{},
			func(dir string) { write(t, dir, "a.txt", "parent\n") },
			func(dir string) { write(t, dir, "b.txt", "child\n") },
		)
		before := tree.Read(t, dir)
		turn := d.turn(t, id, "go")
		child := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
			Cwd: dir, Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: id},
		})).SessionID
		d.turn(t, child, "go")
		d.undo(t, onlyFiles(id, turn.TurnID))
		sameTree(t, dir, before)
	})
	t.Run("issue/6-2 changes in another directory are reported, and force leaves them alone", func(t *testing.T) {
		other := t.TempDir()
		d, id, dir := workspaceOf(t, setup{},
			func(dir string) { write(t, dir, "a.txt", "parent\n") },
			func(string) { write(t, other, "b.txt", "child\n") },
		)
		before := tree.Read(t, dir)
		turn := d.turn(t, id, "go")
		child := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{
			Cwd: other, Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: id},
		})).SessionID
		d.turn(t, child, "go")
		params := onlyFiles(id, turn.TurnID)
		_, err := d.History.Rewind(t.Context(), &params)
		if refused, ok := errors.AsType[*undo.UnrestorableError](err); !ok || !strings.Contains(refused.Reason, other) {
			t.Errorf("rewind: %v", err)
		}
		params.Force = true
		d.undo(t, params)
		sameTree(t, dir, before)
		if got := tree.Read(t, other)["b.txt"]; !strings.HasSuffix(got, " child\n") {
			t.Errorf("elsewhere b.txt is %q", got)
		}
	})
}

func TestFilePointsAcrossRestarts(t *testing.T) {
	t.Run("issue/6-2 after a restart the workspace is known, and changes made in between belong to no turn", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, func(dir string) { write(t, dir, "a.txt", "first\n") })
		first := d.turn(t, id, "go")
		write(t, dir, "c.txt", "a person's\n")
		d = d.restart(t, func(s *setup) {
			s.tools = []tool.Provider{works(dir, func(dir string) { write(t, dir, "b.txt", "second\n") })}
		})
		second := d.turn(t, id, "go")
		if p := d.points(t, id); len(p) != 2 || p[1].Files != 1 || p[1].TurnID != second.TurnID {
			t.Errorf("points %+v", p)
		}
		d.undo(t, onlyFiles(id, first.TurnID))
		now := tree.Read(t, dir)
		if !strings.HasSuffix(now["a.txt"], "three\n") || !strings.HasSuffix(now["b.txt"], "bee\n") || !strings.HasSuffix(now["c.txt"], "a person's\n") {
			t.Errorf("files %q", now)
		}
	})
	t.Run("issue/6-2 a repeated request runs once and gets the first answer", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, everything(t))
		turn := d.turn(t, id, "go")
		params := onlyFiles(id, turn.TurnID)
		params.IdempotencyKey = "k"
		first := d.undo(t, params)
		write(t, dir, "a.txt", "later\n")
		if again := d.undo(t, params); !again.Duplicate || again.Point != first.Point {
			t.Errorf("answer %+v, first %+v", again, first)
		}
		params.Force = true
		if _, err := d.History.Rewind(t.Context(), &params); !errors.Is(err, persistence.ErrReceiptConflict) {
			t.Errorf("another request with the key: %v", err)
		}
		if got := tree.Read(t, dir)["a.txt"]; !strings.HasSuffix(got, " later\n") {
			t.Errorf("a.txt is %q", got)
		}
	})
	t.Run("issue/6-2 files that stop being ignored do not count as new, so undo does not delete them", func(t *testing.T) {
		for what, change := range map[string]func(string){
			"changed": func(dir string) { write(t, dir, ".gitignore", "nothing\n") },
			"removed": func(dir string) { os.Remove(filepath.Join(dir, ".gitignore")) },
		} {
			d, id, dir := workspaceOf(t, setup{}, func(string) {}, change)
			write(t, dir, ".gitignore", "secret.env\n")
			write(t, dir, "secret.env", "precious\n")
			d.turn(t, id, "go")
			turn := d.turn(t, id, "go")
			params := onlyFiles(id, turn.TurnID)
			params.Force = true
			d.undo(t, params)
			now := tree.Read(t, dir)
			if !strings.HasSuffix(now["secret.env"], " precious\n") || !strings.HasSuffix(now[".gitignore"], " secret.env\n") {
				t.Errorf("%s: files %q", what, now)
			}
		}
	})
	t.Run("issue/6-2 a git-ignored file is undone if a tool announced the change", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, ".gitignore", "*.env\n")
		write(t, dir, "a.env", "old\n")
		before := tree.Read(t, dir)
		edit := toolFunc{name: "work", run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
			for _, name := range []string{"a.env", "new.env", "plain", "../outside"} {
				if err := call.Host.Touch(ctx, name); err != nil {
					t.Error(err)
				}
			}
			for _, name := range []string{"a.env", "new.env", "plain"} {
				write(t, dir, name, "new\n")
			}
			return tool.Result{Output: protocol.Succeed("done")}, nil
		}}
		d := start(t, setup{model: callsWork(), tools: []tool.Provider{edit}})
		id := d.beside(t, dir)
		turn := d.turn(t, id, "go")
		after := tree.Read(t, dir)
		done := d.undo(t, onlyFiles(id, turn.TurnID))
		sameTree(t, dir, before)
		d.undo(t, protocol.SessionRewindParams{SessionID: id, ToPoint: done.Point, Files: protocol.RewindOnly})
		sameTree(t, dir, after)
	})
	t.Run("issue/6-2 files newly ignored during a turn are kept", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, func(dir string) {
			write(t, dir, ".gitignore", "b.txt\n")
			write(t, dir, "a.txt", "new\n")
		})
		before := tree.Read(t, dir)
		turn := d.turn(t, id, "go")
		d.undo(t, onlyFiles(id, turn.TurnID))
		sameTree(t, dir, before)
	})
}

func TestFileBudget(t *testing.T) {
	t.Run("issue/6-2 copies stay within the budget: the oldest points are pruned and marked", func(t *testing.T) {
		const budget = 256 << 10
		noise := make([]byte, 16<<10)
		var steps []func(string)
		for range 40 {
			steps = append(steps, func(dir string) {
				rand.Read(noise) // what cannot be compressed
				write(t, dir, "a.txt", string(noise))
			})
		}
		d, id, _ := workspaceOf(t, setup{config: func(c *engine.Config) { c.FileLimits.Budget = budget }}, steps...)
		var turns []protocol.TurnID
		for range steps {
			turns = append(turns, d.turn(t, id, "go").TurnID)
		}
		d = d.restart(t, nil) // which tidies up
		deadline := time.Now().Add(20 * time.Second)
		for size(t, filepath.Join(d.store.Dir(), "files")) > budget*2 || d.points(t, id)[0].Unrestorable == "" {
			if time.Now().After(deadline) {
				t.Fatalf("there are %d bytes of copies, points %+v", size(t, filepath.Join(d.store.Dir(), "files")), d.points(t, id)[0])
			}
			time.Sleep(10 * time.Millisecond)
		}
		oldest := onlyFiles(id, turns[0])
		if _, err := d.History.Rewind(t.Context(), &oldest); !errors.As(err, new(*undo.UnrestorableError)) {
			t.Errorf("to before the oldest turn: %v", err)
		}
		d.undo(t, onlyFiles(id, turns[len(turns)-1]))
	})
	t.Run("issue/6-2 deleting a session deletes its copies", func(t *testing.T) {
		d, id, _ := workspaceOf(t, setup{}, everything(t))
		d.turn(t, id, "go")
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		d = d.restart(t, nil)
		deadline := time.Now().Add(20 * time.Second)
		for size(t, filepath.Join(d.store.Dir(), "files")) > 0 {
			if time.Now().After(deadline) {
				t.Fatal("copies are left")
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// size is how many bytes the files of a directory have.
func size(t testing.TB, dir string) (sum int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if fi, err := e.Info(); err == nil {
			sum += fi.Size()
		}
	}
	return sum
}

func TestTidyBesideATurn(t *testing.T) {
	t.Run("issue/6-2 a cleanup keeps the workspace index of a running turn", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, "a.txt", "old\n")
		n := 0
		work, at, on := gated("work", func() {
			if n++; n == 2 {
				write(t, dir, "a.txt", "new\n")
			}
		})
		d := start(t, setup{model: replies(calls("work"), calls("work")), tools: []tool.Provider{work}})
		id := d.beside(t, dir)
		turn := d.begin(t, id, "go")
		<-at
		d.Files.Tidy(t.Context())
		on <- struct{}{}
		<-at
		d.Files.Tidy(t.Context())
		on <- struct{}{}
		d.wait(t, turn.TurnID)
		d.undo(t, onlyFiles(id, turn.TurnID))
		if got := tree.Read(t, dir)["a.txt"]; !strings.HasSuffix(got, " old\n") {
			t.Errorf("a.txt is %q", got)
		}
	})
}
