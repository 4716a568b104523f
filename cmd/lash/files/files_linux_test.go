package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"lashd/cmd/lash/files"
)

// workspace makes a directory with files; a path that ends with a slash is a
// directory.
func workspace(t testing.TB, paths ...string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		p, text, _ := strings.Cut(p, "=")
		at := filepath.Join(dir, p)
		err := os.MkdirAll(filepath.Dir(at), 0o700)
		if strings.HasSuffix(p, "/") {
			err = os.MkdirAll(at, 0o700)
		} else if err == nil {
			err = os.WriteFile(at, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// find returns the paths that a query finds in a directory.
func find(t testing.TB, dir, query string) []string {
	t.Helper()
	l, err := files.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return files.NewFinder(l).Find(query, 100)
}

func TestFilesOfAWorkspace(t *testing.T) {
	t.Run("part/12 files that git ignores are left out", func(t *testing.T) {
		dir := workspace(t, ".gitignore=*.log\n/build/\n", "a.log", "a.go", "build/out", "sub/.gitignore=!keep.log\ntmp\n", "sub/keep.log", "sub/tmp/x", "sub/build/y", ".git/config", ".github/ci.yml")
		got := find(t, dir, "/")
		slices.Sort(got)
		if want := []string{".github/", ".github/ci.yml", "sub/", "sub/.gitignore", "sub/build/", "sub/build/y", "sub/keep.log"}; !slices.Equal(got, want) {
			t.Errorf("it finds %q, want %q", got, want)
		}
		if got, want := find(t, dir, ""), []string{"a.go", "sub/", ".github/", ".gitignore"}; !slices.Equal(got, want) {
			t.Errorf("at the top it finds %q, want %q", got, want)
		}
	})
	t.Run("part/12 no entry leads out of the workspace", func(t *testing.T) {
		outside := workspace(t, "secret.txt", "deep/secret.go")
		dir := workspace(t, "in.txt", "sub/")
		for name, target := range map[string]string{"link": outside, "sub/link": outside, "link.txt": outside + "/secret.txt", "loop": "."} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, want := find(t, dir, ""), []string{"in.txt", "sub/"}; !slices.Equal(got, want) {
			t.Errorf("it finds %q, want %q", got, want)
		}
		for _, query := range []string{"secret", "link", "sub/link", "..", "../", outside} {
			if got := find(t, dir, query); len(got) > 0 {
				t.Errorf("%q finds %q", query, got)
			}
		}
	})
	t.Run("part/12 a workspace that a link replaced is not listed", func(t *testing.T) {
		dir := workspace(t, "a.txt")
		link := filepath.Join(workspace(t), "link")
		if err := os.Symlink(dir, link); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Read(t.Context(), link); err == nil {
			t.Error("it is listed")
		}
	})
	t.Run("part/12 names that a terminal cannot show are left out", func(t *testing.T) {
		dir := workspace(t, "a\x1b[2J.txt", "b\xff.txt", "c\nd.txt", `e".txt`, "ok, ü 日.txt")
		if got, want := find(t, dir, ""), []string{"ok, ü 日.txt"}; !slices.Equal(got, want) {
			t.Errorf("it finds %q, want %q", got, want)
		}
	})
	t.Run("part/12 a directory that cannot be read counts as empty", func(t *testing.T) {
		dir := workspace(t, "no/", "yes/a.txt")
		if err := os.Chmod(filepath.Join(dir, "no"), 0); err != nil {
			t.Fatal(err)
		}
		if got, want := find(t, dir, ""), []string{"no/", "yes/"}; !slices.Equal(got, want) {
			t.Errorf("it finds %q, want %q", got, want)
		}
	})
	t.Run("part/12 a cancelled listing stops", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("no more"))
		if _, err := files.Read(ctx, workspace(t, "a.txt")); err == nil || err.Error() != "no more" {
			t.Errorf("it returns %v", err)
		}
	})
}

func TestOrderOfMatches(t *testing.T) {
	dir := workspace(t, "main.go", "maintain/deep/a.go", "cmd/lash/main.go", "cmd/lash/remain.go", "cmd/my_app_is.go", "docs/a main page/x.md", "Makefile", "cmd/lash/prompt/editor.go")
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"main", []string{"main.go", "cmd/lash/main.go", "maintain/", "docs/a main page/", "cmd/lash/remain.go", "maintain/deep/", "maintain/deep/a.go", "docs/a main page/x.md"}},
		{"MAKE", []string{"Makefile"}},
		{"cmd/", []string{"cmd/lash/", "cmd/my_app_is.go", "cmd/lash/main.go", "cmd/lash/prompt/", "cmd/lash/remain.go", "cmd/lash/prompt/editor.go"}},
		{"cmd/lash/m", []string{"cmd/lash/main.go", "cmd/lash/remain.go", "cmd/lash/prompt/", "cmd/lash/prompt/editor.go"}},
		{"cle", []string{"cmd/lash/remain.go", "cmd/lash/prompt/editor.go"}},
		{"lash/ed", []string{"cmd/lash/prompt/editor.go"}},
		{"nowhere", nil},
	} {
		if got := find(t, dir, c.query); !slices.Equal(got, c.want) {
			t.Errorf("part/12 %q finds %q, want %q", c.query, got, c.want)
		}
	}
}

func TestOneMoreLetterFindsWhatANewSearchFinds(t *testing.T) {
	dir := workspace(t, "main.go", "cmd/lash/main.go", "cmd/lash/", "maine/main.md", "docs/m.md", "a/m/n/i/a.txt", "amin", "MAIN")
	l, err := files.Read(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		f := files.NewFinder(l)
		for range 8 {
			query := rapid.StringOfN(rapid.SampledFrom([]rune("main/.dg")), 1, 4, -1).Draw(t, "query")
			for n := rapid.IntRange(0, len(query)-1).Draw(t, "typed"); n <= len(query); n++ {
				if got, want := f.Find(query[:n], 5), files.NewFinder(l).Find(query[:n], 5); !slices.Equal(got, want) {
					t.Fatalf("part/12 %q finds %q, want %q", query[:n], got, want)
				}
			}
		}
	})
}

// processor returns the processor time of this thread, which other programs on the machine
// do not change much.
func processor() time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &use); err != nil {
		panic(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// BenchmarkKey types queries in a workspace of 100,000 files, and reports the processor time of
// the slowest key press.
func BenchmarkKey(b *testing.B) {
	var paths []string
	for i := range 100_000 {
		paths = append(paths, fmt.Sprintf("services/team-%d/component-%d/internal/handler_%d_test.go", i%10, i/100, i%100))
	}
	l := files.ListOf(paths)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	slowest := map[string]time.Duration{}
	for b.Loop() {
		f := files.NewFinder(l)
		for _, query := range []string{"handler_77", "HANDLER_7_", "services/team-4/component-14/", "stg", "xyz", "eeee", "ernal/hand"} {
			for n := range len(query) + 1 {
				start := processor()
				f.Find(query[:n], 100)
				took := processor() - start
				if was, ok := slowest[query[:n]]; !ok || took < was {
					slowest[query[:n]] = took // of several runs, the one that nothing disturbed
				}
			}
		}
	}
	var most time.Duration
	for q, took := range slowest {
		if took > most {
			most = took
			b.Log(q, took)
		}
	}
	b.ReportMetric(float64(most.Microseconds())/1000, "ms/slowest-key")
}
