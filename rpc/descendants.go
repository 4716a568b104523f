package rpc

import (
	"fmt"
	"net"

	"lashd/engine/proc"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

// maxFamily is how many connections of processes that the daemon runs may be told at once that they are refused. They take no place of
// others.
const maxFamily = 8

// admit gives a connection its place, and what its first request is answered with if the client is to go. There may be no room even for that.
func (s *Server) admit(nc net.Conn) (at *seat, refuse error, ok bool) {
	stream := s.stream(nc, false)
	if why := s.kin(nc); why != "" {
		s.log.Warn("connection refused", "reason", why)
		if s.family.Add(1) > maxFamily {
			s.family.Add(-1)
			return nil, nil, false
		}
		at = s.door.alone(stream)
		at.left = func() { s.family.Add(-1) }
		return at, descends(why), true
	}
	peer, _ := socket.PeerOf(nc) // an unknown one is one of the unknown
	if at, ok = s.door.enter(stream, peer.PID); ok && at.spare {
		refuse = tooMany()
	}
	return at, refuse, ok
}

func descends(why string) error {
	return newError(codeDenied, why+"; commands of a session cannot connect to the daemon that runs them: use the session's tools, or start a daemon "+
		"with another data directory (LASHD_HOME)", protocol.ErrorData{Kind: protocol.KindDenied, Retry: protocol.RetryNever, Outcome: protocol.EffectNone})
}

// kin is why the other end of a connection descends from what the daemon runs; empty: it does not.
func (s *Server) kin(nc net.Conn) (why string) {
	conn, ok := nc.(*net.UnixConn)
	if !ok || s.Nonce == "" {
		return ""
	}
	peer, err := socket.PeerOf(conn)
	if err != nil {
		return err.Error()
	}
	if peer.PID == 0 { // outside of our pid namespace, where nothing descends from us
		return ""
	}
	if !socket.Living(conn, peer.PID, func() { why = proc.Kin(peer.PID, s.Nonce) }) {
		return fmt.Sprintf("process %d has exited, so lashd cannot tell which command started it", peer.PID)
	}
	return why
}
