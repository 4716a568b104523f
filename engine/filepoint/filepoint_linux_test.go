package filepoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// scene is a workspace on disk with a shelf in another directory.
type scene struct {
	t     *testing.T
	dir   string
	state string
	*Workspace
	shelf *Shelf
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, dir: t.TempDir(), state: t.TempDir()}
	s.shelf = NewShelf(s.state, 1<<20)
	t.Cleanup(func() { s.shelf.Close() })
	s.open()
	return s
}

// open reopens the workspace, excluding the present files of the state directory.
func (s *scene) open() {
	s.t.Helper()
	w, err := Open(s.dir, s.state)
	if err != nil {
		s.t.Fatal(err)
	}
	s.Workspace = w
	s.t.Cleanup(func() { w.Close() })
}

func (s *scene) write(name, text string) {
	s.t.Helper()
	file := filepath.Join(s.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) read(name string) string {
	s.t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

func (s *scene) ok(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) paths() []string {
	s.t.Helper()
	return slices.Sorted(maps.Keys(found(s, s.Workspace)))
}

// found returns all files of a workspace.
func found(s *scene, w *Workspace) map[string]persistence.WorkspaceFile {
	s.t.Helper()
	sight, err := w.Walk(s.t.Context(), NewIndex(nil), 1000, false)
	s.ok(err)
	all := map[string]persistence.WorkspaceFile{}
	for _, f := range sight.News {
		all[f.Path] = f
	}
	return all
}

func (s *scene) Known(context.Context, []protocol.Digest) (map[protocol.Digest]bool, error) {
	return nil, nil
}

func (s *scene) Add(contents map[protocol.Digest][]byte) ([]persistence.FileCopy, error) {
	return s.shelf.Add(contents)
}

// capture copies one file.
func (s *scene) capture(ctx context.Context, name string, limit, room int64) (persistence.WorkspaceFile, []persistence.FileCopy) {
	s.t.Helper()
	f, err := s.Look(name)
	s.ok(err)
	if f == nil {
		s.t.Fatalf("there is no %s", name)
	}
	one := []persistence.WorkspaceFile{*f}
	copies, err := s.Capture(ctx, one, s, limit, room)
	s.ok(err)
	return one[0], copies
}

func TestWalk(t *testing.T) {
	t.Run("issue/6-2 the nearest .gitignore applies, and .git and ignored directories are not entered", func(t *testing.T) {
		s := newScene(t)
		for _, name := range []string{"a.log", "keep.log", "sub/b.log", "sub/keep.log", "sub/deep/c.log", "out/x", "sub/out/y", ".git/HEAD", "sub/.git/HEAD", "/anchored", "sub/anchored"} {
			s.write(name, "x")
		}
		s.write(".gitignore", "# logs\n*.log\n!keep.log\nout/\n/anchored\n")
		s.write("sub/.gitignore", "keep.log\n!b.log\n")
		want := []string{".gitignore", "keep.log", "sub", "sub/.gitignore", "sub/anchored", "sub/b.log", "sub/deep"}
		if got := s.paths(); !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	})
	t.Run("issue/6-2 links are reported as links, and sockets and devices are skipped", func(t *testing.T) {
		s, outside := newScene(t), t.TempDir()
		s.ok(os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600))
		s.ok(os.Symlink(outside, filepath.Join(s.dir, "out")))
		s.ok(os.Symlink("nowhere", filepath.Join(s.dir, "dangling")))
		s.ok(syscall.Mkfifo(filepath.Join(s.dir, "fifo"), 0o600))
		s.write("a", "x")
		found := found(s, s.Workspace)
		if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, []string{"a", "dangling", "out"}) {
			t.Errorf("found %q", got)
		}
		if f := found["out"]; f.Kind != protocol.FileLink || f.Link != outside {
			t.Errorf("the link is %+v", f)
		}
		if f, err := s.Look("out/secret"); f != nil || err != nil {
			t.Errorf("behind the link there is %+v, %v", f, err)
		}
	})
	t.Run("issue/6-2 reliability/T8 files of lashd itself are skipped under any name", func(t *testing.T) {
		s := newScene(t)
		own := filepath.Join(s.state, "lashd.db")
		s.ok(os.WriteFile(own, []byte("x"), 0o600))
		s.ok(os.Link(own, filepath.Join(s.dir, "innocent")))
		s.ok(os.Mkdir(filepath.Join(s.dir, "state"), 0o700))
		s.write("a", "x")
		s.open()
		if got := s.paths(); !slices.Equal(got, []string{"a", "state"}) {
			t.Errorf("found %q", got)
		}
		err := s.Make(Step{Path: "innocent", Want: &protocol.FileState{Kind: protocol.FileRegular, Mode: 0o600}}, nil)
		if !errors.Is(err, os.ErrPermission) {
			t.Errorf("it is replaced: %v", err)
		}
		w, err := Open(s.dir, filepath.Join(s.dir, "state"))
		s.ok(err)
		defer w.Close()
		if _, there := found(s, w)["state"]; there {
			t.Error("its directory is found")
		}
	})
	t.Run("issue/6-2 too many files return a TooManyError", func(t *testing.T) {
		s := newScene(t)
		for i := range 5 {
			s.write(fmt.Sprint("f", i), "x")
		}
		_, err := s.Walk(t.Context(), NewIndex(nil), 4, false)
		if many, ok := errors.AsType[*TooManyError](err); !ok || many.Limit != 4 {
			t.Errorf("error %v", err)
		}
		if _, err := s.Walk(t.Context(), NewIndex(nil), 5, false); err != nil {
			t.Error(err)
		}
	})
}

