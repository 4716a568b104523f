package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"lashd/engine/param"
	"lashd/engine/provider"
	"lashd/engine/tool"
	"lashd/engine/undo"
	"lashd/rpc/protocol"
	"lashd/test/skip"
	"lashd/test/tree"
)

// onlyPoint is to undo a rewind.
func onlyPoint(id protocol.SessionID, point protocol.PointID) protocol.SessionRewindParams {
	return protocol.SessionRewindParams{SessionID: id, ToPoint: point, Files: protocol.RewindOnly}
}

func TestUnusualFiles(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, "theirs", "theirs\n")
	for _, c := range []struct {
		name     string
		before   func(t *testing.T, dir string)
		work     func(t *testing.T, dir string)
		contents bool // only these come back, and not how many names a file has
	}{
		{"a file becomes a directory, and a directory a file", func(*testing.T, string) {}, func(t *testing.T, dir string) {
			ok(t, os.Remove(filepath.Join(dir, "a.txt")), os.RemoveAll(filepath.Join(dir, "sub")))
			write(t, dir, "a.txt/in/it", "x\n")
			write(t, dir, "sub", "a file now\n")
		}, false},
		{"names that are not UTF-8", func(t *testing.T, dir string) {
			write(t, dir, "old\xff", "old\n")
			write(t, dir, "dir\xfe/f\x80", "old\n")
		}, func(t *testing.T, dir string) {
			ok(t, os.Remove(filepath.Join(dir, "old\xff")))
			write(t, dir, "dir\xfe/f\x80", "new\n")
			write(t, dir, "new\xc3\x28", "new\n")
		}, false},
		{"a nested repository", func(t *testing.T, dir string) {
			write(t, dir, "vendor/repo/.git/HEAD", "ref\n")
			write(t, dir, "vendor/repo/.gitignore", "*.o\n")
			write(t, dir, "vendor/repo/main.c", "old\n")
		}, func(t *testing.T, dir string) { write(t, dir, "vendor/repo/main.c", "new\n") }, false},
		{"a link to the outside is replaced by a file, and a file by a link", func(t *testing.T, dir string) {
			ok(t, os.Symlink(outside, filepath.Join(dir, "way")), os.Symlink(filepath.Join(outside, "theirs"), filepath.Join(dir, "link")))
		}, func(t *testing.T, dir string) {
			ok(t, os.Remove(filepath.Join(dir, "way")), os.Remove(filepath.Join(dir, "link")), os.Remove(filepath.Join(dir, "b.txt")))
			write(t, dir, "way/theirs", "in a directory now\n")
			write(t, dir, "link", "a file now\n")
			ok(t, os.Symlink(filepath.Join(outside, "theirs"), filepath.Join(dir, "b.txt")))
		}, false},
		{"hard links", func(t *testing.T, dir string) {
			ok(t, os.Link(filepath.Join(dir, "a.txt"), filepath.Join(dir, "same")))
		},
			func(t *testing.T, dir string) { write(t, dir, "a.txt", "both\n") }, true},
		{"modes without read permission", func(t *testing.T, dir string) { ok(t, os.Chmod(filepath.Join(dir, "b.txt"), 0)) },
			func(t *testing.T, dir string) {
				ok(t, os.Chmod(filepath.Join(dir, "a.txt"), 0), os.Chmod(filepath.Join(dir, "b.txt"), 0o600), os.Chmod(filepath.Join(dir, "sub"), 0o700))
			}, false},
		{"setgid and sticky", func(t *testing.T, dir string) {
			write(t, dir, "gone/f", "old\n")
			ok(t, os.Chmod(filepath.Join(dir, "gone"), 0o777|fs.ModeSticky), os.Chmod(filepath.Join(dir, "sub"), 0o775|fs.ModeSetgid),
				os.Chmod(filepath.Join(dir, "a.txt"), 0o664|fs.ModeSetgid))
		},
			func(t *testing.T, dir string) {
				ok(t, os.RemoveAll(filepath.Join(dir, "gone")), os.Chmod(filepath.Join(dir, "sub"), 0o775))
				write(t, dir, "a.txt", "new\n")
				ok(t, os.Chmod(filepath.Join(dir, "a.txt"), 0o664))
			}, false},
	} {
		t.Run("issue/6-2 "+c.name, func(t *testing.T) {
			d, id, dir := workspaceOf(t, setup{}, func(dir string) { c.work(t, dir) })
			c.before(t, dir)
			before := tree.Read(t, dir)
			turn := d.turn(t, id, "go")
			after := tree.Read(t, dir)
			done := d.undo(t, onlyFiles(id, turn.TurnID))
			sameTree(t, dir, before)
			d = d.restart(t, nil)
			d.undo(t, onlyPoint(id, done.Point))
			sameTree(t, dir, after)
			if got := tree.Read(t, outside); len(got) != 1 || !strings.HasSuffix(got["theirs"], " theirs\n") {
				t.Errorf("outside: %q", got)
			}
		})
	}
	t.Run("issue/6-2 a link with a non-text target is reported and kept", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, func(dir string) {
			ok(t, os.Remove(filepath.Join(dir, "l")), os.Symlink("elsewhere", filepath.Join(dir, "l")))
		})
		ok(t, os.Symlink("to\xff", filepath.Join(dir, "l")))
		turn := d.turn(t, id, "go")
		params := onlyFiles(id, turn.TurnID)
		_, err := d.History.Rewind(t.Context(), &params)
		if refused, is := errors.AsType[*undo.ConflictError](err); !is || refused.Files[0].Unkept != protocol.FileUnreadable {
			t.Errorf("rewind: %v", err)
		}
	})
	for name, special := range map[string]fs.FileMode{"setuid": fs.ModeSetuid, "setgid": fs.ModeSetgid} {
		t.Run("issue/6-2 a program with "+name+" is reported and kept", func(t *testing.T) {
			d, id, dir := workspaceOf(t, setup{}, func(dir string) {
				write(t, dir, "a.txt", "new\n")
				write(t, dir, "program", "new\n")
				ok(t, os.Chmod(filepath.Join(dir, "program"), 0o755))
			})
			write(t, dir, "program", "old\n")
			ok(t, os.Chmod(filepath.Join(dir, "program"), 0o755|special))
			turn := d.turn(t, id, "go")
			params := onlyFiles(id, turn.TurnID)
			_, err := d.History.Rewind(t.Context(), &params)
			if refused, is := errors.AsType[*undo.ConflictError](err); !is || refused.Files[0].Unkept != protocol.FilePrivileged {
				t.Errorf("rewind: %v", err)
			}
			params.Force = true
			d.undo(t, params)
			now := tree.Read(t, dir)
			if now["program"] != "-rwxr-xr-x new\n" || !strings.HasSuffix(now["a.txt"], " one\ntwo\nthree\n") {
				t.Errorf("files %q", now)
			}
		})
	}
	t.Run("issue/6-2 a large sparse file is reported, not read", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, func(dir string) { ok(t, os.Truncate(filepath.Join(dir, "big"), 1<<30-1)) })
		write(t, dir, "big", "")
		ok(t, os.Truncate(filepath.Join(dir, "big"), 1<<30))
		began := time.Now()
		d.turn(t, id, "go")
		if p := d.points(t, id); len(p) != 1 || p[0].Files != 1 || p[0].Unkept != 1 || p[0].Unrestorable != "" {
			t.Errorf("points %+v", p)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
	})
	t.Run("issue/6-2 if the workspace disappears, the point is unrestorable and the turn continues", func(t *testing.T) {
		d, id, dir := workspaceOf(t, setup{}, func(dir string) { ok(t, os.RemoveAll(dir)) }, func(string) {})
		turn := d.turn(t, id, "go")
		if p := d.points(t, id); turn.State != protocol.TurnCompleted || len(p) != 1 || p[0].Unrestorable == "" || p[0].State != protocol.PointClosed {
			t.Errorf("turn %s, points %+v", turn.State, p)
		}
		params := onlyFiles(id, turn.TurnID)
		if _, err := d.History.Rewind(t.Context(), &params); !errors.As(err, new(*param.Error)) {
			t.Errorf("rewind: %v", err)
		}
		ok(t, os.Mkdir(dir, 0o755))
		if _, err := d.History.Rewind(t.Context(), &params); !errors.As(err, new(*undo.UnrestorableError)) {
			t.Errorf("rewind after the workspace is back: %v", err)
		}
		if again := d.turn(t, id, "go"); again.State != protocol.TurnCompleted || len(d.points(t, id)) != 1 {
			t.Errorf("turn %s, points %+v", again.State, d.points(t, id))
		}
	})
	t.Run("issue/6-2 without space for copies the point is reported as unrestorable and the turn continues", func(t *testing.T) {
		state := t.TempDir()
		ok(t, os.Mkdir(filepath.Join(state, "files"), 0o700))
		err := syscall.Mount("tmpfs", filepath.Join(state, "files"), "tmpfs", 0, "size=256k")
		skip.Unless(t, "MOUNT", err == nil, fmt.Sprint("no small file system can be mounted: ", err))
		d, id, _ := workspaceOf(t, setup{dir: state}, func(dir string) { write(t, dir, "a.txt", noise(1<<20)) }, func(dir string) { write(t, dir, "b.txt", "small\n") })
		t.Cleanup(func() {
			d.stop()
			ok(t, syscall.Unmount(filepath.Join(state, "files"), 0))
		})
		o := d.observe(t, id, 0)
		turn := d.turn(t, id, "go")
		o.over(turn.TurnID)
		told := slices.ContainsFunc(o.all, func(e protocol.Event) bool { return e.Point != nil && e.Point.Unrestorable != "" })
		if p := d.points(t, id); turn.State != protocol.TurnCompleted || len(p) != 1 || p[0].Unrestorable == "" || !told {
			t.Errorf("turn %s, told %t, points %+v", turn.State, told, p)
		}
	})
}

