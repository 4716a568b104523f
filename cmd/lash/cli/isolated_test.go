package cli

import (
	"io"
	"syscall"
	"testing"
)

func TestIsolatedEndsOnSIGTERM(t *testing.T) {
	p := newPlace(t)
	cmd := p.command("stdio", "--isolated")
	in, out := pipes(t, cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	out.Read(make([]byte, 1)) // it serves, and stdin stays open
	cmd.Process.Signal(syscall.SIGTERM)
	if code := exitCode(t, cmd.Wait()); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
