package cli

import (
	"os"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
)

func TestOutputWriteErrors(t *testing.T) {
	p := newPlace(t)
	id := p.session()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{
		{"run", "hi"}, {"run", "--json", "hi"}, {"run", "--stream-json", "hi"}, {"session"}, {"session", "--json"}, {"tool", id}, {"completion", "bash"}, {"version"},
		{"schema"}, {"plugin", "list", "--all"}, {"complete", "--", ""}, {"doctor"}, {"tail", id, "--after", "0"},
	} {
		cmd, errs := p.command(args...), new(strings.Builder)
		cmd.Stdout, cmd.Stderr = full, errs
		if code := exitCode(t, cmd.Run()); code != console.ExitFailed || strings.Count(errs.String(), "no space left on device") != 1 {
			t.Errorf("lashd %s: exit code %d, stderr %q; want %d and why", strings.Join(args, " "), code, errs, console.ExitFailed)
		}
	}
}