// noise is what cannot be compressed.
func noise(n int) string {
	data := make([]byte, n)
	x := uint64(88172645463325252)
	for i := range data {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		data[i] = byte(x)
	}
	return string(data)
}

// unprivileged has the rest of a test run as a user who is not root, and gives him directories.
func unprivileged(t *testing.T, dirs ...string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	const nobody = 65534
	for _, dir := range dirs {
		ok(t, os.Chmod(filepath.Dir(dir), 0o755), os.Chown(dir, nobody, nobody))
	}
	ok(t, syscall.Setreuid(-1, nobody))
	t.Cleanup(func() { ok(t, syscall.Setreuid(-1, 0)) })
}

func TestFilesOfOthers(t *testing.T) {
	t.Run("issue/6-2 a read-only directory is reported and left unchanged", func(t *testing.T) {
		state, dir := t.TempDir(), t.TempDir()
		unprivileged(t, state, dir)
		write(t, dir, "a.txt", "old\n")
		write(t, dir, "sub/c.txt", "old\n")
		d := start(t, setup{dir: state, model: callsWork(), tools: []tool.Provider{works(dir, func(dir string) {
			write(t, dir, "a.txt", "new\n")
			write(t, dir, "sub/c.txt", "new\n")
		})}})
		t.Cleanup(d.stop)
		id := d.beside(t, dir)
		turn := d.turn(t, id, "go")
		ok(t, os.Chmod(filepath.Join(dir, "sub"), 0o555))
		t.Cleanup(func() { os.Chmod(filepath.Join(dir, "sub"), 0o755) })
		res := d.undo(t, onlyFiles(id, turn.TurnID))
		if len(res.Files) != 2 || res.Files[0].Problem != "" || res.Files[1].Problem == "" {
			t.Errorf("files %+v", res.Files)
		}
		now := tree.Read(t, dir)
		if !strings.HasSuffix(now["a.txt"], " old\n") || !strings.HasSuffix(now["sub/c.txt"], " new\n") {
			t.Errorf("files %q", now)
		}
		if p := d.points(t, id); p[1].State != protocol.PointClosed || p[1].Unrestorable == "" {
			t.Errorf("point %+v", p[1])
		}
		ok(t, os.Chmod(filepath.Join(dir, "sub"), 0o755))
		again := onlyFiles(id, turn.TurnID)
		again.Force = true
		d.undo(t, again)
		if now := tree.Read(t, dir); !strings.HasSuffix(now["sub/c.txt"], " old\n") {
			t.Errorf("files %q", now)
		}
	})
	t.Run("issue/6-2 an unreadable file is reported, and contents of an unreadable directory do not count as new", func(t *testing.T) {
		state, dir := t.TempDir(), t.TempDir()
		unprivileged(t, state, dir)
		write(t, dir, "closed/f", "precious\n")
		write(t, dir, "open/f", "precious\n")
		write(t, dir, "secret", "secret\n")
		ok(t, os.Chmod(filepath.Join(dir, "closed"), 0), os.Chmod(filepath.Join(dir, "secret"), 0))
		d := start(t, setup{dir: state, model: callsWork(), tools: []tool.Provider{works(dir,
			func(dir string) {
				ok(t, os.Chmod(filepath.Join(dir, "open"), 0), os.Remove(filepath.Join(dir, "secret")))
				write(t, dir, "b.txt", "new\n")
			},
			func(dir string) {
				ok(t, os.Chmod(filepath.Join(dir, "open"), 0o755), os.Chmod(filepath.Join(dir, "closed"), 0o755))
			},
		)}})
		t.Cleanup(d.stop)
		id := d.beside(t, dir)
		first := d.turn(t, id, "go")
		d.turn(t, id, "go")
		if p := d.points(t, id); p[0].Unrestorable != "" || p[0].Unkept != 1 {
			t.Errorf("point %+v", p[0])
		}
		params := onlyFiles(id, first.TurnID)
		params.Force = true
		d.undo(t, params)
		now := tree.Read(t, dir)
		if !strings.HasSuffix(now["closed/f"], " precious\n") || !strings.HasSuffix(now["open/f"], " precious\n") || now["b.txt"] != "" {
			t.Errorf("files %q", now)
		}
	})
}

