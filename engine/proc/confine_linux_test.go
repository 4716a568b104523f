package proc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/test/skip"
)

// says returns the output and the exit of a command.
func says(t *testing.T, c Command) (string, Exit) {
	t.Helper()
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	exit := wait(t, start(t, t.Context(), c))
	return out.String(), exit
}

func confinedShell(script string, c Confinement) Command {
	command := shell(script)
	command.Confine = &c
	return command
}

func TestLimits(t *testing.T) {
	for where, box := range map[string]*Sandbox{"": nil, ", in a sandbox": {}} {
		skip.Unless(t, "LANDLOCK", box == nil || Confines().Sandbox > 0, Confines().String())
		t.Run("issue/4-7 limits hold from the first instruction on, for what is started too"+where, func(t *testing.T) {
			limits := Limits{Memory: 512 << 20, OpenFiles: 50, FileSize: 3 << 20}
			const tell = "ulimit -c; ulimit -v; ulimit -n; ulimit -f"
			out, _ := says(t, confinedShell(tell+"; sh -c '"+tell+"'; ulimit -n 60 2>/dev/null || echo never more", Confinement{Limits: limits, Sandbox: box}))
			once := "0\n524288\n50\n6144\n"
			if want := once + once; !strings.HasPrefix(out, want) {
				t.Errorf("limits %q, want %q", out, want)
			}
			if (os.Getuid() != 0 || box != nil) && !strings.HasSuffix(out, "never more\n") {
				t.Errorf("a limit was raised: %q", out)
			}
		})
		t.Run("issue/4-7 a small memory limit is enough to start, and the program gets its signals"+where, func(t *testing.T) {
			w := newWitness(t)
			c := confinedShell("trap 'echo caught; exit 5' TERM; echo here; read x", Confinement{Limits: Limits{Memory: 16 << 20}, Sandbox: box})
			in, held, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			defer held.Close()
			c.Stdin, c.Stdout = in, w.end
			p := start(t, t.Context(), c)
			w.release()
			if line := w.line(t); line != "here" {
				t.Fatalf("it says %q", line)
			}
			p.Stop(nil)
			if line := w.line(t); line != "caught" {
				t.Errorf("it says %q", line)
			}
			if exit := wait(t, p); exit.Code != 5 {
				t.Errorf("%+v", exit)
			}
		})
	}
	t.Run("issue/4-7 the process limit counts in addition to existing processes", func(t *testing.T) {
		before := taskCount(t)
		out, _ := says(t, confinedShell("grep processes /proc/self/limits", Confinement{Limits: Limits{Processes: 1000}}))
		var most int
		if _, err := fmt.Sscanf(out, "Max processes %d", &most); err != nil || most <= 1000 || most > before+5000 {
			t.Errorf("the limit is %q, with %d processes before, and others that come and go: %v", out, before, err)
		}
	})
	t.Run("a confined child gets its arguments, environment and streams, and nothing else", func(t *testing.T) {
		c := Command{
			Argv: []string{"sh", "-c", `printf '%s|' "$0" "$@"; env; ls /proc/self/fd`, "a b", "", "ü"}, Path: "/bin/sh",
			Env: []string{"A=1", "GODEBUG=inittrace=1", "PATH=" + os.Getenv("PATH"), "A=2"}, Nonce: "n", Confine: &Confinement{},
		}
		out, _ := says(t, c)
		for _, want := range []string{"a b||ü|", "A=2\n", "GODEBUG=inittrace=1\n", nonceVariable + "=n\n"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q lacks %q", out, want)
			}
		}
		if strings.Contains(out, "init ") || strings.Contains(out, "A=1") || !strings.HasSuffix(out, "\n0\n1\n2\n3\n") {
			t.Errorf("there is more than it was given: %q", out)
		}
	})
	t.Run("the error names the reason if a confined child cannot start", func(t *testing.T) {
		for _, c := range []Command{
			{Argv: []string{"/does/not/exist"}, Confine: &Confinement{}},
			{Argv: []string{"not-there"}, Path: "./not-there", Dir: t.TempDir(), Confine: &Confinement{}},
		} {
			if p, err := Start(t.Context(), c); !errors.Is(err, os.ErrNotExist) || p != nil {
				t.Errorf("%q: %v", c.Argv, err)
			}
		}
		if n := Alive(); n != 0 {
			t.Errorf("%d children are alive", n)
		}
	})
}

