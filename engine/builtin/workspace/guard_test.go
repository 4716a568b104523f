//go:build unix

package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/skip"
)

const (
	outsideText = "OUTSIDE-CONTENT"
	stateText   = "STATE-CONTENT"
)

// trap is a workspace full of paths that lead out of it, and into the state directory inside it.
type trap struct {
	*bench
	outside string
}

func newTrap(t testing.TB) *trap {
	t.Helper()
	top := t.TempDir()
	b := &trap{
		bench:   &bench{dir: filepath.Join(top, "ws"), state: filepath.Join(top, "ws/var/state"), host: &host{}},
		outside: filepath.Join(top, "outside"),
	}
	put(t, filepath.Join(b.outside, "secret.txt"), outsideText)
	put(t, filepath.Join(top, "ws2/secret.txt"), outsideText) // a sibling with our name as its prefix
	for _, name := range []string{"lashd.db", "lashd.db-wal", "lashd.db-shm", "blobs/x"} {
		put(t, filepath.Join(b.state, name), stateText)
	}
	b.put(t, "ok.txt", "fine\n")
	b.put(t, "a/b/c/file.txt", "fine\n")
	for name, target := range map[string]string{
		"link_state": "var/state", "link_db": "var/state/lashd.db", "link_var": "var", "abs_state": b.state,
		"chain1": "chain2", "chain2": "a/chain3", "a/chain3": "../var/state", "out": "../outside", "abs_out": b.outside,
		"chain_out": "a/up", "a/up": "../../outside", "dangling_out": "../outside/new", "dangling_state": "var/state/new",
		"loop": "loop", "loop1": "loop2", "loop2": "loop1", "procroot": "/proc/self/root", "proccwd": "/proc/self/cwd",
		"abs_in": filepath.Join(b.dir, "a"), "self": ".", "parent": "..",
	} {
		symlink(t, target, filepath.Join(b.dir, name))
	}
	for from, to := range map[string]string{"lashd.db": "hard.db", "lashd.db-shm": "a/hard.shm", "blobs/x": "hard.blob"} {
		if err := os.Link(filepath.Join(b.state, from), filepath.Join(b.dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	symlink(t, "fifo", filepath.Join(b.dir, "link_fifo"))
	symlink(t, "/dev/zero", filepath.Join(b.dir, "zero"))
	b.open(t)
	return b
}

// evil returns paths that tools must reject.
func (b *trap) evil() []string {
	paths := []string{
		"..", "../", "../.", "../..", "../outside", "../outside/secret.txt", "../ws2/secret.txt", "a/../../outside/secret.txt",
		"a/b/c/../../../../outside/secret.txt", "./../outside/secret.txt", "a//..//..//outside//secret.txt", "../ws/../outside/secret.txt",
		"missing/../../outside/secret.txt", "ok.txt/../../outside/secret.txt", "self/self/../../outside/secret.txt", "parent/outside/secret.txt",
		"parent", "parent/ws/../outside/secret.txt", "abs_in/../../outside/secret.txt", "a/up/secret.txt",
		"/", "//", "/etc/passwd", "//etc/passwd", "/etc/../etc/passwd", b.outside, b.outside + "/secret.txt", b.dir + "2/secret.txt",
		b.dir + "/../outside/secret.txt", "/proc/self/root" + b.outside + "/secret.txt", "/proc/self/root/etc/passwd",
		"/proc/self/environ", "/proc/self/mem", "/proc/self/fd/0", "/proc/self/cwd/../../../outside/secret.txt", "/proc/1/root/etc/passwd",
		"/proc/thread-self/root/etc/passwd", "/dev/zero", "/dev/stdin", "/dev/fd/0", "/dev/tty",
		"ok.txt\x00", "\x00", "../outside/secret.txt\x00.txt", "a/\x00/b", "\x00/etc/passwd", b.dir + "\x00",
		"loop", "loop1", "loop/x", "loop2/secret.txt", "zero", "procroot", "proccwd/..", "fifo", "link_fifo", "a/../fifo",
		"procroot" + b.outside + "/secret.txt", "procroot/etc/passwd",
		"hard.db", "hard.blob", "a/hard.shm", "./hard.db", "a/../hard.db", "self/hard.db", "abs_in/hard.shm", "link_db", "dangling_out",
		"var/./state/lashd.db", "var//state//lashd.db", "var/state/../state/lashd.db", "a/../var/state/lashd.db", "var/../var/state/lashd.db",
		"/proc/self/root" + b.state + "/lashd.db", "/proc/self/root" + b.dir + "/hard.db", "self/self/self/var/state/lashd.db",
		"var/state/blobs/../lashd.db", "link_state/../state/lashd.db", "chain_out/secret.txt", "parent/ws/hard.db", "out/../ws/hard.db",
		strings.Repeat("../", 200) + "etc/passwd", strings.Repeat("a/../", 200) + "../outside/secret.txt",
		strings.Repeat("self/", 50) + "ok.txt",
		"..//outside/secret.txt", "a/./../../outside/secret.txt", "a/b/../../a/up/secret.txt", "./link_db", "self/link_db", "abs_in/../link_db",
	}
	for _, into := range []string{"out", "abs_out", "chain_out", "a/up", "abs_in/up", "self/out"} {
		for _, name := range []string{"", "/", "/secret.txt", "/new.txt", "/new/dir.txt"} {
			paths = append(paths, into+name)
		}
	}
	for _, into := range []string{"var/state", "link_state", "abs_state", "chain1", "chain2", "a/chain3", "link_var/state", "self/link_state", b.state, b.dir + "/link_state"} {
		for _, name := range []string{"", "/", "/lashd.db", "/lashd.db-wal", "/blobs", "/blobs/x", "/new.db-wal", "/new/dir.txt", "/."} {
			paths = append(paths, into+name)
		}
	}
	return paths
}

// odd returns paths that only look evil: they name new or existing files of the workspace.
var odd = []string{
	"...", ".../x", "..x", "x..", "a/..b", "ok.txt.", "ok.txt ", " ok.txt", "OK.TXT", "Ok.txt", "VAR/STATE/lashd.db", "var/state./lashd.db",
	"var/state /lashd.db", "var/State/lashd.db", "hard.db.", "HARD.DB", "~/x", "~root", "$HOME/x", "%2e%2e/outside/secret.txt", "..%2foutside",
	`..\outside\secret.txt`, `C:\x`, "C:/x", "file:///etc/passwd", "caf\u00e9", "cafe\u0301", "\u2024\u2024/x", "\uff0e\uff0e/outside", "\u202e..", "a\nb", "con", "nul", "aux.txt",
	"var/stat\u0435/lashd.db", "-rf", "--help", "*", "?", "[", "{", "!", "#x", ".git/x", ".gitignore/x", "a/b/c/file.txt/",
}

type args map[string]any

// calls returns every possible call with one path.
func calls(p string) []struct {
	tool string
	args args
} {
	patch := func(body string) args { return args{"patch": "*** Begin Patch\n" + body + "*** End Patch"} }
	return []struct {
		tool string
		args args
	}{
		{"read", args{"path": p}},
		{"list", args{"path": p}},
		{"glob", args{"pattern": "**", "path": p}},
		{"glob", args{"pattern": p}},
		{"grep", args{"pattern": "CONTENT", "path": p}},
		{"grep", args{"pattern": "root:", "path": p}},
		{"edit", args{"path": p, "old": "CONTENT", "new": "owned"}},
		{"write", args{"path": p, "content": "owned"}},
		{"patch", patch("*** Add File: " + p + "\n+owned\n")},
		{"patch", patch("*** Update File: " + p + "\n-" + stateText + "\n+owned\n")},
		{"patch", patch("*** Update File: " + p + "\n*** Move to: stolen.txt\n")},
		{"patch", patch("*** Update File: ok.txt\n*** Move to: " + p + "\n")},
		{"patch", patch("*** Delete File: " + p + "\n")},
	}
}

// inventory describes the files that must not change, without opening them.
func (b *trap) inventory(t testing.TB) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, top := range []string{b.outside, b.dir + "2", b.state, filepath.Dir(b.dir)} {
		err := filepath.WalkDir(top, func(p string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if p == b.dir {
				return fs.SkipDir
			}
			fi, err := e.Info()
			if err != nil {
				return err
			}
			seen[p] = fmt.Sprint(fi.Mode(), fi.Size(), fi.Sys().(*syscall.Stat_t).Ino)
			if !fi.IsDir() {
				seen[p] += fi.ModTime().String()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return seen
}

// attack makes one call and reports whether it reached a forbidden file.
func (b *trap) attack(t testing.TB, name string, a args, before map[string]string) protocol.ToolOutput {
	t.Helper()
	out := b.call(t, name, a)
	data, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{outsideText, stateText, "root:x:0"} {
		if strings.Contains(string(data), leak) {
			t.Errorf("%s %v shows what it must not: %s", name, a, data)
		}
	}
	if after := b.inventory(t); !maps.Equal(before, after) {
		t.Fatalf("%s %v changed files: before %v, after %v", name, a, before, after)
	}
	return out
}

func TestPathGuard(t *testing.T) {
	t.Run("reliability/T8 paths that lead out or to the state directory are refused", func(t *testing.T) {
		b := newTrap(t)
		before := b.inventory(t)
		paths := b.evil()
		if len(paths) < 150 {
			t.Fatalf("only %d paths", len(paths))
		}
		for _, p := range paths {
			for _, c := range calls(p) {
				out := b.attack(t, c.tool, c.args, before)
				if byPath := c.args["path"] == p || c.tool == "patch"; byPath && out.Status != protocol.OutputFailure {
					t.Errorf("%s %q: got %s (%s), want a refusal", c.tool, p, out.Status, out.Text)
				}
			}
		}
	})
	t.Run("reliability/T8 paths that look strange stay inside", func(t *testing.T) {
		for _, p := range odd {
			b := newTrap(t)
			before := b.inventory(t)
			for _, c := range calls(p) {
				b.attack(t, c.tool, c.args, before)
			}
		}
	})
	t.Run("other spellings of valid paths work", func(t *testing.T) {
		b := newTrap(t)
		symlink(t, b.dir, b.dir+"-link")
		for _, p := range []string{
			"ok.txt", "./ok.txt", "a/../ok.txt", "a//b/../../ok.txt", b.dir + "/ok.txt", b.dir + "/a/../ok.txt", "self/ok.txt", "abs_in/b/c/file.txt",
			b.dir + "-link/ok.txt", "/proc/self/root" + b.dir + "/ok.txt", "a/b/c/file.txt", "abs_in/../ok.txt", "var/../ok.txt",
		} {
			has(t, b.ok(t, "read", args{"path": p}).Text, "fine")
		}
		has(t, b.ok(t, "list", args{}).Text, "var/\n", "ok.txt\n")
		if out := b.ok(t, "list", args{}); strings.Contains(out.Text, "state/") || strings.Contains(out.Text, "hard.db") {
			t.Errorf("protected files are listed:\n%s", out.Text)
		}
	})
	t.Run("a workspace that becomes a symbolic link is refused until it is a directory again", func(t *testing.T) {
		b := newTrap(t)
		has(t, b.ok(t, "read", args{"path": "ok.txt"}).Text, "fine")
		away := b.dir + "-away"
		if err := os.Rename(b.dir, away); err != nil {
			t.Fatal(err)
		}
		symlink(t, away, b.dir)
		for _, path := range []string{"ok.txt", b.dir + "/ok.txt", away + "/ok.txt"} {
			b.fails(t, "workspace_elsewhere", "read", args{"path": path})
			b.fails(t, "workspace_elsewhere", "write", args{"path": path, "content": "x"})
		}
		if err := errors.Join(os.Remove(b.dir), os.Mkdir(b.dir, 0o755), os.WriteFile(filepath.Join(b.dir, "ok.txt"), []byte("made again"), 0o644)); err != nil {
			t.Fatal(err)
		}
		has(t, b.ok(t, "read", args{"path": "ok.txt"}).Text, "made again")
	})
	t.Run("a workspace inside the state directory is refused", func(t *testing.T) {
		b := newTrap(t)
		f := newFiles(filepath.Join(b.dir, "var/state/blobs"), b.state, &shelf{})
		defer f.close()
		b.files.close()
		b.files = f
		b.fails(t, "protected_path", "list", args{})
	})
	t.Run("devices are refused", func(t *testing.T) {
		b := newTrap(t)
		err := syscall.Mknod(filepath.Join(b.dir, "dev"), syscall.S_IFCHR|0o600, 1<<8|5)
		skip.Unless(t, "MKNOD", err == nil, fmt.Sprint("no device can be made: ", err))
		b.fails(t, "not_regular", "read", args{"path": "dev"})
		b.fails(t, "not_regular", "write", args{"path": "dev", "content": "x"})
	})
	t.Run("sockets are refused", func(t *testing.T) {
		b := newTrap(t)
		t.Chdir(b.dir) // the full name may be too long for a socket
		l, err := net.Listen("unix", "sock")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		b.fails(t, "not_regular", "read", args{"path": "sock"})
	})
	t.Run("bind mounts of the state directory are refused", func(t *testing.T) {
		b := newTrap(t)
		for from, to := range map[string]string{b.state: "mnt", b.state + "/blobs": "mnt2", b.state + "/lashd.db": "mnt.db"} {
			target := filepath.Join(b.dir, to)
			if strings.HasSuffix(to, ".db") {
				put(t, target, "")
			} else {
				mkdir(t, target)
			}
			out, err := exec.Command("mount", "--bind", from, target).CombinedOutput()
			skip.Unless(t, "MOUNT", err == nil, "nothing can be mounted: "+string(out))
			t.Cleanup(func() { exec.Command("umount", target).Run() })
		}
		before := b.inventory(t)
		for _, p := range []string{"mnt", "mnt/lashd.db", "mnt/new", "mnt2", "mnt2/x", "mnt.db"} {
			for _, c := range calls(p) {
				b.attack(t, c.tool, c.args, before)
			}
		}
		b.fails(t, "protected_path", "read", args{"path": "mnt.db"})
		b.fails(t, "protected_path", "read", args{"path": "mnt2/x"})
	})
}

// A name alternates between a file that tools may use and one that they may not.
func TestPathGuardDuringSwaps(t *testing.T) {
	link := func(from string) func(*trap, string) error {
		return func(b *trap, name string) error { return os.Link(filepath.Join(b.dir, from), name) }
	}
	point := func(to string) func(*trap, string) error {
		return func(_ *trap, name string) error { return os.Symlink(to, name) }
	}
	fifo := func(_ *trap, name string) error { return syscall.Mkfifo(name, 0o600) }
	for name, forms := range map[string][]func(*trap, string) error{
		"between a file and a state file":  {link("good/lashd.db"), link("var/state/lashd.db")},
		"between files, links and a FIFO":  {link("good/lashd.db"), point("../outside/secret.txt"), fifo, link("var/state/lashd.db"), point("hard.db")},
		"between links to directories":     {point("good"), point("var/state"), point("../outside"), point("fifo")},
		"between a directory and any link": {moveGood, point("var/state"), moveGood, link("var/state/lashd.db"), moveGood, fifo, moveGood, point("../outside")},
	} {
		t.Run("reliability/T8 "+name, func(t *testing.T) { swapDuringCalls(t, forms) })
	}
}

func moveGood(b *trap, name string) error { return os.Rename(filepath.Join(b.dir, "good"), name) }

func swapDuringCalls(t *testing.T, forms []func(*trap, string) error) {
	b := newTrap(t)
	swap, next := filepath.Join(b.dir, "swap"), filepath.Join(b.dir, "next")
	for _, name := range []string{"lashd.db", "secret.txt", "blobs/x"} {
		b.put(t, "good/"+name, "fine\n")
	}
	before := b.inventory(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			if fi, err := os.Lstat(swap); err == nil && fi.IsDir() {
				os.Rename(swap, filepath.Join(b.dir, "good"))
			}
			// The new form replaces the old one atomically where the system supports it.
			if forms[i%len(forms)](b, next) != nil || os.Rename(next, swap) != nil {
				os.Remove(swap)
				os.Rename(next, swap)
			}
			os.Remove(next)
		}
	})
	var outputs sync.Map
	for _, p := range []string{"swap", "swap/lashd.db", "swap/blobs/x"} {
		all.Go(func() {
			for ctx.Err() == nil {
				for _, c := range calls(p)[:8] {
					out := b.callCtx(t, ctx, c.tool, c.args)
					outputs.Store(out.Text+string(out.Value), c)
				}
			}
		})
	}
	all.Wait()
	outputs.Range(func(text, call any) bool {
		if strings.Contains(text.(string), outsideText) || strings.Contains(text.(string), stateText) {
			t.Errorf("%v got %v", call, text)
		}
		return true
	})
	if after := b.inventory(t); !maps.Equal(before, after) {
		t.Errorf("files changed: before %v, after %v", before, after)
	}
	for _, f := range b.files.kept.files {
		f.Close()
	}
}

func TestToolsKeepDatabaseLocks(t *testing.T) {
	t.Run("reliability/F6", func(t *testing.T) {
		skip.Unless(t, "LINUX", runtime.GOOS == "linux", "another process is asked about the lock in the way of Linux")
		b := newTrap(t)
		name := filepath.Join(b.state, "lashd.db")
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
			t.Fatal(err)
		}
		before := b.inventory(t)
		for _, p := range append(b.evil(), ".", "", "var") {
			for _, c := range calls(p) {
				b.attack(t, c.tool, c.args, before)
			}
		}
		out, err := exec.Command(os.Args[0], "tell-lock", name).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "true" {
			t.Errorf("the lock is held: %s, %v, want true", out, err)
		}
	})
}

func FuzzPathGuard(f *testing.F) {
	b := newTrap(f)
	for _, p := range append(b.evil(), odd...) {
		f.Add(strings.ReplaceAll(p, b.dir, "/ws"))
	}
	before := b.inventory(f)
	f.Fuzz(func(t *testing.T, p string) {
		if strings.HasPrefix(p, "/ws") {
			p = b.dir + p[3:]
		}
		for _, c := range calls(p) {
			b.attack(t, c.tool, c.args, before)
		}
	})
}
