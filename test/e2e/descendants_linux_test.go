package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// kinds are the things that run commands for a session.
var kinds = []string{"tool", "task", "monitor", "plugin", "server"}

// intruder connects to the daemon, then leaves its process group, session, environment and parent, and
// connects again. Its last process stays.
const intruder = `#!/bin/sh
cd "%[1]s"
%[2]s call model/list >$1.plain 2>&1; echo "exit $?" >>$1.plain
env -i PATH="$PATH" setsid sh -c '(setsid sh -c "sh escaped $0" &) &' $1 </dev/null >/dev/null 2>&1
until [ -s $1.pid ]; do sleep 0.02; done
`

const escapedIntruder = `until [ "$(ps -o ppid= $$)" -ne 0 ]; do :; done
%[2]s call model/list >$1.escaped 2>&1; echo "exit $?" >>$1.escaped
echo $$ >$1.pid
exec sleep 1000
`

// intruders starts an intruder of each kind and collects the pids of the processes that they leave.
type intruders struct {
	*world
	peer    *peer
	session protocol.SessionID
	script  string
}

func newIntruders(t *testing.T) *intruders {
	t.Helper()
	w := newWorld(t, "allow")
	i := &intruders{world: w, script: filepath.Join(w.work, "intrude")}
	lash := fmt.Sprintf("%s/lash --home %s --socket %s", bin, w.dir, w.socket)
	for name, text := range map[string]string{"intrude": intruder, "escaped": escapedIntruder} {
		if err := os.WriteFile(filepath.Join(w.work, name), fmt.Appendf(nil, text+"#%[1]s%[2]s\n", w.work, lash), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	root := filepath.Join(w.user, ".config", "lashd", "plugins", "eager")
	if err := os.MkdirAll(root, 0o700); err != nil {
		t.Fatal(err)
	}
	w.write(filepath.Join(root, "plugin.json"), `{"name":"eager","lashd":{"process":{"command":["sh","${PLUGIN_ROOT}/speak"],"startup":"eager"},"hooks":["compact"]}}`)
	w.write(filepath.Join(root, "speak"), i.script+" plugin </dev/null >/dev/null 2>&1 &\n"+speaker)
	return i
}

func (i *intruders) run() {
	i.t.Helper()
	i.peer = i.dial("")
	i.session = i.peer.brings(i.home, protocol.MCPServers{"bad": {Command: "sh", Args: []string{"-c", i.script + " server >/dev/null; exec sleep 1000"}}})
	ask[protocol.TaskResult](i.peer, "task/start", protocol.TaskStartParams{SessionID: i.session, TaskID: "tsk_1", Spec: protocol.TaskSpec{
		Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: i.script + " task"},
	}})
	ask[protocol.MonitorResult](i.peer, "monitor/start", protocol.MonitorStartParams{SessionID: i.session, Spec: protocol.MonitorSpec{
		ID: "m", Command: i.script + " monitor", Persistent: true,
	}})
	ask[protocol.ToolCallResult](i.peer, "tool/call", protocol.ToolCallParams{SessionID: i.session, Name: "shell", Args: []byte(mustArgs(map[string]string{"command": i.script + " tool"}))})
}

// escaped is the pid of the process that an intruder has left.
func (i *intruders) escaped(kind string) (pid int) {
	i.t.Helper()
	eventually(i.t, kind+" leaves a process", func() error {
		text, err := os.ReadFile(filepath.Join(i.work, kind+".pid"))
		if err != nil {
			return err
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err
	})
	i.t.Cleanup(func() {
		if command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.HasPrefix(string(command), "sleep\x001000") {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return pid
}

func (i *intruders) refused(kind string) {
	i.t.Helper()
	for _, way := range []string{"plain", "escaped"} {
		said, err := os.ReadFile(filepath.Join(i.work, kind+"."+way))
		if err != nil || !strings.Contains(string(said), "cannot connect to the daemon that runs them") || !strings.HasSuffix(string(said), "exit 1\n") {
			i.t.Errorf("outside/3 a client started by a %s (%s) gets %q, %v; want a refusal", kind, way, said, err)
		}
	}
}

func TestDescendants(t *testing.T) {
	for name, end := range map[string]func(*intruders, *daemon){
		"a stop":                func(_ *intruders, d *daemon) { d.stop() },
		"SIGKILL":               func(_ *intruders, d *daemon) { d.kill() },
		"SIGKILL and a restart": func(i *intruders, d *daemon) { d.kill(); i.serve() },
		"SIGKILL of daemon and supervisors at once, and a restart": func(i *intruders, d *daemon) {
			how := ask[protocol.DiagnosticsResult](i.peer, "server/diagnostics", struct{}{}).Containment
			skip.Unless(i.t, "CGROUP", strings.Contains(how, " and cgroup "), how)
			d.killWithSupervisors()
			if pid := i.escaped("tool"); syscall.Kill(pid, 0) != nil {
				i.t.Error("no process is left after the SIGKILL, so the restart tests nothing")
			}
			i.serve()
		},
	} {
		t.Run("outside/3 outside/10 outside/17 processes of sessions cannot connect, and none of them survives "+name, func(t *testing.T) {
			t.Parallel()
			i := newIntruders(t)
			d := i.serve()
			i.run()
			left := map[string]int{}
			for _, kind := range kinds {
				left[kind] = i.escaped(kind)
				i.refused(kind)
			}
			end(i, d)
			for kind, pid := range left {
				eventually(t, "no process is left of a "+kind, func() error {
					if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
						return fmt.Errorf("process %d exists", pid)
					}
					return nil
				})
			}
		})
	}
}

// killWithSupervisors kills the daemon and all its supervisors. They are stopped first, so that none
// of them reacts to the death of the others.
func (d *daemon) killWithSupervisors() {
	d.t.Helper()
	d.cmd.Process.Signal(syscall.SIGSTOP)
	var children []byte
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", d.cmd.Process.Pid))
	for _, task := range tasks {
		more, _ := os.ReadFile(task)
		children = append(children, more...)
	}
	if err != nil || len(children) == 0 {
		d.t.Fatalf("the daemon has no supervisors: %v", err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
		for child := range strings.FieldsSeq(string(children)) {
			pid, _ := strconv.Atoi(child)
			syscall.Kill(pid, signal)
		}
	}
	d.kill()
}

// TestDaemonOfACopy runs a daemon on a backup while a command of the original runs.
func TestDaemonOfACopy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "allow")
	w.serve()
	p := w.dial("")
	id := p.session(w.home)
	for _, script := range []string{"exec sleep 1000", "env -i setsid sleep 1000 & echo $! >pid; exec sleep 1000"} {
		ask[protocol.TaskResult](p, "task/start", protocol.TaskStartParams{SessionID: id, TaskID: protocol.TaskID(fmt.Sprintf("tsk_%d", len(script))), Spec: protocol.TaskSpec{
			Kind: protocol.TaskCommand, Recovery: protocol.RecoverOwner, Command: &protocol.TaskShell{Script: script},
		}})
	}
	pid := 0
	eventually(t, "the command runs", func() error {
		text, err := os.ReadFile(filepath.Join(w.work, "pid"))
		if err == nil {
			_, err = fmt.Sscan(string(text), &pid)
		}
		return err
	})
	other := newHome(t, nil)
	other.dir = filepath.Join(t.TempDir(), "copy")
	ask[protocol.ServerBackupResult](p, "server/backup", protocol.ServerBackupParams{Dir: other.dir})
	for range 2 { // the second daemon finds the leftovers of the first
		d := other.serve()
		other.dial("")
		d.kill()
	}
	d := other.serve()
	other.dial("")
	d.stop()
	for _, task := range ask[protocol.TaskListResult](p, "task/list", protocol.TaskListParams{SessionID: id}).Data {
		if task.State != protocol.TaskRunning {
			t.Errorf("outside/10 after a daemon ran on the copy, task %s of the original is %s", task.ID, task.State)
		}
	}
	if syscall.Kill(pid, 0) != nil {
		t.Error("outside/10 a daemon on the copy killed a process of the original")
	}
}

// TestDaemonInsideASession runs lashd in a tool call. It works with another data directory and is
// refused with this one.
func TestDaemonInsideASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "allow")
	d := w.serve()
	p := w.dial("")
	id := p.session(w.home)
	other := filepath.Join(filepath.Dir(w.dir), "other")
	shell := func(format string, args ...any) string {
		t.Helper()
		r := ask[protocol.ToolCallResult](p, "tool/call", protocol.ToolCallParams{
			SessionID: id, Name: "shell", Args: []byte(mustArgs(map[string]string{"command": fmt.Sprintf(format, args...)})),
		})
		return r.Output.Text
	}
	if out := shell("%s/lash --home %s --socket %s/o call model/list; echo exit $?", bin, other, filepath.Dir(w.socket)); !strings.Contains(out, "exit 0") {
		t.Errorf("outside/3 a daemon of another data directory, started in a session, prints %q", out)
	}
	for _, command := range []string{"lash call model/list", "lashd stdio", "lash run hello", "lashd stdio --isolated", "lashd serve"} {
		program, command, _ := strings.Cut(command, " ")
		out := shell("%s/%s --home %s --socket %s/another %s </dev/null 2>&1; echo exit $?", bin, program, w.dir, filepath.Dir(w.socket), command)
		if strings.Contains(out, "exit 0") {
			t.Errorf("outside/3 %s on a second socket of the same data directory prints %q", command, out)
		}
	}
	apart := p.background(id, startsCommand{Detach: true, Command: fmt.Sprintf("%s/lash --home %s --socket %s call model/list; echo exit $?", bin, w.dir, w.socket)})
	apart.wait()
	if apart.more(0); !strings.Contains(apart.text.String(), "cannot connect to the daemon that runs them") {
		t.Errorf("outside/3 a detached command that connects gets %q", apart.text.String())
	}
	d.stop()
	eventually(t, "the daemon inside ends with the one outside", func() error {
		if _, err := os.Stat(filepath.Join(other, "lashd.lock")); err != nil {
			t.Fatal(err)
		}
		out, _ := os.ReadFile(filepath.Join(other, "lashd.lock.json"))
		pid, _ := strconv.Atoi(strings.TrimLeft(strings.SplitN(string(out), ",", 2)[0], `{"pid:`))
		if pid > 0 && !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return fmt.Errorf("process %d exists", pid)
		}
		return nil
	})
}
