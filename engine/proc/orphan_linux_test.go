package proc

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// play runs the role that the environment names, in place of the tests.
func play(role string) {
	switch role {
	case "parent":
		playParent()
	case "adopter":
		playAdopter()
	case "sweeper":
		fmt.Println(Sweep(os.Getenv(nonceVariable)))
	default:
		panic("unknown role " + role)
	}
}

// playParent starts a child that holds stderr and waits to be killed.
func playParent() {
	c := shell("echo $$ >&2; exec sleep 600")
	c.Stderr = os.Stderr
	p, err := Start(context.Background(), c)
	if err != nil {
		panic(err)
	}
	p.Wait()
}

func nonce(t testing.TB) string {
	return fmt.Sprintf("%s-%d-%d", strings.ReplaceAll(t.Name(), "/", "-"), os.Getpid(), time.Now().UnixNano())
}

func TestChildDiesWithAKilledParent(t *testing.T) {
	w := newWitness(t)
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), roleVariable+"=parent")
	parent.Stderr = w.end
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	w.release()
	pid := w.line(t)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()
	if !w.allDead(time.Minute) {
		t.Errorf("child %s outlives its parent, which was killed", pid)
	}
}

// A parent-death signal belongs to the thread that forked. A goroutine that ends while locked ends its thread.
// That must never be a thread with a child, even between the fork and the wait.
func TestChildOutlivesOtherThreads(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var churn sync.WaitGroup
	for range 4 {
		churn.Go(func() {
			for ctx.Err() == nil {
				endThread()
			}
		})
	}
	var processes []*Process
	for range 40 {
		processes = append(processes, start(t, t.Context(), shell("exec sleep 600")))
	}
	cancel()
	churn.Wait()
	for _, p := range processes {
		select {
		case <-p.Done():
			exit, _ := p.Wait()
			t.Errorf("child %d died with a thread of its living parent: %+v", p.Pid(), exit)
		default:
		}
	}
}

// endThread returns when a thread of this process has ended.
func endThread() {
	var locked sync.WaitGroup
	locked.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		runtime.Gosched()
	})
	locked.Wait()
}

// leaves is a command that exits after a process has left its group and written its pid.
func leaves(t *testing.T) Command {
	c := shell("setsid sh -c 'echo $$ >&2; : >left; exec sleep 600' & until [ -e left ]; do sleep 0.01; done")
	c.Dir = t.TempDir()
	return c
}

func TestEscapeeIsReportedAndSwept(t *testing.T) {
	w := newWitness(t)
	var out strings.Builder
	c := leaves(t)
	c.Stdout, c.Stderr = &out, w.end
	c.Nonce, c.Drain = nonce(t), 50*time.Millisecond
	p := start(t, t.Context(), c)
	w.release()
	escapee, err := strconv.Atoi(w.line(t))
	if err != nil {
		t.Fatal(err)
	}

	if exit := wait(t, p); !exit.Escaped || exit.Code != 0 {
		t.Errorf("exit %+v while a detached process holds stdout, want 0 and Escaped", exit)
	}
	if w.allDead(50 * time.Millisecond) {
		t.Fatal("the escapee died with the group, so there is nothing to sweep")
	}
	swept, err := Sweep(c.Nonce)
	if err != nil || !slices.Equal(swept, []int{escapee}) {
		t.Errorf("Sweep = %v, %v; want [%d]", swept, err, escapee)
	}
	if !w.allDead(time.Minute) {
		t.Error("the escapee is alive after Sweep")
	}
}

// While a process executes a program its environment reads as empty.
func TestSweepSeesThroughExec(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec "+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	mine := nonce(t)
	again := start(t, t.Context(), Command{Argv: []string{script}, Nonce: mine})
	bare := start(t, t.Context(), Command{Argv: []string{"sleep", "600"}})
	for range 3000 {
		if marked(again.Pid(), mine) == markNo {
			t.Fatal("a process that executes a program is taken for one without the nonce")
		}
	}
	for began := time.Now(); marked(bare.Pid(), "any") != markNo; time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			t.Fatal("nothing is known for a minute of a process without an environment")
		}
	}
}

func TestSweepSparesOthers(t *testing.T) {
	mine := nonce(t)
	c := shell("exec sleep 600")
	c.Nonce = mine + "0" // has the swept nonce as a prefix
	longer := start(t, t.Context(), c)
	c.Nonce = ""
	unmarked := start(t, t.Context(), c)

	if swept, err := Sweep(mine); err != nil || len(swept) != 0 {
		t.Errorf("Sweep = %v, %v; want none", swept, err)
	}
	if _, err := Sweep(""); err == nil {
		t.Error("Sweep with an empty nonce succeeds, want an error")
	}
	for name, p := range map[string]*Process{"longer nonce": longer, "no nonce": unmarked} {
		if _, err := os.Stat(filepath.Join("/proc", strconv.Itoa(p.Pid()), "environ")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		select {
		case <-p.Done():
			t.Errorf("%s: swept", name)
		default:
		}
	}
}

// A daemon that a child of another daemon started carries the mark of that daemon.
func TestSweepSparesItself(t *testing.T) {
	sweeper := exec.Command(os.Args[0])
	sweeper.Env = append(os.Environ(), roleVariable+"=sweeper", nonceVariable+"="+nonce(t))
	out, err := sweeper.Output()
	if got, want := string(out), "[] <nil>\n"; err != nil || got != want {
		t.Errorf("a marked process sweeps its own nonce: %q, %v; want %q", got, err, want)
	}
}