func TestScansBesideTurns(t *testing.T) {
	t.Run("issue/6-2 a person's changes while tools only read are not attributed to the tools", func(t *testing.T) {
		var dir string
		look := toolFunc{name: "look", kind: protocol.ToolKindRead, run: func(context.Context, tool.Invocation) (tool.Result, error) {
			write(t, dir, "b.txt", "a person's\n") // in that moment
			return tool.Result{Output: protocol.Succeed("seen")}, nil
		}}
		dir = t.TempDir()
		write(t, dir, "a.txt", "old\n")
		d := start(t, setup{model: replies(calls("work"), calls("look")), tools: []tool.Provider{look, works(dir, func(dir string) { write(t, dir, "a.txt", "new\n") })}})
		id := d.beside(t, dir)
		d.turn(t, id, "go")
		if p := d.points(t, id); len(p) != 1 || p[0].Files != 1 {
			t.Errorf("points %+v", p)
		}
	})
	t.Run("issue/6-2 later changes by another session are not shared with this one", func(t *testing.T) {
		dir := t.TempDir()
		for i := range 2000 { // so that looks take a while
			write(t, dir, fmt.Sprintf("d%d/f%d", i%50, i), "x\n")
		}
		n := 0
		w := works(dir)
		w.run = func(context.Context, tool.Invocation) (tool.Result, error) {
			n++
			write(t, dir, fmt.Sprint("by", n), "x\n")
			return tool.Result{Output: protocol.Succeed("done")}, nil
		}
		next, at, on, asked := callsWork(), make(chan struct{}), make(chan struct{}), 0
		var first protocol.SessionID
		model := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
			if req.Scope.SessionID == first {
				if asked++; asked%2 == 0 { // its tools are done, and are looked after now
					at <- struct{}{}
					<-on
				}
			}
			next.Stream(ctx, req)(yield)
		})
		d := start(t, setup{model: model, tools: []tool.Provider{w}})
		first = d.beside(t, dir)
		second := d.beside(t, dir)
		for range 10 {
			one := d.begin(t, first, "go")
			<-at
			two := d.turn(t, second, "go")
			on <- struct{}{}
			d.wait(t, one.TurnID)
			for id, turn := range map[protocol.SessionID]protocol.TurnID{first: one.TurnID, second: two.TurnID} {
				diff := must[*protocol.SessionDiffResult](t)(d.Files.Diff(t.Context(), &protocol.SessionDiffParams{SessionID: id, TurnID: turn}))
				if len(diff.Data) != 1 {
					t.Fatalf("the turn has changed %+v", diff.Data)
				}
			}
		}
	})
}