// taskCount returns the number of threads of this user.
func taskCount(t *testing.T) int {
	t.Helper()
	out, err := exec.Command("sh", "-c", `for f in /proc/[0-9]*/task/*/status; do cat $f; done 2>/dev/null | grep -c "^Uid:	$(id -u)	"`).Output()
	var n int
	if _, scan := fmt.Sscan(string(out), &n); err != nil || scan != nil {
		t.Fatal(err, scan)
	}
	return n
}

// eachSystem runs a test where children have process namespaces, and as on a system that grants none.
func eachSystem(t *testing.T, test func(*testing.T)) {
	skip.Unless(t, "LANDLOCK", Confines().Sandbox > 0, Confines().String())
	t.Run("with namespaces", func(t *testing.T) {
		err := Views()
		skip.Unless(t, "NAMESPACES", err == nil, lacking(err))
		test(t)
	})
	t.Run("without namespaces", func(t *testing.T) {
		before := Views()
		views.err = errors.New("not in this test")
		defer func() { views.err = before }()
		test(t)
	})
}

// denies reports whether an output says that something was refused, or is not there for the program.
func denies(out string) bool {
	return slices.ContainsFunc([]string{"ermission denied", "not permitted", "cross-device", "Read-only file system", "No such file", "No such process"}, func(sign string) bool {
		return strings.Contains(out, sign)
	})
}

func TestSandbox(t *testing.T) { eachSystem(t, testSandbox) }