func TestCapture(t *testing.T) {
	t.Run("issue/6-2 copies are private, compressed, and verified when they are read", func(t *testing.T) {
		s := newScene(t)
		text := strings.Repeat("the same line again\n", 5000)
		s.write("a", text)
		f, copies := s.capture(t.Context(), "a", 1<<20, 1<<20)
		if f.Problem != "" || f.Digest != protocol.DigestOf([]byte(text)) || len(copies) != 1 || copies[0].Length > int64(len(text))/10 {
			t.Fatalf("file %+v, copies %+v", f, copies)
		}
		data, err := s.shelf.Read(copies[0])
		if err != nil || string(data) != text {
			t.Errorf("read %d bytes, %v", len(data), err)
		}
		pack := s.shelf.path(copies[0].Pack)
		fi, err := os.Stat(pack)
		s.ok(err)
		dir, err := os.Stat(filepath.Dir(pack))
		s.ok(err)
		if fi.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
			t.Errorf("modes %s and %s", fi.Mode(), dir.Mode())
		}
		wrong := copies[0]
		wrong.Digest = protocol.DigestOf([]byte("other"))
		if _, err := s.shelf.Read(wrong); err == nil {
			t.Error("other bytes are taken for a copy")
		}
	})
	for _, c := range []struct {
		name  string
		limit int64
		room  int64
		want  protocol.FileProblem
	}{{"too large", 3, 100, protocol.FileTooLarge}, {"without room", 100, 3, protocol.FileNoRoom}, {"as large as may be", 4, 4, ""}} {
		t.Run("issue/6-2 a file "+c.name, func(t *testing.T) {
			s := newScene(t)
			s.write("a", "four")
			if f, _ := s.capture(t.Context(), "a", c.limit, c.room); f.Problem != c.want || (f.Digest == "") != (c.want != "") {
				t.Errorf("file %+v", f)
			}
		})
	}
	t.Run("issue/6-2 a file that was not read in time is marked late and stays in the index", func(t *testing.T) {
		s := newScene(t)
		s.write("a", "x")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f, copies := s.capture(ctx, "a", 100, 100)
		if f.Problem != protocol.FileLate || len(copies) != 0 || f.ModifiedNs == 0 {
			t.Errorf("file %+v", f)
		}
	})
	t.Run("issue/6-2 a file that changed a moment ago is read again", func(t *testing.T) {
		s := newScene(t)
		s.write("a", "x")
		was, _ := s.capture(t.Context(), "a", 100, 100)
		now, err := s.Look("a")
		s.ok(err)
		if Same(was, *now) {
			t.Error("its time is believed")
		}
	})
}

