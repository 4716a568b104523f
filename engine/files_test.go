package engine_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/engine/undo"
	"lashd/rpc/protocol"
	"lashd/test/tree"
)

// worker is a tool that does what a test wants to the files of a workspace, call by call.
type worker struct {
	toolFunc
	steps []func(dir string)
}

func works(dir string, steps ...func(dir string)) *worker {
	w := &worker{steps: steps}
	w.toolFunc = toolFunc{name: "work", run: func(context.Context, tool.Invocation) (tool.Result, error) {
		step := w.steps[0]
		w.steps = w.steps[1:]
		step(dir)
		return tool.Result{Output: protocol.Succeed("done")}, nil
	}}
	return w
}

func write(t testing.TB, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Error(err)
	}
}

func sameTree(t testing.TB, dir string, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, tree.Read(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// workspace is a session in a directory with some files, with a model that calls work once in each turn.
func workspaceOf(t *testing.T, s setup, steps ...func(dir string)) (*daemon, protocol.SessionID, string) {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "a.txt", "one\ntwo\nthree\n")
	write(t, dir, "b.txt", "bee\n")
	write(t, dir, "sub/c.txt", "sea\n")
	s.model, s.tools = callsWork(), []tool.Provider{works(dir, steps...)}
	d := start(t, s)
	res := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: dir}))
	return d, res.SessionID, dir
}

func (d *daemon) undo(t testing.TB, p protocol.SessionRewindParams) *protocol.SessionRewindResult {
	t.Helper()
	return must[*protocol.SessionRewindResult](t)(d.History.Rewind(t.Context(), &p))
}

func (d *daemon) points(t testing.TB, id protocol.SessionID) []protocol.FilePoint {
	t.Helper()
	return must[*protocol.SessionPointsResult](t)(d.Files.Points(t.Context(), &protocol.SessionParams{SessionID: id})).Data
}

// everything changes files in all ways that there are.
func everything(t testing.TB) func(string) {
	return func(dir string) {
		write(t, dir, "a.txt", "one\n2\nthree\nfour\n")
		write(t, dir, "new/d.txt", "dee\n")
		err := errors.Join(
			os.Remove(filepath.Join(dir, "b.txt")),
			os.Chmod(filepath.Join(dir, "sub/c.txt"), 0o600),
			os.Symlink("a.txt", filepath.Join(dir, "link")),
		)
		if err != nil {
			t.Error(err)
		}
	}
}

