package socket

import (
	"fmt"
	"net"
)

// Peer is the process at the other end of a connection, at the time when that end connected or
// began to listen. The process may have ended since, and its pid may be reused.
type Peer struct {
	UID int // effective user; -1 if it cannot be read
	PID int // 0 if the system does not report it, or if the process is outside this pid namespace
}

// PeerOf returns the credentials that the kernel has recorded for the other end of conn. It fails
// if conn is not a Unix socket.
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