func TestMake(t *testing.T) {
	file := func(text string) *protocol.FileState {
		return &protocol.FileState{Kind: protocol.FileRegular, Mode: 0o640, Digest: protocol.DigestOf([]byte(text))}
	}
	t.Run("issue/6-2 no path leads out of the workspace, not even a link created during the step", func(t *testing.T) {
		s, outside := newScene(t), t.TempDir()
		s.ok(os.WriteFile(filepath.Join(outside, "f"), []byte("theirs"), 0o600))
		s.ok(os.Symlink(outside, filepath.Join(s.dir, "sub")))
		s.ok(os.Symlink(filepath.Join(outside, "f"), filepath.Join(s.dir, "link")))
		for _, p := range []string{"sub/f", "sub/new", "../f", "sub/../../f"} {
			if err := s.Make(Step{Path: p, Want: file("mine")}, []byte("mine")); err == nil {
				t.Errorf("%s is made", p)
			}
			if err := s.Make(Step{Path: p}, nil); err == nil && p != "sub/new" {
				t.Errorf("%s is removed", p)
			}
		}
		s.ok(s.Make(Step{Path: "link", Want: file("mine")}, []byte("mine")))
		entries, err := os.ReadDir(outside)
		s.ok(err)
		data, err := os.ReadFile(filepath.Join(outside, "f"))
		if err != nil || string(data) != "theirs" || len(entries) != 1 {
			t.Errorf("outside there is %q, %v, %d files", data, err, len(entries))
		}
		if fi, err := os.Lstat(filepath.Join(s.dir, "link")); err != nil || !fi.Mode().IsRegular() || fi.Mode().Perm() != 0o640 {
			t.Errorf("the link became %v, %v", fi.Mode(), err)
		}
	})
	t.Run("issue/6-2 each kind of file can replace every other, and directories that are not empty stay", func(t *testing.T) {
		kinds := map[string]*protocol.FileState{
			"file": file("x"), "link": {Kind: protocol.FileLink, Link: "x"}, "directory": {Kind: protocol.FileDirectory, Mode: 0o750}, "nothing": nil,
		}
		for from, a := range kinds {
			for to, b := range kinds {
				s := newScene(t)
				s.ok(s.Make(Step{Path: "p", Want: a}, []byte("x")))
				s.ok(s.Make(Step{Path: "p", Now: a, Want: b}, []byte("x")))
				f, err := s.Look("p")
				s.ok(err)
				if (f == nil) != (b == nil) || f != nil && (f.Kind != b.Kind || f.Mode != b.Mode || f.Link != b.Link) {
					t.Errorf("%s to %s: %+v", from, to, f)
				}
			}
		}
		s := newScene(t)
		s.write("d/mine", "x")
		if err := s.Make(Step{Path: "d"}, nil); !errors.Is(err, ErrNotEmpty) {
			t.Errorf("error %v", err)
		}
		if s.read("d/mine") != "x" {
			t.Error("what is in it is gone")
		}
	})
	t.Run("issue/6-2 only temporary files of an interrupted rewind are removed", func(t *testing.T) {
		s := newScene(t)
		s.write("sub/.lashd-undo-ABC", "x")
		s.write("sub/.lashd-ABC", "a tool's")
		s.write("sub/f", "x")
		s.ok(s.Tidy([]Step{{Path: "sub/f"}, {Path: "gone/f"}}))
		entries, err := os.ReadDir(filepath.Join(s.dir, "sub"))
		s.ok(err)
		if len(entries) != 2 || entries[0].Name() != ".lashd-ABC" {
			t.Errorf("there is %v", entries)
		}
	})
	t.Run("issue/6-2 deletions run from the inside out, then creations from the outside in", func(t *testing.T) {
		dir := &protocol.FileState{Kind: protocol.FileDirectory}
		var got []string
		for _, s := range Order([]Step{{Path: "b", Want: dir}, {Path: "a"}, {Path: "b/f", Want: file("")}, {Path: "a/x"}, {Path: "b/c", Want: dir}}) {
			got = append(got, s.Path)
		}
		if want := []string{"a/x", "a", "b", "b/c", "b/f"}; !slices.Equal(got, want) {
			t.Errorf("order %q, want %q", got, want)
		}
	})
}

