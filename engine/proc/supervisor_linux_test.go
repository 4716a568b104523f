package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// daemonize leaves its group and session, clears its environment and forks twice to lose its parent. It writes its pid to stderr.
const daemonize = `env -i PATH="$PATH" setsid sh -c '(setsid sh -c "echo \$\$ >&2; exec sleep 600" &) &' & `

// playAdopter starts a command that daemonizes, reports that and waits for a line. Then it shuts down like a daemon.
func playAdopter() {
	stop, err := AdoptOrphans()
	if err != nil {
		panic(err)
	}
	defer stop()
	mark, err := Begin(os.Getenv("DIR"), os.Getenv("NONCE"))
	if err != nil {
		panic(err)
	}
	c := shell(daemonize + "sleep 600")
	c.Nonce, c.Stderr = os.Getenv("NONCE"), os.Stderr
	if _, err := Start(context.Background(), c); err != nil {
		panic(err)
	}
	fmt.Scanln(new(string))
	fmt.Println(mark.End())
}

// adopter is a daemon in a separate process, with the pid of the daemonized process.
type adopter struct {
	*exec.Cmd
	witness
	stdin   interface{ Write([]byte) (int, error) }
	dir     string
	nonce   string
	pid     int
	escapee int
}

func newAdopter(t *testing.T) *adopter {
	t.Helper()
	a := &adopter{witness: newWitness(t), dir: t.TempDir(), nonce: nonce(t)}
	a.Cmd = exec.Command(os.Args[0])
	a.Env = append(os.Environ(), roleVariable+"=adopter", "NONCE="+a.nonce, "DIR="+a.dir)
	a.Stderr = a.end
	in, err := a.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.stdin = in
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Process.Kill(); a.Wait() })
	a.release()
	a.pid = a.Process.Pid
	if a.escapee, err = strconv.Atoi(a.line(t)); err != nil {
		t.Fatal(err)
	}
	return a
}

// supervisorOf waits until a supervisor has adopted a process and returns its pid.
func (a *adopter) supervisorOf(t *testing.T) int {
	t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		s, err := statusOf(a.escapee)
		if err != nil {
			t.Fatal(err)
		}
		line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.parent), "cmdline"))
		if strings.TrimRight(string(line), "\x00") == supervisorName {
			return s.parent
		}
	}
	t.Fatalf("process %d was not adopted", a.escapee)
	return 0
}

func TestNothingEscapes(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *adopter){
		"a daemon that stops": func(t *testing.T, a *adopter) { a.stdin.Write([]byte("\n")); a.Wait() },
		"SIGKILL":             func(t *testing.T, a *adopter) { a.Process.Kill() },
		"SIGKILL of the supervisor": func(t *testing.T, a *adopter) {
			p, _ := os.FindProcess(a.supervisorOf(t))
			p.Kill()
		},
	} {
		t.Run("outside/10 "+name+" ends a daemonized process with an empty environment", func(t *testing.T) {
			t.Parallel()
			a := newAdopter(t)
			a.supervisorOf(t)
			end(t, a)
			for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
				if s, err := statusOf(a.escapee); err != nil || s.state == 'Z' {
					return
				}
				if time.Now().After(limit) {
					t.Fatalf("process %d is alive", a.escapee)
				}
			}
		})
	}
	t.Run("outside/10 a stop ends a daemonized process with an empty environment", func(t *testing.T) {
		w := newWitness(t)
		c := shell(daemonize + "sleep 600")
		c.Stderr = w.end
		p := start(t, t.Context(), c)
		w.release()
		w.line(t)
		p.Stop(nil)
		wait(t, p)
		if !w.allDead(time.Minute) {
			t.Error("it is alive after the stop")
		}
	})
}

func TestSpareSupervisor(t *testing.T) {
	stop, err := AdoptOrphans()
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	mine := nonce(t)
	for i := range 3 {
		c := shell("exit 3")
		c.Nonce = mine + "/" + strconv.Itoa(i)
		if exit := wait(t, start(t, t.Context(), c)); exit.Code != 3 {
			t.Errorf("outside/10 command %d exits with %+v, want 3", i, exit)
		}
		family.spare.starting.Wait()
		spare := family.spare.ready
		if spare == nil {
			t.Fatal("outside/10 no supervisor waits for the next command")
		}
		if i == 1 { // the waiting spare is killed
			spare.cmd.Process.Kill()
			for spare.waits() {
				time.Sleep(time.Millisecond)
			}
		}
	}
	if _, err := Sweep(mine); err != nil {
		t.Error(err)
	}
	if family.spare.ready != nil {
		t.Error("outside/10 a supervisor waits after the end")
	}
}
