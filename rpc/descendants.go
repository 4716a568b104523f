package rpc

import (
	"fmt"
	"net"

	"lashd/engine/proc"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

// maxRejected is the maximum number of connections from the daemon's own child processes that receive a rejection at one time. They do
// not count as connections.
const maxRejected = 8

// admit returns the seat of a new connection. If refuse is set, it is the response to the first
// request, and the connection ends after it. ok is false if there is no room even for that; the
// caller closes the connection.
func (s *Server) admit(nc net.Conn) (at *seat, refuse error, ok bool) {
	stream := s.stream(nc, false)
	if why := s.descendantReason(nc); why != "" {
		s.log.Warn("connection refused", "reason", why)
		if s.rejected.Add(1) > maxRejected {
			s.rejected.Add(-1)
			return nil, nil, false
		}
		at = s.door.addFixed(stream)
		at.left = func() { s.rejected.Add(-1) }
		return at, descendantError(why), true
	}
	peer, _ := socket.PeerOf(nc) // processes with unknown pid share one limit
	if at, ok = s.door.enter(stream, peer.PID); ok && at.spare {
		refuse = tooMany()
	}
	return at, refuse, ok
}

// descendantError returns the response to a child process of the daemon.
func descendantError(why string) error {
	return newError(codeDenied, why+"; commands of a session cannot connect to the daemon that runs them: use the session's tools, or start a daemon "+
		"with another data directory (LASHD_HOME)", protocol.ErrorData{Kind: protocol.KindDenied, Retry: protocol.RetryNever, Outcome: protocol.EffectNone})
}

// descendantReason returns why the process at the other end counts as a descendant of the daemon, or "" if it
// does not. If its credentials cannot be read, or it has exited, it counts as one. Commands of a
// session must not control the daemon that runs them.
func (s *Server) descendantReason(nc net.Conn) (why string) {
	conn, ok := nc.(*net.UnixConn)
	if !ok || s.Nonce == "" {
		return ""
	}
	peer, err := socket.PeerOf(conn)
	if err != nil {
		return err.Error()
	}
	if peer.PID == 0 { // outside our pid namespace, so not a descendant
		return ""
	}
	if !socket.Living(conn, peer.PID, func() { why = proc.Descends(peer.PID, s.Nonce) }) {
		return fmt.Sprintf("process %d has exited, so lashd cannot tell which command started it", peer.PID)
	}
	return why
}