func TestNoSpaceInRewind(t *testing.T) {
	state := smallDisk(t)
	t.Run("issue/6-2 a rewind that finds no space at its end waits and then completes", func(t *testing.T) {
		const many = 300
		name := func(i int) string { return fmt.Sprintf("f%03d", i) }
		d, id, dir := workspaceOf(t, setup{dir: state}, func(dir string) {
			for i := range many {
				write(t, dir, name(i), "new\n")
			}
		})
		t.Cleanup(d.stop)
		for i := range many {
			write(t, dir, name(i), "old\n")
		}
		before := tree.Read(t, dir)
		turn := d.turn(t, id, "go")
		filler := d.fillDisk(t, id)
		fi, err := os.Stat(filler)
		ok(t, err, os.Truncate(filler, fi.Size()-2<<20))
		type answer struct {
			res *protocol.SessionRewindResult
			err error
		}
		answers := make(chan answer, 1)
		params := onlyFiles(id, turn.TurnID)
		go func() {
			res, err := d.History.Rewind(t.Context(), &params)
			answers <- answer{res, err}
		}()
		for data := ""; data != "old\n"; time.Sleep(time.Millisecond) {
			text, err := os.ReadFile(filepath.Join(dir, name(0)))
			ok(t, err)
			data = string(text)
		}
		fill(t, state)
		select {
		case a := <-answers:
			t.Fatalf("on a full disk the rewind ends with %+v, %v", a.res, a.err)
		case <-time.After(1500 * time.Millisecond):
		}
		if points := d.points(t, id); len(points) != 2 || points[1].State != protocol.PointOpen {
			t.Errorf("points %+v", points)
		}
		ok(t, os.Remove(filler))
		if a := <-answers; a.err != nil || a.res.Point == "" {
			t.Errorf("when there is space: %+v, %v", a.res, a.err)
		}
		sameTree(t, dir, before)
		if points := d.points(t, id); points[1].State != protocol.PointClosed || points[1].Unrestorable != "" || !points[0].Undone {
			t.Errorf("points %+v", points)
		}
	})
}
