package crash

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestKill kills the workload at random moments and continues with the remaining files.
func TestKill(t *testing.T) {
	cycles := 20
	if long() {
		cycles = 500
	}
	seed := seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	dir := filepath.Join(t.TempDir(), "store")
	want := acked{}
	for cycle := range cycles {
		cmd := worker(dir, "FULL", 1000, 50)
		read(t, cmd, want, time.Duration(20+rng.IntN(80))*time.Millisecond, cycle%2 == 0)
		v := inspect(dir, want)
		report(t, fmt.Sprintf("reliability/R1 seed %d, cycle %d", seed, cycle), v)
		if v.noticed {
			t.Fatalf("cycle %d: the store believes to have lost commits", cycle)
		}
	}
	if len(want) != writers {
		t.Errorf("commits of %d sessions were acknowledged, want %d", len(want), writers)
	}
}

// read collects the acknowledgements of a workload until it kills the workload: some time after its start, which on a busy machine may be
// before it has written anything, or after the first that it acknowledged.
func read(t *testing.T, cmd *exec.Cmd, want acked, life time.Duration, working bool) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(life, func() { cmd.Process.Kill() })
	defer kill.Stop()
	if working {
		kill.Stop()
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if want.note(lines.Text()); working {
			kill.Reset(life)
			working = false
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the workload ended by itself: %v", err)
	}
}

// TestFailedSync makes the n-th sync of the disk fail: nothing is acknowledged after it, the daemon ends as poisoned, and all
// acknowledged commits are there.
func TestFailedSync(t *testing.T) {
	needStrace(t)
	for _, n := range []int{8, 14, 20} {
		t.Run(fmt.Sprint("reliability/P18 sync ", n, " fails"), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			cmd := worker(dir, "FULL", 1, 50, "strace", "-f", "-qq", "-o", os.DevNull, "-P", filepath.Join(dir, "lashd.db-wal"),
				"-e", "trace=fsync,fdatasync", "-e", fmt.Sprintf("inject=fsync,fdatasync:error=EIO:when=%d+", n))
			text, err := cmd.Output()
			if code := cmd.ProcessState.ExitCode(); code != exitPoisoned {
				t.Fatalf("the workload ended with %d, want %d: %v", code, exitPoisoned, err)
			}
			want := acked{}
			for line := range lines(text) {
				want.note(line)
			}
			t.Logf("sessions with acknowledged commits: %d", len(want))
			report(t, t.Name(), inspect(dir, want))
		})
	}
}
