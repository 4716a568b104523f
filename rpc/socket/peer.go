package socket

import (
	"fmt"
	"net"
)

// Peer is the process at the other end of a connection, as it was when that end connected or began to listen. The process may
// have ended since, and another may have its pid.
type Peer struct {
	UID int // effective user; -1 if it cannot be read
	PID int // 0 if the system does not report it, or the process is outside of our pid namespace
}

// PeerOf reads the credentials that the kernel has of the other end of conn. It fails for anything but a Unix socket.
func PeerOf(conn net.Conn) (Peer, error) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return Peer{UID: -1}, fmt.Errorf("read peer credentials: %T is not a Unix socket", conn)
	}
	p, err := credentials(unix)
	if err != nil {
		return Peer{UID: -1}, fmt.Errorf("read peer credentials: %w", err)
	}
	return p, nil
}
