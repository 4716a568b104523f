package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"lashd/test/skip"
)

// beginHere makes this process the daemon of a directory during a test.
func beginHere(t testing.TB, nonce string) *Mark {
	t.Helper()
	m, err := Begin(t.TempDir(), nonce)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.End(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// needsCgroups skips the test if this process cannot create a cgroup.
func needsCgroups(t *testing.T) {
	t.Helper()
	beginHere(t, nonce(t)+"-probe")
	how := Containment()
	skip.Unless(t, "CGROUP", strings.Contains(how, " and cgroup "), how)
	family.cgroup.close()
}

// killAtOnce stops and then kills processes, so that none can react to the end of another.
func killAtOnce(t *testing.T, pids ...int) {
	t.Helper()
	for _, signal := range []unix.Signal{unix.SIGSTOP, unix.SIGKILL} {
		for _, pid := range pids {
			if err := unix.Kill(pid, signal); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// running reports whether a process runs.
func running(pid int) bool {
	s, err := statusOf(pid)
	return err == nil && s.state != 'Z'
}

func TestCgroupOfAKilledDaemon(t *testing.T) {
	needsCgroups(t)
	t.Run("outside/10 the next start ends what a daemon and its supervisor left when both were killed", func(t *testing.T) {
		a, other := newAdopter(t), newAdopter(t)
		for _, one := range []*adopter{a, other} {
			killAtOnce(t, one.supervisorOf(t), one.pid)
			one.Wait()
			if !running(one.escapee) {
				t.Fatal("the process that daemonized died with its supervisor, so nothing is shown")
			}
		}
		for _, one := range []*adopter{a, other} {
			if !running(one.escapee) {
				t.Error("the start of another daemon ended it")
			}
			m, err := Begin(one.dir, one.nonce)
			if err != nil || running(one.escapee) {
				t.Errorf("process %d after the next start: %v", one.escapee, err)
			}
			if err := m.End(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("outside/10 the last supervisor of a killed daemon removes the cgroup", func(t *testing.T) {
		a := newAdopter(t)
		a.supervisorOf(t)
		path, err := os.ReadFile(filepath.Join(a.dir, markName))
		if err != nil || !isCgroup(string(path)) {
			t.Fatalf("the mark names %q, %v", path, err)
		}
		a.Process.Kill()
		for limit := time.Now().Add(time.Minute); isCgroup(string(path)); time.Sleep(time.Millisecond) {
			if time.Now().After(limit) {
				t.Fatalf("%s exists", path)
			}
		}
	})
}

func TestCgroupOfADaemonThatStops(t *testing.T) {
	needsCgroups(t)
	m := beginHere(t, nonce(t))
	c := shell("mkdir $0/below && echo $$ >$0/below/cgroup.procs; exec sleep 600")
	_, path, err := family.cgroup.open()
	if err != nil {
		t.Fatal(err)
	}
	c.Argv = append(c.Argv, path)
	p := start(t, t.Context(), c)
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if at, err := cgroupPath(fmt.Sprintf("/proc/%d/cgroup", p.Pid())); err == nil && filepath.Base(at) == "below" {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("the command is in no cgroup of its own")
		}
	}
	if err := m.End(); err != nil || isCgroup(path) || running(p.Pid()) {
		t.Errorf("outside/10 after the end: %v, cgroup %t, process %t", err, isCgroup(path), running(p.Pid()))
	}
	if how := Containment(); !strings.HasPrefix(how, "supervisors, no cgroup: ") {
		t.Errorf("afterwards it says %q", how)
	}
	os.WriteFile(m.path, nil, 0o600)
}

func TestCgroupThatIsRefused(t *testing.T) {
	needsCgroups(t)
	t.Run("outside/10 a removed cgroup is created again", func(t *testing.T) {
		beginHere(t, nonce(t))
		_, path, _ := family.cgroup.open()
		if err := unix.Rmdir(path); err != nil {
			t.Fatal(err)
		}
		p := start(t, t.Context(), shell("exec sleep 600"))
		at, err := cgroupPath(fmt.Sprintf("/proc/%d/cgroup", p.Pid()))
		if err != nil || filepath.Base(at) != filepath.Base(path) {
			t.Errorf("the command is in %q, %v; want %s", at, err, path)
		}
	})
	t.Run("outside/10 a command starts although the system refuses its cgroup", func(t *testing.T) {
		beginHere(t, nonce(t))
		if _, _, err := family.cgroup.open(); err != nil {
			t.Fatal(err)
		}
		path := family.cgroup.path
		family.cgroup.dir, _ = os.Open("/") // not a cgroup
		if exit := wait(t, start(t, t.Context(), shell("exit 3"))); exit.Code != 3 {
			t.Errorf("it exits with %+v", exit)
		}
		if how := Containment(); !strings.HasPrefix(how, "supervisors, no cgroup: start a process in a cgroup: ") {
			t.Errorf("it says %q", how)
		}
		if err := unix.Rmdir(path); err != nil {
			t.Error(err)
		}
	})
}

func TestEndCgroupIgnoresOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "lashd-x")
	if err := os.MkdirAll(filepath.Join(dir, "below"), 0o700); err != nil {
		t.Fatal(err)
	}
	own, err := ownCgroup()
	if err != nil {
		own = "/"
	}
	for path, name := range map[string]string{dir: "lashd-x", own: "lashd-x", "": "", "relative": "relative"} {
		if err := endCgroup(path, name); err != nil {
			t.Errorf("outside/10 the end of %q: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "below")); err != nil {
		t.Errorf("outside/10 a directory that is no cgroup: %v", err)
	}
}

func TestCgroupMount(t *testing.T) {
	for line, want := range map[string][2]string{
		"38 31 0:35 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw":                        {"/", "/sys/fs/cgroup/unified"},
		"29 23 0:26 /user.slice /sys/fs/c\\040group rw,nosuid shared:4 master:1 - cgroup2 cgroup2 rw": {"/user.slice", "/sys/fs/c group"},
		"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu":                          {},
		"": {},
	} {
		root, point, ok := cgroupMount(line)
		if got := [2]string{root, point}; got != want || ok != (want[0] != "") {
			t.Errorf("%q: %q, %t; want %q", line, got, ok, want)
		}
	}
}

// cloneElsewhere is a script that starts a process in another cgroup without writing to a file: by clone3 and CLONE_INTO_CGROUP.
const cloneElsewhere = `python3 -S -c '
import ctypes, os, struct, sys
fd = os.open(sys.argv[1], os.O_PATH | os.O_DIRECTORY)
args = struct.pack("11Q", 0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, fd)
libc = ctypes.CDLL(None, use_errno=True)
pid = libc.syscall(435, args, len(args))
if pid == 0:
    print("moved to", open("/proc/self/cgroup").read().strip().split("\n")[-1], flush=True)
    os._exit(0)
print("refused:", os.strerror(ctypes.get_errno())) if pid < 0 else os.waitpid(pid, 0)
' `

func TestSandboxKeepsItsCgroup(t *testing.T) {
	skip.Unless(t, "LANDLOCK", Confines().Sandbox > 0, Confines().String())
	needsCgroups(t)
	beginHere(t, nonce(t))
	own, err := ownCgroup()
	if err != nil {
		t.Fatal(err)
	}
	within := Confinement{Sandbox: &Sandbox{}}
	for what, script := range map[string]string{
		"writes to the cgroup above": "echo $$ >" + own + "/cgroup.procs; tail -1 /proc/self/cgroup",
		"makes a cgroup":             "mkdir " + own + "/lashd-mine; tail -1 /proc/self/cgroup",
		"clones into another cgroup": cloneElsewhere + own,
	} {
		out, _ := says(t, confinedShell(script, within))
		if at := "0::/" + strings.TrimPrefix(own, "/"); strings.HasSuffix(out, at+"\n") || strings.Contains(out, "moved to") || !strings.Contains(out, "ermission denied") && !strings.Contains(out, "Read-only") && !strings.Contains(out, "not implemented") {
			t.Errorf("outside/10 a sandboxed program that %s says %q", what, out)
		}
	}
	if out, exit := says(t, shell(cloneElsewhere+own)); exit.Code != 0 || !strings.Contains(out, "moved to") {
		t.Errorf("outside a sandbox the result is %+v %q, so the test shows nothing", exit, out)
	}
	if out, exit := says(t, confinedShell(`python3 -S -c 'import threading, subprocess; t = threading.Thread(target=print, args=("thread",)); t.start(); t.join(); print(subprocess.run(["echo", "process"], capture_output=True).stdout)'`, within)); exit.Code != 0 || out != "thread\nb'process\\n'\n" {
		t.Errorf("outside/10 threads and processes of a sandboxed program: %+v %q", exit, out)
	}
}

// BenchmarkStart measures the start of a command with a spare supervisor, with and without a cgroup.
func BenchmarkStart(b *testing.B) {
	stop, err := AdoptOrphans()
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	for round := range 4 {
		for _, with := range []bool{false, true} {
			b.Run(fmt.Sprintf("cgroup=%t", with), func(b *testing.B) {
				mine := "bench-" + strconv.Itoa(round)
				beginHere(b, mine)
				if !with {
					family.cgroup.close()
				}
				for b.Loop() {
					p, err := Start(b.Context(), Command{Argv: []string{"true"}, Nonce: mine})
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
}
