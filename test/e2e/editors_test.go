package e2e

import (
	"errors"
	"io"
	"os/exec"
	"testing"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/protocol"
)

// editor is lashd stdio with an editor's framing.
type editor struct {
	*peer
	in  io.Closer
	cmd *exec.Cmd
}

// piped starts a command with pipes to its stdin and stdout.
func (h *home) piped(cmd *exec.Cmd) (io.WriteCloser, io.ReadCloser) {
	h.t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	return in, out
}

// edit starts lashd stdio, which connects to the daemon or starts it.
func (h *home) edit(name string) *editor {
	h.t.Helper()
	cmd := h.command("stdio")
	in, out := h.piped(cmd)
	stream := jsonrpc2.NewBufferedStream(pipes{out, in}, jsonrpc2.VSCodeObjectCodec{})
	p, err := newPeer(h.t, stream, name)
	if err != nil {
		h.t.Fatal(err)
	}
	return &editor{p, in, cmd}
}

// leave closes stdin and waits for lashd stdio.
func (e *editor) leave() {
	e.t.Helper()
	e.in.Close()
	<-e.conn.DisconnectNotify()
	if err := e.cmd.Wait(); err != nil {
		e.t.Errorf("lashd stdio: %v", err)
	}
}

// pipes are a process's stdin and stdout, as its parent holds them.
type pipes struct {
	io.ReadCloser
	in io.WriteCloser
}

func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p pipes) Close() error { return p.in.Close() }

func TestTwoEditors(t *testing.T) {
	w := newWorld(t, "allow", step(says("one"), shell("true")), step(says("two")), step(says("three")))
	a, b := w.edit("a"), w.edit("b")
	pid := ask[protocol.StatusResult](a.peer, "server/status", nil).Pid
	defer w.shutdown()
	id := a.session(w.home)
	attached := b.attach(id, 0)
	first := a.start(id, "go").TurnID
	end := a.completed(first).Seq
	b.completed(first)

	for _, e := range []*editor{a, b} { // both see the same durable events with the same numbers
		seen := e.log(id)[:end-attached.Seq]
		if err := errors.Join(gapless(seen, attached.Seq+1), repeats(w.replay(id), seen)); err != nil {
			t.Errorf("reliability/P16 %s: %v", e.init.ClientID, err)
		}
	}

	a.leave()
	if got := b.turn(id, "on").Output.Safe; got != "three" {
		t.Errorf("reliability/P20 after one editor left, the other's turn answers %q", got)
	}
	if now := ask[protocol.StatusResult](b.peer, "server/status", nil).Pid; now != pid {
		t.Errorf("reliability/P20 after one editor left, the other is served by %d, before by %d", now, pid)
	}
	b.leave()
}
