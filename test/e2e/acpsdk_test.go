package e2e

import (
	"bytes"
	"context"
	"os/exec"
	"syscall"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// TestACPFromNPM kills an editor built on the protocol's npm SDK while a question is open, and the
// daemon as well. The next editor loads the session while the new daemon recovers it.
func TestACPFromNPM(t *testing.T) {
	_, err := exec.LookPath("node")
	skip.Unless(t, "NODE", err == nil, "node is not installed")
	npmFile(t, "@agentclientprotocol/sdk/package.json")
	w := newWorld(t, "ask", step(says("I run it."), shell("printf x >> ran")), step(says("Done.")), step(says("On.")))
	d := w.serve()
	p := w.dial("")
	edit := func(session string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, "node", append([]string{"servers/acp.mjs", w.work, session}, w.command("acp").Args...)...)
		cmd.Env = w.command().Env
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, patience
		err := cmd.Run()
		how, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if died := how.Signaled() && how.Signal() == syscall.SIGKILL; died != (session == "-") || !died && err != nil {
			t.Fatalf("outside/22 the editor ends with %v:\n%s\n%s", err, &out, &said)
		}
		return out.String()
	}
	const hello = `{"sessions":["archive","close","delete","fork","list","resume","title"]}` + "\n"
	asked := `{"asked":"Run printf x >> ran (without a sandbox)","status":"pending"}` + "\n"
	if got, want := edit("-"), hello+`{"call":"pending"}`+"\n"+asked; got != want {
		t.Errorf("outside/22 the first editor was shown\n%s\nwant\n%s", got, want)
	}
	id := ask[protocol.SessionListResult](p, "session/list", protocol.SessionListParams{}).Data[0].ID
	d.kill()
	defer w.shutdown()
	want := hello + `{"call":"pending"}` + "\n" + asked + `{"call":"in_progress"}
{"call":"completed"}
{"said":"I run it.Done."}
{"stopReason":"end_turn"}
{"left":1}
`
	if got := edit(string(id)); got != want {
		t.Errorf("outside/22 the second editor was shown\n%s\nwant\n%s", got, want)
	}
	if w.size("ran") != 1 {
		t.Errorf("outside/22 the command ran %d times", w.size("ran"))
	}
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}
