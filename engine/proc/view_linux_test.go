package proc

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lashd/test/skip"
)

// place is a home directory with a workspace, secrets and a directory for temporary files.
type place struct {
	home, work, temp string
	plain            bool // sandboxes in it have no View
}

// newPlace returns a place below a directory that is not in /tmp.
func newPlace(t *testing.T, base string) place {
	t.Helper()
	p := place{home: filepath.Join(base, "home"), work: filepath.Join(base, "home", "work"), temp: filepath.Join(base, "temp")}
	for path, text := range map[string]string{
		"home/work/file": "work\n", "home/.ssh/id": "canary\n", "home/.netrc": "canary\n", "home/plain": "plain\n", "home/work/.git/config": "config\n",
		"home/work/.git/hooks/h": "hook\n", "home/work/.git/index": "index\n", "temp/mine": "mine\n", "home/state/key": "canary\n", "home/state/ws/in": "inside\n",
	} {
		path = filepath.Join(base, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// sandbox returns the sandbox of a command in the place.
func (p place) sandbox() *Sandbox {
	git := filepath.Join(p.work, ".git")
	if p.plain {
		return &Sandbox{Write: []string{p.work}}
	}
	return &Sandbox{
		Write: []string{p.work, git, filepath.Join(p.home, "state", "ws")},
		Keep:  []string{filepath.Join(git, "config"), filepath.Join(git, "hooks")},
		View: &View{
			Hide: []string{filepath.Join(p.home, ".ssh"), filepath.Join(p.home, ".netrc"), filepath.Join(p.home, ".gone"), filepath.Join(p.home, "state")},
			Temp: p.temp,
		},
	}
}

// does returns the output of a script in the place.
func (p place) does(t *testing.T, script string) string {
	t.Helper()
	c := confinedShell(script, Confinement{Sandbox: p.sandbox()})
	c.Dir, c.Env = p.work, append(c.Env, "HOME="+p.home, "PATH="+os.Getenv("PATH"))
	out, _ := says(t, c)
	return out
}

// lacking says why there are no views.
func lacking(err error) string { return fmt.Sprint(err) }

func TestView(t *testing.T) {
	err := Views()
	skip.Unless(t, "NAMESPACES", err == nil, lacking(err))
	base, err := os.MkdirTemp("/var/tmp", "lashd-view-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	for where, base := range map[string]string{"outside of /tmp": base, "in /tmp": t.TempDir()} {
		t.Run(where, func(t *testing.T) {
			p := newPlace(t, base)
			for name, c := range map[string]struct{ script, want string }{
				"the workspace is writable":                    {"cat file && echo more >> file && mkdir d && mv d e && rmdir e && ln -s file l && rm l && echo done", "work\ndone\n"},
				"a hidden directory is empty":                  {"ls -A $HOME/.ssh 2>/dev/null; cat $HOME/.ssh/id 2>/dev/null || echo closed", "closed\n"},
				"a hidden file has nothing":                    {"cat $HOME/.netrc 2>/dev/null || echo closed", "closed\n"},
				"a writable path in a hidden one is reachable": {"cat $HOME/state/key 2>/dev/null; cat $HOME/state/ws/in; echo x > $HOME/state/ws/out && ls $HOME/state", "inside\nws\n"},
				"kept files cannot be changed or moved":        {"for x in 'echo y > .git/config' 'rm .git/config' 'mv .git/hooks x' 'mv .git x' 'echo y > .git/hooks/h' 'touch .git/hooks/n'; do sh -c \"$x\" 2>/dev/null && echo \"$x\"; done; cat .git/config; echo z > .git/index && echo staged", "config\nstaged\n"},
				"/tmp is its own":                              {"ls /tmp | head -2 | grep mine; echo x > /tmp/made; ls -A /dev/shm; echo x > /dev/shm/y && cat /dev/shm/y", "mine\nx\n"},
				"the system cannot be changed":                 {"touch /etc/x /usr/x $HOME/x 2>/dev/null; chmod 777 /etc/passwd 2>/dev/null || echo refused; head -c 5 /etc/passwd", "refused\nroot:"},
				"devices work":                                 {"echo x > /dev/null && head -c 1 /dev/zero | wc -c && ls /dev/pts >/dev/null && echo ok", "1\nok\n"},
			} {
				t.Run("part11/view "+name, func(t *testing.T) {
					if got := p.does(t, c.script); got != c.want {
						t.Errorf("%q\nwant %q", got, c.want)
					}
				})
			}
			if data, err := os.ReadFile(filepath.Join(p.temp, "made")); err != nil || string(data) != "x\n" {
				t.Errorf("part11/view the file in /tmp is %q, %v", data, err)
			}
			if where != "in /tmp" {
				if got := p.does(t, "cat $HOME/plain"); got != "plain\n" {
					t.Errorf("part11/view a file beside hidden ones: %q", got)
				}
			}
		})
	}
}

func TestViewHidesLater(t *testing.T) {
	err := Views()
	skip.Unless(t, "NAMESPACES", err == nil, lacking(err))
	base, err := os.MkdirTemp("/var/tmp", "lashd-view-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	p := newPlace(t, base)
	if err := unix.Mkfifo(filepath.Join(p.work, "go"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := confinedShell("read x < $PWD/go; for f in .netrc .gone .ssh/id state/key; do cat $HOME/$f; done", Confinement{Sandbox: p.sandbox()})
	c.Dir, c.Env = p.work, append(c.Env, "HOME="+p.home, "PATH="+os.Getenv("PATH"))
	var out strings.Builder
	c.Stdout = &out
	child := start(t, t.Context(), c)
	for _, path := range []string{".netrc", ".gone", ".ssh", "state"} {
		_ = os.Rename(filepath.Join(p.home, path), filepath.Join(p.home, path+".old"))
		target := filepath.Join(p.home, path)
		if path == ".ssh" || path == "state" {
			if err := os.Mkdir(target, 0o755); err != nil {
				t.Fatal(err)
			}
			target = filepath.Join(target, map[string]string{".ssh": "id", "state": "key"}[path])
		}
		if err := os.WriteFile(target, []byte("canary\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(p.work, "go"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	wait(t, child)
	if strings.Contains(out.String(), "canary") {
		t.Errorf("part11/view what was replaced while the command ran can be read: %q", out.String())
	}
}

func TestViewNetwork(t *testing.T) {
	err := Views()
	skip.Unless(t, "NAMESPACES", err == nil, lacking(err))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("canary")) }))
	defer server.Close()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := newPlace(t, t.TempDir())
	const own = `
import socket,sys
s=socket.create_server(("127.0.0.1",0)); c=socket.create_connection(s.getsockname()); print("own loopback")
try: socket.create_connection(("127.0.0.1",int(sys.argv[1])),2); print("reached the host")
except OSError as e: print("refused")
try: socket.socket(socket.AF_UNIX).connect(sys.argv[2]); print("reached a local socket")
except OSError as e: print("refused")
`
	if err := os.WriteFile(filepath.Join(p.work, "net.py"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	if got := p.does(t, "python3 net.py "+port+" "+listener.Addr().String()); got != "own loopback\nrefused\nrefused\n" {
		t.Errorf("part11/view the network: %q", got)
	}
}

// BenchmarkView starts a program with a View and without a sandbox, in turn. It reports both medians and what the View adds.
func BenchmarkView(b *testing.B) { compare(b, []string{"/bin/true"}, 1) }

// BenchmarkCommandInView starts a shell that runs a hundred programs, with a View and without a sandbox, in turn. So it reports what a
// program costs in a shell that is confined already.
func BenchmarkCommandInView(b *testing.B) {
	compare(b, []string{"sh", "-c", "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done"}, 100)
}

// compare runs a command without and with a View, in turn, and reports both medians and what the View adds, for one of many programs.
func compare(b *testing.B, argv []string, many float64) {
	err := Views()
	skip.Unless(b, "NAMESPACES", err == nil, lacking(err))
	temp := b.TempDir()
	view := &Confinement{Sandbox: &Sandbox{Write: []string{temp}, View: &View{Temp: temp, Hide: []string{"/root/.ssh", "/root/.gnupg", "/etc/shadow", "/run/user"}}}}
	took := [2][]time.Duration{}
	for b.Loop() {
		for i, confine := range []*Confinement{nil, view} {
			begun := time.Now()
			p, err := Start(b.Context(), Command{Argv: argv, Dir: temp, Confine: confine})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Wait(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(begun))
		}
	}
	var median [2]float64
	for i, all := range took {
		slices.Sort(all)
		median[i] = float64(all[len(all)/2].Microseconds()) / 1000 / many
	}
	b.ReportMetric(median[0], "bare-ms")
	b.ReportMetric(median[1], "view-ms")
	b.ReportMetric(median[1]-median[0], "added-ms")
}
