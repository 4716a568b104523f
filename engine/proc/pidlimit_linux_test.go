package proc

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"lashd/test/skip"
)

// forking is a program that starts up to 600 processes and prints how many it got.
const forking = `python3 - <<'END'
import os, signal
all = []
try:
    while len(all) < 600:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        all.append(pid)
except OSError:
    pass
print(len(all))
END
`

func TestProcessLimitOfNamespaces(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		skip.Unless(t, "NAMESPACES", os.Getuid() != 0 || kernelSince(6, 14), "the kernel has one limit for the whole system")
		before, _ := os.ReadFile("/proc/sys/kernel/pid_max")
		c := confinedShell(forking, Confinement{Sandbox: p.sandbox(), Limits: Limits{Processes: 64}})
		c.Env = append(c.Env, "PATH="+os.Getenv("PATH"))
		out, _ := says(t, c)
		if n, err := strconv.Atoi(strings.TrimSpace(out)); err != nil || n < 32 || n > 64+reservedIDs {
			t.Errorf("part11/7 a child with a process namespace, also as root, starts %q", out)
		}
		if after, _ := os.ReadFile("/proc/sys/kernel/pid_max"); string(after) != string(before) {
			t.Errorf("part11/7 the machine had the limit %s and has %s", before, after)
		}
	})
}
