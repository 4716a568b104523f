package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lashd/test/skip"
)

// acpx is the npm client of that name, as published.
type acpx struct {
	*world
	program, agent, logs, user string
}

func newACPX(t *testing.T, w *world) *acpx {
	t.Helper()
	_, err := exec.LookPath("node")
	skip.Unless(t, "NODE", err == nil, "node is not installed")
	program := npmFile(t, "acpx/dist/cli.js")
	x := &acpx{world: w, program: program, logs: t.TempDir(), user: t.TempDir()}
	x.agent = filepath.Join(x.logs, "agent")
	lashd := strings.Join(w.command("acp").Args, " ")
	script := fmt.Sprintf("#!/bin/sh\ntee %[1]s/in.$$ | %[2]s | tee %[1]s/out.$$\n", x.logs, lashd)
	if err := os.WriteFile(x.agent, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return x
}

// start runs acpx in the workspace. The agent's messages are recorded on the way.
func (x *acpx) start(ctx context.Context, args ...string) (wait func() (string, error)) {
	x.t.Helper()
	all := append([]string{x.program, "--cwd", x.work, "--agent", x.agent, "--ttl", "60"}, args...)
	cmd := exec.CommandContext(ctx, "node", all...)
	cmd.Env = append(os.Environ(), "HOME="+x.user)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		x.t.Fatal(err)
	}
	return func() (string, error) {
		err := cmd.Wait()
		return out.String(), err
	}
}

// run fails the test unless acpx succeeds.
func (x *acpx) run(args ...string) string {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	out, err := x.start(ctx, args...)()
	if err != nil {
		x.t.Errorf("issue/6-3 acpx %v: %v\n%s", args, err, out)
	}
	return out
}

// check validates all messages to acpx against the schema.
func (x *acpx) check() *frames {
	x.t.Helper()
	all := newFrames(x.t)
	asked, _ := filepath.Glob(filepath.Join(x.logs, "in.*"))
	for _, in := range asked {
		out := strings.Replace(in, "/in.", "/out.", 1)
		each(x.t, in, all.sent)
		each(x.t, out, all.received)
		clear(all.asked)
	}
	return all
}

func each(t *testing.T, file string, line func([]byte)) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(data) {
		line(bytes.TrimSpace(l))
	}
}

// TestACPX has an independent client run turns, answer questions, cancel, and come back.
func TestACPX(t *testing.T) {
	w := newWorld(t, "ask",
		step(says("One moment."), uses("edit", map[string]any{"path": "a.txt", "old": "one", "new": "1"})), step(says("Mended.")),
		step(uses("edit", map[string]any{"path": "a.txt", "old": "1", "new": "2"})), step(says("So be it.")),
		step(says("Wait"), stalls),
		step(says("Here again.")))
	w.write(w.work+"/a.txt", "one\n")
	x := newACPX(t, w)
	defer w.shutdown()
	if out := x.run("--approve-all", "exec", "mend it"); !strings.Contains(out, "Mended.") || w.text("a.txt") != "1\n" {
		t.Errorf("issue/6-3 a turn: the file says %q:\n%s", w.text("a.txt"), out)
	}
	x.run("sessions", "new")
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	if out, _ := x.start(ctx, "--deny-all", "prompt", "again")(); !strings.Contains(out, "So be it.") || w.text("a.txt") != "1\n" {
		t.Errorf("issue/6-3 a permission that is denied: the file says %q:\n%s", w.text("a.txt"), out)
	}
	stalled := x.start(ctx, "--format", "json", "prompt", "stall")
	w.asked(5)
	if out := x.run("cancel"); !strings.Contains(out, "cancel") {
		t.Errorf("issue/6-3 acpx cancel prints %s", out)
	}
	if out, err := stalled(); !strings.Contains(out, `"stopReason":"cancelled"`) {
		t.Errorf("issue/6-3 the cancelled prompt ends with %v:\n%s", err, out)
	}
	x.run("set-mode", "plan")
	w.killWhoServes()
	if out, _ := x.start(ctx, "prompt", "are you there?")(); !strings.Contains(out, "Here again.") { // the model's history mentions the denial
		t.Errorf("issue/6-3 a session after the daemon was killed:\n%s", out)
	}
	if out := x.run("sessions", "list"); strings.Count(out, w.work) != 2 {
		t.Errorf("issue/6-3 the sessions are:\n%s", out)
	}
	x.run("sessions", "close")
	all := x.check()
	for _, what := range []string{"result of session/prompt", "session/request_permission", "session/update", "fs/write_text_file"} {
		if all.seen[what] == 0 {
			t.Errorf("issue/6-3 no %s was seen: %v", what, all.seen)
		}
	}
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}

// text is the contents of a file in the workspace.
func (h *home) text(name string) string {
	h.t.Helper()
	data, err := os.ReadFile(filepath.Join(h.work, name))
	if err != nil {
		h.t.Error(err)
	}
	return string(data)
}
