package proc

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSandboxLeavesOthersAlone(t *testing.T) { eachSystem(t, testSandboxLeavesOthersAlone) }

func testSandboxLeavesOthersAlone(t *testing.T) {
	other := start(t, t.Context(), shell("exec sleep 600"))
	limits := func() string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", other.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		priority, err := unix.Getpriority(unix.PRIO_PROCESS, other.Pid())
		return fmt.Sprint(string(text), priority, err)
	}
	before := limits()
	for _, command := range []string{"prlimit --pid %d --nofile=77:77", "prlimit --pid %d --cpu=1:1", "renice -n 5 -p %d", "taskset -p 1 %d", "chrt -b -p 0 %d", "ionice -c 3 -p %d"} {
		name, _, _ := strings.Cut(command, " ")
		out, exit := says(t, confinedShell(fmt.Sprintf(command, other.Pid()), Confinement{Sandbox: &Sandbox{}}))
		if exit.Code == 0 || !denies(out) || limits() != before {
			t.Errorf("outside/10 a sandboxed %s of another process: %+v %q", name, exit, out)
		}
	}
	out, exit := says(t, confinedShell("export was=$(nice); ulimit -n 77 && nice -n 3 sh -c 'ulimit -n; echo $(($(nice) - was))' && taskset 1 true && ionice -c 3 true", Confinement{Sandbox: &Sandbox{}}))
	if out != "77\n3\n" || exit.Code != 0 {
		t.Errorf("outside/10 a sandboxed program that changes its own limits: %+v %q", exit, out)
	}
}
