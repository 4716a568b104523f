package proc

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"lashd/test/skip"
)

// ownPlace returns a place outside of /tmp. It skips the test where there are no views.
func ownPlace(t *testing.T) place {
	t.Helper()
	err := Views()
	skip.Unless(t, "NAMESPACES", err == nil, lacking(err))
	base, err := os.MkdirTemp("/var/tmp", "lashd-view-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	return newPlace(t, base)
}

// eachPlace runs a test with sandboxes that have a View, as those of commands, and with others, as those of plugins.
func eachPlace(t *testing.T, test func(*testing.T, place)) {
	for name, plain := range map[string]bool{"with a view": false, "without a view": true} {
		t.Run(name, func(t *testing.T) {
			p := ownPlace(t)
			p.plain = plain
			test(t, p)
		})
	}
}

// command returns a command in the place.
func (p place) command(script string) Command {
	c := confinedShell(script, Confinement{Sandbox: p.sandbox()})
	c.Dir, c.Env = p.work, append(c.Env, "HOME="+p.home, "PATH="+os.Getenv("PATH"))
	return c
}

// python3 wraps a program of Python as a script.
func python3(program string) string { return "python3 - <<'END'\n" + program + "\nEND\n" }

func TestOwnProcesses(t *testing.T) { eachPlace(t, testOwnProcesses) }

func testOwnProcesses(t *testing.T, p place) {
	other := start(t, t.Context(), shell("exec sleep 600"))
	pid := strconv.Itoa(other.Pid())
	for name, c := range map[string]struct{ script, want string }{
		"sees its own processes only":           {"sleep 600 & until [ $(cat /proc/$!/comm) = sleep ]; do :; done; set -- /proc/[0-9]*; echo $#; cat /proc/1/comm /proc/$!/comm; ls -d /proc/" + pid, "3\nexe\nsleep\nls: cannot access '/proc/" + pid + "': No such file or directory\n"},
		"leads a session and a group":           {"ps -o pgid=,sid= -p $$ | tr -d ' ' | grep -qx $$$$ && echo it does", "it does\n"},
		"does not signal others":                {"kill -9 " + pid + " 2>/dev/null || echo refused", "refused\n"},
		"cannot end the first process":          {"kill -9 1; kill -STOP 1; echo alive", "alive\n"},
		"changes its own limits and priorities": {"sleep 600 & prlimit --pid $! --nofile=77:77 && renice -n 5 -p $! >/dev/null && taskset -p 1 $! >/dev/null && prlimit --pid $! --nofile -o SOFT --noheadings | tr -d ' ' && ps -o ni= -p $! | tr -d ' '", "77\n5\n"},
		"does not read the first process":       {"for f in environ maps mem auxv stack io; do cat /proc/1/$f 2>/dev/null && echo $f; done; ls /proc/1/root /proc/1/cwd 2>/dev/null; for f in /proc/1/fd/* /proc/1/task/*/mem /proc/1/map_files/*; do head -c 1 $f 2>/dev/null && echo $f; done; echo nothing", "nothing\n"},
		"does not trace the first process":      {python3("import ctypes\nl=ctypes.CDLL(None,use_errno=True)\nprint(l.ptrace(16,1,0,0),l.ptrace(0x4206,1,0,0),ctypes.get_errno())"), "-1 -1 1\n"},
		"does not take files of the first":      {python3("import ctypes\nl=ctypes.CDLL(None,use_errno=True)\nfd=l.syscall(434,1,0)\nprint([l.syscall(438,fd,i,0) for i in range(12)].count(-1))"), "12\n"},
		"does not write the first one's memory": {python3("import ctypes\nl=ctypes.CDLL(None,use_errno=True)\nb=ctypes.create_string_buffer(8)\nv=(ctypes.c_ulong*2)(ctypes.addressof(b),8)\nw=(ctypes.c_ulong*2)(0x400000,8)\nprint(l.process_vm_readv(1,v,1,w,1,0),l.process_vm_writev(1,v,1,w,1,0),ctypes.get_errno())"), "-1 -1 1\n"},
		"reads nothing of the kernel":           {"cat /proc/kcore /proc/keys /proc/kmsg /proc/kpageflags /proc/timer_list 2>/dev/null; ls -A /proc/acpi 2>/dev/null | head -1; echo nothing", "nothing\n"},
		"changes nothing in /proc":              {"for f in sys/kernel/core_pattern sysrq-trigger 1/oom_score_adj self/oom_score_adj; do (echo 1 > /proc/$f) 2>/dev/null && echo $f; done; echo nothing", "nothing\n"},
		"does not mount over /proc":             {"umount /proc 2>/dev/null; mount -t proc proc /proc 2>/dev/null; unshare -p true 2>/dev/null; unshare -m true 2>/dev/null || echo refused", "refused\n"},
		"sends no single messages by a pair":    {python3("import socket\nfor k in (socket.SOCK_DGRAM,socket.SOCK_RAW):\n  try: socket.socketpair(socket.AF_UNIX,k); print('made')\n  except OSError as e: print(e.errno)\na,b=socket.socketpair(socket.AF_UNIX,socket.SOCK_SEQPACKET); a.send(b'ok'); print(b.recv(9))"), "13\n13\nb'ok'\n"},
		"has the same program and arguments":    {`cat /proc/$$/comm; tr '\0' ' ' < /proc/$$/cmdline | head -c 6; readlink /proc/self/exe`, "sh\nsh -c " + realReadlink(t) + "\n"},
		"gets its streams and no other file":    {"ls /proc/self/fd | wc -l", "4\n"},
	} {
		t.Run("part11/processes a command "+name, func(t *testing.T) {
			if got := p.does(t, c.script); got != c.want {
				t.Errorf("%q\nwant %q", got, c.want)
			}
		})
	}
	select {
	case <-other.Done():
		t.Error("part11/processes a command ended another process")
	default:
	}
}

// realReadlink returns where the program readlink is.
func realReadlink(t *testing.T) string {
	t.Helper()
	path, err := filepath.EvalSymlinks("/usr/bin/readlink")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOwnExits(t *testing.T) { eachPlace(t, testOwnExits) }

func testOwnExits(t *testing.T, p place) {
	for script, want := range map[string]Exit{
		"exit 7":                   {Code: 7},
		"kill -9 $$":               {Code: -1, Signal: "SIGKILL"},
		"kill -TERM $$; sleep 600": {Code: -1, Signal: "SIGTERM"},
		"kill -SEGV $$":            {Code: -1, Signal: "SIGSEGV"},
		"sleep 600 & setsid sleep 600 & (sleep 600 &) ; exit 3": {Code: 3},
		"exec sh -c 'exit 9'": {Code: 9},
		"orphan=$(sh -c 'true & echo $!'); while kill -0 $orphan 2>/dev/null; do :; done; exit 5": {Code: 5}, // the first process has reaped another one
	} {
		t.Run("part11/processes the exit of "+script, func(t *testing.T) {
			if exit := wait(t, start(t, t.Context(), p.command(script))); exit != want {
				t.Errorf("%+v, want %+v", exit, want)
			}
		})
	}
	t.Run("part11/processes a program that does not exist", func(t *testing.T) {
		c := p.command("")
		c.Argv = []string{"/does/not/exist"}
		if _, err := Start(t.Context(), c); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v", err)
		}
	})
}

func TestOwnSignals(t *testing.T) { eachPlace(t, testOwnSignals) }

func testOwnSignals(t *testing.T, p place) {
	for name, do := range map[string]struct {
		by   func(*Process)
		trap string
	}{"an interrupt": {(*Process).Interrupt, "INT"}, "a stop": {func(p *Process) { p.Stop(nil) }, "TERM"}} {
		t.Run("part11/processes "+name+" reaches the group of a command", func(t *testing.T) {
			w := newWitness(t)
			c := p.command("trap 'echo caught; exit 5' " + do.trap + "; sh -c 'echo ready; exec sleep 600'; sleep 600")
			c.Stdout = w.end
			child := start(t, t.Context(), c)
			w.release()
			if line := w.line(t); line != "ready" {
				t.Fatalf("it says %q", line)
			}
			do.by(child)
			if line := w.line(t); line != "caught" {
				t.Errorf("it says %q", line)
			}
			if exit := wait(t, child); exit.Code != 5 {
				t.Errorf("%+v", exit)
			}
		})
	}
	t.Run("part11/processes a command that ignores a stop is killed with all that it started", func(t *testing.T) {
		w := newWitness(t)
		c := p.command("trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 600' & echo ready; while :; do sleep 600; done")
		c.Stdout, c.Grace = w.end, 50*time.Millisecond
		child := start(t, t.Context(), c)
		w.release()
		w.line(t)
		child.Stop(nil)
		if exit := wait(t, child); exit.Signal != "SIGKILL" {
			t.Errorf("%+v", exit)
		}
		if !w.allDead(time.Minute) {
			t.Error("a process still has its output")
		}
	})
	t.Run("part11/processes what leaves the group ends with the command", func(t *testing.T) {
		w := newWitness(t)
		c := p.command("setsid sh -c 'echo away; exec sleep 600' & read x < .git/go")
		if err := unix.Mkfifo(filepath.Join(p.work, ".git", "go"), 0o600); err != nil {
			t.Fatal(err)
		}
		c.Stdout = w.end
		child := start(t, t.Context(), c)
		w.release()
		w.line(t)
		if err := os.WriteFile(filepath.Join(p.work, ".git", "go"), []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if exit := wait(t, child); exit != (Exit{}) {
			t.Errorf("%+v", exit)
		}
		if !w.allDead(time.Minute) {
			t.Error("a process still has its output")
		}
	})
	t.Run("part11/processes the output ends when the command closes it", func(t *testing.T) {
		w := newWitness(t)
		c := p.command("exec >&- 2>&-; sleep 600")
		c.Stdout, c.Stderr = w.end, w.end
		start(t, t.Context(), c)
		w.release()
		if !w.allDead(time.Minute) {
			t.Error("a process still has its output")
		}
	})
}

func TestViewTerminal(t *testing.T) {
	p := ownPlace(t)
	other, first, err := pty.Open() // so the next one is not the first one of the system
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	defer first.Close()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	c := p.command("tty; tty -s <$(tty) && echo opens; ps -o tty=,stat= -p $$; echo x > /dev/tty; for t in /dev/pts/[0-9]*; do echo $t; done; echo ready; read x; echo got $x")
	c.Terminal, c.Stdin, c.Stdout, c.Stderr = true, slave, slave, slave
	child := start(t, t.Context(), c)
	slave.Close()
	var said strings.Builder
	for buffer, typed := make([]byte, 1000), false; ; {
		n, err := master.Read(buffer)
		if err != nil {
			break // the last process closed the terminal
		}
		if said.Write(buffer[:n]); typed || !strings.Contains(said.String(), "ready\r\n") {
			continue
		}
		if _, err := master.WriteString("typed\n"); err != nil {
			t.Fatal(err)
		}
		typed = true
	}
	wait(t, child)
	for _, want := range []string{slave.Name() + "\r\nopens\r\n", "s+", "x\r\n" + slave.Name() + "\r\nready\r\n", "got typed\r\n"} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("part11/processes a command in a terminal says %q, which lacks %q", said.String(), want)
		}
	}
}