func TestUndone(t *testing.T) {
	state := func(text string) *protocol.FileState {
		if text == "" {
			return nil
		}
		return &protocol.FileState{Kind: protocol.FileRegular, Digest: protocol.Digest(text)}
	}
	change := func(point protocol.PointID, step int64, before, after string) persistence.FileChange {
		return persistence.FileChange{Point: point, Step: step, Path: "p", FileChangeBody: persistence.FileChangeBody{Before: state(before), After: state(after)}}
	}
	for _, c := range []struct {
		name    string
		changes []persistence.FileChange
		want    Undo
	}{
		{"one after the other", []persistence.FileChange{change("a", 1, "", "1"), change("b", 2, "1", "2")}, Undo{After: state("2")}},
		{"with another program's change between them", []persistence.FileChange{change("a", 1, "0", "1"), change("b", 3, "other", "2")}, Undo{Before: state("0"), After: state("2"), Broken: true}},
		{"both at once", []persistence.FileChange{change("a", 1, "0", "1"), change("b", 1, "0", "1")}, Undo{Before: state("0"), After: state("1")}},
		{"beside a third", []persistence.FileChange{change("a", 1, "0", "1"), change("c", 1, "0", "1")}, Undo{Before: state("0"), After: state("1"), Shared: true}},
		{"before a third", []persistence.FileChange{change("a", 1, "0", "1"), change("c", 2, "1", "2")}, Undo{Before: state("0"), After: state("1")}},
	} {
		t.Run("issue/6-2 two points "+c.name, func(t *testing.T) {
			all := Undone(c.changes, map[protocol.PointID]bool{"a": true, "b": true})
			if len(all) != 1 {
				t.Fatalf("got %+v", all)
			}
			got := all[0]
			if !Equal(got.Before, c.want.Before) || !Equal(got.After, c.want.After) || got.Broken != c.want.Broken || got.Shared != c.want.Shared {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		before, after  string
		added, removed int
		binary         bool
	}{
		{"a\nb\n", "a\nc\nd\n", 2, 1, false},
		{"", "--- a\n+++ b\n", 2, 0, false},
		{"no newline", "no newline\n", 1, 1, false},
		{"a\x00b", "text\n", 0, 0, true},
		{"same\n", "same\n", 0, 0, false},
	} {
		if d := Compare("p", []byte(c.before), []byte(c.after), true, true); d.Added != c.added || d.Removed != c.removed || d.Binary != c.binary {
			t.Errorf("issue/6-2 %q to %q: %+v", c.before, c.after, d)
		}
	}
}

func TestLooks(t *testing.T) {
	// look scans the workspace and adds new files to the index.
	look := func(s *scene, ix *Index) (news []string, missing []string) {
		s.t.Helper()
		sight, err := s.Walk(s.t.Context(), ix, 1000, false)
		s.ok(err)
		for _, f := range sight.News {
			ix.Put(f)
			news = append(news, f.Path)
		}
		for _, p := range sight.Missing {
			ix.Drop(p)
		}
		return slices.Sorted(slices.Values(news)), sight.Missing
	}
	t.Run("issue/6-2 a second scan finds the changes, and a new .gitignore applies at once", func(t *testing.T) {
		s, ix := newScene(t), NewIndex(nil)
		for _, name := range []string{"a", "b", "sub/c.log", "sub/d"} {
			s.write(name, "x")
		}
		look(s, ix)
		s.write("a", "changed")
		s.ok(os.Remove(filepath.Join(s.dir, "b")))
		s.write(".gitignore", "*.log\n")
		news, missing := look(s, ix)
		if !slices.Equal(news, []string{".gitignore", "a"}) || !slices.Equal(missing, []string{"sub/c.log", "b"}) {
			t.Errorf("news %q, missing %q", news, missing)
		}
		if !ix.Ignored("sub/c.log", false) || ix.Ignored("b", false) || !ix.Ignored(".git/x", false) {
			t.Error("what is ignored and what is gone are taken for each other")
		}
		old := time.Now().Add(-time.Hour)
		for range 2 { // the second scan finds nothing new
			s.ok(os.Chtimes(filepath.Join(s.dir, ".gitignore"), old, old))
			look(s, ix)
		}
		s.write(".gitignore", "*.lag\n") // of the same length
		s.ok(os.Chtimes(filepath.Join(s.dir, ".gitignore"), old, old))
		if news, _ := look(s, ix); !slices.Equal(news, []string{".gitignore", "sub/c.log"}) {
			t.Errorf("news %q", news)
		}
	})
	t.Run("issue/6-2 the journal keeps the exact bytes of paths", func(t *testing.T) {
		steps := []Step{{Path: "a\xff/b", Want: &protocol.FileState{Kind: protocol.FileRegular, Mode: 0o600}}, {Path: "plain"}}
		text, err := json.Marshal(steps)
		if err != nil {
			t.Fatal(err)
		}
		var again []Step
		if err := json.Unmarshal(text, &again); err != nil || len(again) != 2 || again[0].Path != "a\xff/b" || again[0].Want.Mode != 0o600 || again[1].Path != "plain" || again[1].Want != nil {
			t.Errorf("got %+v, %v from %s", again, err, text)
		}
	})
	t.Run("issue/6-2 a file that changes while it is copied is copied as of one moment, or not at all", func(t *testing.T) {
		s := newScene(t)
		const n, piece = 256 << 10, 4096
		s.write("f", string(make([]byte, n)))
		file, err := os.OpenFile(filepath.Join(s.dir, "f"), os.O_WRONLY, 0)
		s.ok(err)
		over := make(chan struct{})
		var writer sync.WaitGroup
		defer writer.Wait()
		defer close(over)
		writer.Go(func() {
			defer file.Close()
			for i := 1; ; i++ { // at any moment the file is some pieces of i, and then the rest of i-1
				for at := 0; at < n; at += piece {
					if _, err := file.WriteAt(bytes.Repeat([]byte{byte(i)}, piece), int64(at)); err != nil {
						t.Error(err)
						return
					}
				}
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond):
				}
			}
		})
		for range 300 {
			f, copies := s.capture(t.Context(), "f", 1<<20, 1<<30)
			if len(copies) == 0 && (f.Problem == protocol.FileLate || f.Problem == "") { // it changed, or the copy already exists
				continue
			}
			data, err := s.shelf.Read(copies[0])
			s.ok(err)
			rest := trimByte(data, data[0])
			if len(data) != n || len(trimByte(rest, data[0]-1)) > 0 {
				t.Fatalf("the copy begins with %d, %d bytes later comes %d", data[0], n-len(rest), rest[0])
			}
		}
	})
}

func trimByte(data []byte, b byte) []byte {
	for len(data) > 0 && data[0] == b {
		data = data[1:]
	}
	return data
}