func TestFilePoints(t *testing.T) {
	t.Run("issue/6-2 a tool's file changes can be undone and redone", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, everything(t))
		before := tree.Read(t, dir)
		turn := d.turn(t, id, "go")
		after := tree.Read(t, dir)
		points := d.points(t, id)
		if len(points) != 1 || points[0].Files != 5 || points[0].Directories != 1 || points[0].TurnID != turn.TurnID || points[0].State != protocol.PointClosed {
			t.Fatalf("points %+v", points)
		}
		head := d.undo(t, protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly, DryRun: true})
		want := map[string]protocol.FileRewind{
			"a.txt":     {Path: "a.txt", Effect: protocol.FileModified, Kind: protocol.FileRegular, Added: 1, Removed: 2},
			"b.txt":     {Path: "b.txt", Effect: protocol.FileCreated, Kind: protocol.FileRegular, Added: 1},
			"link":      {Path: "link", Effect: protocol.FileDeleted, Kind: protocol.FileLink},
			"new":       {Path: "new", Effect: protocol.FileDeleted, Kind: protocol.FileDirectory},
			"new/d.txt": {Path: "new/d.txt", Effect: protocol.FileDeleted, Kind: protocol.FileRegular, Removed: 1},
			"sub/c.txt": {Path: "sub/c.txt", Effect: protocol.FileModified, Kind: protocol.FileRegular},
		}
		got := map[string]protocol.FileRewind{}
		for _, f := range head.Files {
			got[f.Path] = f
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a dry run (-want +got):\n%s", diff)
		}
		sameTree(t, dir, after)
		done := d.undo(t, protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly})
		sameTree(t, dir, before)
		if points := d.points(t, id); len(points) != 2 || !points[0].Undone || points[1].ID != done.Point {
			t.Errorf("points after it %+v", points)
		}
		d.undo(t, protocol.SessionRewindParams{SessionID: id, ToPoint: done.Point, Files: protocol.RewindOnly})
		sameTree(t, dir, after)
		d.undo(t, protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly})
		sameTree(t, dir, before)
	})
	t.Run("issue/6-2 a person's later change is a conflict, and undo needs force", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, everything(t))
		before := tree.Read(t, dir)
		turn := d.turn(t, id, "go")
		write(t, dir, "a.txt", "mine\n")
		write(t, dir, "other.txt", "mine, too\n")
		present := tree.Read(t, dir)
		p := protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly}
		_, err := d.History.Rewind(t.Context(), &p)
		refused, ok := errors.AsType[*undo.ConflictError](err)
		if !ok || len(refused.Files) != 1 || refused.Files[0].Path != "a.txt" || refused.Files[0].Conflict != protocol.ConflictChanged {
			t.Fatalf("rewind: %v, %+v", err, refused)
		}
		sameTree(t, dir, present)
		p.Force = true
		done := d.undo(t, p)
		before["other.txt"] = present["other.txt"]
		sameTree(t, dir, before)
		d.undo(t, protocol.SessionRewindParams{SessionID: id, ToPoint: done.Point, Files: protocol.RewindOnly})
		sameTree(t, dir, present)
	})
	t.Run("issue/6-2 a change between two turns survives undoing the second, and is lost with the first only by force", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{},
			func(dir string) { write(t, dir, "a.txt", "first\n") },
			func(dir string) { write(t, dir, "a.txt", "person and second\n") },
		)
		first := d.turn(t, id, "go")
		write(t, dir, "a.txt", "person\n")
		present := tree.Read(t, dir)
		second := d.turn(t, id, "go")
		d.undo(t, protocol.SessionRewindParams{SessionID: id, ToTurn: second.TurnID, Files: protocol.RewindOnly})
		sameTree(t, dir, present)
		_, err := d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToTurn: first.TurnID, Files: protocol.RewindOnly})
		if refused, ok := errors.AsType[*undo.ConflictError](err); !ok || refused.Files[0].Path != "a.txt" {
			t.Errorf("rewind: %v", err)
		}
		sameTree(t, dir, present)
	})
	t.Run("issue/6-2 history and files can be rewound together or separately", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{},
			func(dir string) { write(t, dir, "a.txt", "first\n") },
			func(dir string) { write(t, dir, "a.txt", "second\n") },
		)
		begin := must[*protocol.GraphReadResult](t)(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id})).Head
		first := d.turn(t, id, "go")
		afterFirst, middle := tree.Read(t, dir), must[*protocol.GraphReadResult](t)(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id})).Head
		second := d.turn(t, id, "go")
		afterSecond := tree.Read(t, dir)
		res := d.undo(t, protocol.SessionRewindParams{SessionID: id, ToTurn: second.TurnID, Files: protocol.RewindAlso})
		sameTree(t, dir, afterFirst)
		if res.Head.Leaf != middle.Leaf || res.Nodes == 0 {
			t.Errorf("head %+v, want leaf %s", res.Head, middle.Leaf)
		}
		d.undo(t, protocol.SessionRewindParams{SessionID: id, ToPoint: res.Point, Files: protocol.RewindOnly})
		sameTree(t, dir, afterSecond)
		if res := d.undo(t, protocol.SessionRewindParams{SessionID: id, ToTurn: first.TurnID}); res.Head.Leaf != begin.Leaf {
			t.Errorf("history alone goes to %s, want %s", res.Head.Leaf, begin.Leaf)
		}
		sameTree(t, dir, afterSecond)
	})
	t.Run("issue/6-2 a rewind to a node restores files from before the first turn after it", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{},
			func(dir string) { write(t, dir, "a.txt", "first\n") },
			func(dir string) { write(t, dir, "a.txt", "second\n") },
		)
		d.turn(t, id, "go")
		afterFirst, middle := tree.Read(t, dir), must[*protocol.GraphReadResult](t)(d.History.Read(t.Context(), &protocol.GraphReadParams{SessionID: id})).Head
		d.turn(t, id, "go")
		res := d.undo(t, protocol.SessionRewindParams{SessionID: id, ToNode: middle.Leaf, Files: protocol.RewindAlso})
		sameTree(t, dir, afterFirst)
		if res.Head.Leaf != middle.Leaf {
			t.Errorf("leaf %s, want %s", res.Head.Leaf, middle.Leaf)
		}
	})
	t.Run("issue/6-2 the diff of a turn and of a session", func(t *testing.T) {
		d, id, _ := workspaceOf(t, setup{},
			func(dir string) { write(t, dir, "a.txt", "one\n2\nthree\n") },
			func(dir string) { write(t, dir, "a.txt", "one\n2\n3\n") },
		)
		d.turn(t, id, "go")
		second := d.turn(t, id, "go")
		one := must[*protocol.SessionDiffResult](t)(d.Files.Diff(t.Context(), &protocol.SessionDiffParams{SessionID: id, TurnID: second.TurnID}))
		all := must[*protocol.SessionDiffResult](t)(d.Files.Diff(t.Context(), &protocol.SessionDiffParams{SessionID: id}))
		if len(one.Data) != 1 || one.Data[0].Diff != "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n 2\n-three\n+3\n" {
			t.Errorf("turn: %+v", one.Data)
		}
		if len(all.Data) != 1 || all.Data[0].Added != 2 || all.Data[0].Removed != 2 || all.Data[0].Effect != protocol.FileModified {
			t.Errorf("session: %+v", all.Data)
		}
	})
	t.Run("issue/6-2 ignored files, .git and files outside the workspace are not scanned or changed", func(t *testing.T) {
		outside := t.TempDir()
		write(t, outside, "secret", "out\n")
		d, id, dir := workspaceOf(t, setup{}, func(dir string) {
			for _, name := range []string{"build/x", "sub/y.log", ".git/config", "sub/keep.log", "a.txt"} {
				write(t, dir, name, "changed\n")
			}
			write(t, outside, "secret", "changed\n")
		})
		write(t, dir, ".gitignore", "build/\n*.log\n")
		write(t, dir, "sub/.gitignore", "!keep.log\n")
		for _, name := range []string{"build/x", "sub/y.log", ".git/config", "sub/keep.log"} {
			write(t, dir, name, "old\n")
		}
		if err := os.Symlink(outside, filepath.Join(dir, "way")); err != nil {
			t.Fatal(err)
		}
		turn := d.turn(t, id, "go")
		res := d.undo(t, protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly})
		var paths []string
		for _, f := range res.Files {
			paths = append(paths, f.Path)
		}
		if want := []string{"a.txt", "sub/keep.log"}; !slices.Equal(paths, want) {
			t.Errorf("brought back %v, want %v", paths, want)
		}
		now := tree.Read(t, dir)
		for name, want := range map[string]string{"build/x": "changed\n", "sub/y.log": "changed\n", ".git/config": "changed\n", "sub/keep.log": "old\n", "a.txt": "one\ntwo\nthree\n"} {
			if !strings.HasSuffix(now[name], " "+want) {
				t.Errorf("%s is %q, want %q", name, now[name], want)
			}
		}
		if got := tree.Read(t, outside)["secret"]; !strings.HasSuffix(got, "changed\n") {
			t.Errorf("outside: %q", got)
		}
	})
	t.Run("the files of a deleted directory count as changes, and the directory does not", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, func(dir string) { ok(t, os.RemoveAll(filepath.Join(dir, "sub"))) })
		turn := d.turn(t, id, "go")
		if p := d.points(t, id); len(p) != 1 || p[0].Files != 1 || p[0].Directories != 1 {
			t.Errorf("points %+v", p)
		}
		diff := must[*protocol.SessionDiffResult](t)(d.Files.Diff(t.Context(), &protocol.SessionDiffParams{SessionID: id, TurnID: turn.TurnID}))
		if len(diff.Data) != 1 || diff.Data[0].Path != "sub/c.txt" || diff.Data[0].Effect != protocol.FileDeleted {
			t.Errorf("diff %+v", diff.Data)
		}
		d.undo(t, protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly})
		if now := tree.Read(t, dir); !strings.HasSuffix(now["sub/c.txt"], "sea\n") {
			t.Errorf("after undo: %v", now)
		}
	})
	t.Run("a turn that only creates a directory can be undone", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, func(dir string) { ok(t, os.Mkdir(filepath.Join(dir, "empty"), 0o755)) })
		turn := d.turn(t, id, "go")
		if p := d.points(t, id); len(p) != 1 || p[0].Files != 0 || p[0].Directories != 1 {
			t.Fatalf("points %+v", p)
		}
		d.undo(t, protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly})
		if _, err := os.Stat(filepath.Join(dir, "empty")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after undo: %v", err)
		}
	})
	t.Run("issue/6-2 a file without a copy is reported, and force leaves it unchanged", func(t *testing.T) {
		big := strings.Repeat("x", 2000)
		d, id, dir := workspaceOf(t, setup{config: func(c *engine.Config) { c.FileLimits.FileSize = 1000 }}, func(dir string) {
			write(t, dir, "big", big+"y")
			write(t, dir, "a.txt", "changed\n")
		})
		write(t, dir, "big", big)
		turn := d.turn(t, id, "go")
		if p := d.points(t, id)[0]; p.Files != 2 || p.Unkept != 1 {
			t.Errorf("point %+v", p)
		}
		p := protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly}
		_, err := d.History.Rewind(t.Context(), &p)
		if refused, ok := errors.AsType[*undo.ConflictError](err); !ok || refused.Files[0].Unkept != protocol.FileTooLarge {
			t.Fatalf("rewind: %v", err)
		}
		p.Force = true
		d.undo(t, p)
		if now := tree.Read(t, dir); !strings.HasSuffix(now["big"], "xy") || !strings.HasSuffix(now["a.txt"], "three\n") {
			t.Errorf("files %v", slices.Sorted(maps.Values(now)))
		}
	})
	t.Run("issue/6-2 if the workspace is too large, the point is reported as unrestorable and the turn succeeds", func(t *testing.T) {
		d, id, _ := workspaceOf(t, setup{config: func(c *engine.Config) { c.FileLimits.Files = 3 }}, everything(t))
		turn := d.turn(t, id, "go")
		if turn.State != protocol.TurnCompleted {
			t.Errorf("turn %+v", turn)
		}
		points := d.points(t, id)
		if len(points) != 1 || !strings.Contains(points[0].Unrestorable, "more than 3 files") {
			t.Errorf("points %+v", points)
		}
		_, err := d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToTurn: turn.TurnID, Files: protocol.RewindOnly})
		if _, ok := errors.AsType[*undo.UnrestorableError](err); !ok {
			t.Errorf("rewind: %v", err)
		}
	})
	t.Run("issue/6-2 a turn that changes nothing has no point", func(t *testing.T) {
		d, id, _ := workspaceOf(t, setup{}, func(string) {})
		d.turn(t, id, "go")
		if points := d.points(t, id); len(points) != 0 {
			t.Errorf("points %+v", points)
		}
	})
}

// callsWork is a model that calls work in each turn once.
func callsWork() provider.Provider {
	return scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{calls("work"), {Text: "done"}}}})
}

// ok fails the test on an error.
func ok(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