func testSandbox(t *testing.T) {
	base := t.TempDir()
	in := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	for _, dir := range []string{"own", "data", "other"} {
		if err := errors.Join(os.Mkdir(in(dir), 0o755), os.WriteFile(in(dir, "file"), []byte(dir+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(in("other", "file"), in("data", "link")), os.Symlink(in("other"), in("data", "way"))); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", in("data", "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	python := func(script string) string { return "python3 -S -c '" + script + "'" }
	connect := python(`import socket; s=socket.socket(socket.AF_INET); s.connect(("127.0.0.1", ` + strings.Split(tcp.Addr().String(), ":")[1] + `)); print("over")`)

	box := Sandbox{Read: []string{in("own"), in("not there")}, Write: []string{in("data")}}
	open := box
	open.Network = true
	for _, c := range []struct {
		what, script, want string // want is part of the output; empty: it must fail
		box                Sandbox
	}{
		{"reads its read paths", "cat " + in("own", "file"), "own", box},
		{"writes its write paths", "echo x > " + in("data", "new") + " && mv " + in("data", "new") + " " + in("data", "newer") + " && cat " + in("data", "newer"), "x", box},
		{"does not write its read paths", "echo x > " + in("own", "file"), "", box},
		{"does not read elsewhere", "cat " + in("other", "file"), "", box},
		{"does not list elsewhere", "ls " + in("other"), "", box},
		{"does not read elsewhere by a link", "cat " + in("data", "link"), "", box},
		{"does not write elsewhere", "echo x > " + in("other", "file"), "", box},
		{"does not truncate elsewhere", "truncate -s 0 " + in("other", "file"), "", box},
		{"does not create files elsewhere", "echo x > " + in("other", "new"), "", box},
		{"does not remove elsewhere", "rm " + in("other", "file"), "", box},
		{"does not move things out", "mv " + in("data", "file") + " " + in("other", "file"), "", box},
		{"does not link things in", "ln " + in("other", "file") + " " + in("data", "hard"), "", box},
		{"runs programs of the system", "ls /usr >/dev/null && grep -c . /etc/passwd >/dev/null && echo ran", "ran", box},
		{"does not read other system files", "cat /etc/profile", "", box},
		{"does not see the environment of lashd", fmt.Sprintf("cat /proc/%d/environ", os.Getpid()), "", box},
		{"does not reach files through the root of lashd", fmt.Sprintf("cat /proc/%d/root%s", os.Getpid(), in("own", "file")), "", box},
		{"has no privileges", "grep CapEff /proc/self/status | grep -v 0000000000000000 || echo none", "none", box},
		{"confines its children as well", "sh -c 'cat " + in("other", "file") + "'", "", box},
		{"connects to nothing", connect, "", box},
		{"connects with network", connect, "over", open},
		{"makes no UDP socket", python(`import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM); print("made")`), "", box},
		{"makes no local socket", python(`import socket; s=socket.socket(socket.AF_UNIX); s.connect("` + in("data", "socket") + `"); print("over")`), "", box},
		{"makes no local socket with network", python(`import socket; s=socket.socket(socket.AF_UNIX); s.connect("` + in("data", "socket") + `"); print("over")`), "", open},
		{"makes pairs of sockets", python(`import socket; a,b=socket.socketpair(); a.send(b"hello"); print(b.recv(5))`), "hello", box},
	} {
		t.Run("reliability/T10 a sandboxed child "+c.what, func(t *testing.T) {
			out, exit := says(t, confinedShell(c.script, Confinement{Sandbox: &c.box}))
			if c.want == "" && (exit.Code == 0 || !denies(out)) || c.want != "" && (exit.Code != 0 || !strings.Contains(out, c.want)) {
				t.Errorf("it says %q, %+v", out, exit)
			}
			if c.want != "" || strings.Contains(c.script, "other file") {
				return
			}
			if strings.HasPrefix(c.script, "cat") || strings.HasPrefix(c.script, "python3") { // changes nothing
				if out, exit := says(t, shell(c.script)); exit.Code != 0 {
					t.Errorf("without a sandbox the result is %q, %+v", out, exit)
				}
			}
		})
	}
	t.Run("reliability/T10 a sandboxed child cannot signal other processes", func(t *testing.T) {
		skip.Unless(t, "LANDLOCK_SIGNAL", Confines().Sandbox >= 6, "Landlock does not know of signals")
		other := start(t, t.Context(), shell("exec sleep 600"))
		script := fmt.Sprintf("kill -9 %d; sleep 600 & kill -9 $! && echo its own", other.Pid())
		if out, _ := says(t, confinedShell(script, Confinement{Sandbox: &box})); !denies(out) || !strings.Contains(out, "its own") {
			t.Errorf("it says %q", out)
		}
		select {
		case <-other.Done():
			t.Error("the other one is dead")
		case <-time.After(50 * time.Millisecond):
		}
	})
	t.Run("reliability/T8 a sandbox path with a symbolic link fails the start", func(t *testing.T) {
		linked := Sandbox{Write: []string{in("data", "way")}}
		_, err := Start(t.Context(), confinedShell("true", Confinement{Sandbox: &linked}))
		if err == nil || !strings.Contains(err.Error(), in("data", "way")+": too many levels of symbolic links") {
			t.Errorf("%v", err)
		}
	})
}

func TestSandboxThatMustBe(t *testing.T) {
	c := Confinement{Sandbox: &Sandbox{Required: true}}
	err := c.demand(Support{Lacking: "too old"})
	if !errors.Is(err, ErrNoSandbox) || err.Error() != "no sandbox available: too old" {
		t.Errorf("without one: %v", err)
	}
	if err := c.demand(Support{Sandbox: 1}); err != nil {
		t.Errorf("with one: %v", err)
	}
	for s, want := range map[Support]string{{Sandbox: 7}: "landlock abi 7", {Lacking: "too old"}: "none: too old"} {
		if s.String() != want {
			t.Errorf("%+v is shown as %q, want %q", s, s.String(), want)
		}
	}
}

// BenchmarkConfined measures the cost of the gate.
func BenchmarkConfined(b *testing.B) {
	for name, confine := range map[string]*Confinement{"free": nil, "limits": {Limits: Limits{OpenFiles: 100}}, "sandbox": {Sandbox: &Sandbox{}}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p, err := Start(b.Context(), Command{Argv: []string{"true"}, Confine: confine})
				if err != nil {
					b.Fatal(err)
				}
				if exit, err := p.Wait(); err != nil || exit.Code != 0 {
					b.Fatal(exit, err)
				}
			}
		})
	}
}
