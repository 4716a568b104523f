//go:build unix

package socket

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestPeerIsTheProcessThatConnected(t *testing.T) {
	path := filepath.Join(home(t), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := role("client", path)
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	got, err := PeerOf(conn)
	if want := (Peer{UID: os.Geteuid(), PID: other.Process.Pid}); err != nil || got != want {
		t.Errorf("PeerOf = %+v, %v, want %+v", got, err, want)
	}
	conn.Close()
	other.Wait() // it fails, because no daemon greets it
}

func TestPeerOfAPipeIsUnknown(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	defer a.Close()
	if got, err := PeerOf(a); err == nil || got.PID != 0 || got.UID != -1 {
		t.Errorf("PeerOf a pipe = %+v, %v, want an error and no user", got, err)
	}
}
