package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"lashd/test/skip"
)

func needStrace(t *testing.T) {
	t.Helper()
	_, err := exec.LookPath("strace")
	skip.Unless(t, "STRACE", err == nil, "strace is not installed")
}

// worker is the command that runs the workload on a directory, with arguments of a tracer before it.
func worker(dir, durability string, rounds, commits int, tracer ...string) *exec.Cmd {
	argv := append(tracer, os.Args[0])
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), dirEnv+"="+dir, durabilityEnv+"="+durability,
		fmt.Sprint(roundsEnv, "=", rounds), fmt.Sprint(commitsEnv, "=", commits))
	cmd.Stderr = os.Stderr
	return cmd
}

// trace runs the workload and returns its system calls on files in its directory.
func trace(t *testing.T, durability string, rounds, commits int) (dir string, log *recording) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	out := filepath.Join(t.TempDir(), "strace")
	cmd := worker(dir, durability, rounds, commits, "strace", "-f", "-qq", "-y", "-xx", "-s", "2000000", "-o", out, "-e", "signal=none",
		"-e", "trace=open,openat,pwrite64,write,ftruncate,fsync,fdatasync,renameat,rename,unlinkat,unlink")
	if text, err := cmd.Output(); err != nil {
		t.Fatalf("traced workload: %v\n%s", err, text)
	}
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if log, err = parse(f, dir); err != nil {
		t.Fatal(err)
	}
	return dir, log
}
