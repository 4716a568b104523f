package rpc

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/internal/frame"
	"lashd/rpc/protocol"
)

// Limits of the number of connections. A spare connection is one over the limit: it only receives
// an error, and then ends.
const (
	maxConnections   = 128 // clients at once
	maxPerProcess    = 64  // of these, of one process
	spareConnections = 16
	sparePerProcess  = 4  // of these, of one process
	maxLeaving       = 64 // dropped connections that may still be sending the reason
)

// admission limits the number of connections. At the limit it drops an idle connection: one without
// requests in flight and without subscriptions. The process with the most connections loses one
// first, so one client cannot lock out the others. It is safe for concurrent use.
type admission struct {
	mu sync.Mutex
	// seats holds all admitted connections, including spare and fixed ones.
	seats []*seat
	// leaving counts dropped connections that are still sending the reason.
	leaving int
}

// seat is the slot of one connection. The mutex of admission guards used, busy, follows, dropped
// and notified; the other fields do not change once the connection is served.
type seat struct {
	of     *admission
	stream *frame.Stream
	peer   int    // pid of the process that connected; processes whose pid is unknown count as one
	spare  bool   // over the limit: its first request gets an error, and then it ends
	fixed  bool   // does not count for the limit: the client on stdio, or a rejected child process
	left   func() // called when the connection ends; nil: nothing to do

	used     time.Time // end of its last request
	busy     int       // requests in flight
	follows  int       // subscriptions
	dropped  bool      // closed to make room; it must not start requests
	notified bool      // counted in leaving, because the reason is being sent
}

// enter admits a connection of the process peer. At the limit it replaces an idle connection. If
// there is none, it admits the new one as a spare, which only receives an error. It returns false
// if there is no room for a spare either; the caller then closes the connection without a response.
func (a *admission) enter(stream *frame.Stream, peer int) (*seat, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &seat{of: a, stream: stream, peer: peer, used: time.Now()}
	if victim, full := findVictim(a.seats, peer); full {
		if victim != nil {
			a.dropLocked(victim)
		} else if s.spare = true; !spareRoom(a.seats, peer) {
			return nil, false
		}
	}
	a.seats = append(a.seats, s)
	return s, true
}

// findVictim reports whether the limit is reached for the process peer, and which idle connection
// to replace. victim is nil if none is idle. A process at its own limit can replace only its own
// connections.
func findVictim(seats []*seat, peer int) (victim *seat, full bool) {
	count := map[int]int{}
	total := 0
	for _, s := range seats {
		if !s.spare && !s.fixed {
			count[s.peer]++
			total++
		}
	}
	if count[peer] < maxPerProcess && total < maxConnections {
		return nil, false
	}
	for _, s := range seats {
		own := count[peer] < maxPerProcess || s.peer == peer
		if own && s.idle() && (victim == nil || before(s, victim, count)) {
			victim = s
		}
	}
	return victim, true
}

// before reports whether to drop a rather than b: first by the number of connections of its process, then by the longest time unused.
func before(a, b *seat, count map[int]int) bool {
	if count[a.peer] != count[b.peer] {
		return count[a.peer] > count[b.peer]
	}
	return a.used.Before(b.used)
}

// idle reports whether the client loses nothing by a disconnect: it waits for no response or event
// and has read everything. It can connect again and continue.
func (s *seat) idle() bool {
	return !s.spare && !s.fixed && s.busy == 0 && s.follows == 0 && s.stream.Queued() == 0
}

// spareRoom reports whether one more spare connection of the process peer is allowed.
func spareRoom(seats []*seat, peer int) bool {
	all, own := 0, 0
	for _, s := range seats {
		if s.spare {
			all++
			if s.peer == peer {
				own++
			}
		}
	}
	return all < spareConnections && own < sparePerProcess
}

// dropLocked ends a connection. It sends the reason first, unless too many dropped connections are still sending theirs.
func (a *admission) dropLocked(s *seat) {
	a.removeLocked(s)
	s.dropped = true
	if a.leaving >= maxLeaving {
		s.stream.Abort()
		return
	}
	a.leaving++
	s.notified = true
	s.stream.CloseWith(dropped)
}

// dropped is the last message to the client of a dropped connection.
var dropped = encoded(struct {
	Version string          `json:"jsonrpc"`
	ID      *int            `json:"id"`
	Error   *jsonrpc2.Error `json:"error"`
}{"2.0", nil, newError(codeOverloaded, "lashd closed this idle connection to make room for another; connect again", protocol.ErrorData{
	Kind: protocol.KindOverloaded, Retry: protocol.RetryNow, Outcome: protocol.EffectNone,
})})

// tooMany returns the response to the first request of a spare connection.
func tooMany() error {
	text := fmt.Sprintf("too many connections (at most %d, and %d per process); close some and try again", maxConnections, maxPerProcess)
	return newError(codeOverloaded, text, protocol.ErrorData{
		Kind: protocol.KindOverloaded, Retry: protocol.RetryNow, RetryAfterMs: 1000, Outcome: protocol.EffectNone,
	})
}

// removeLocked removes a seat from the list. The caller holds mu.
func (a *admission) removeLocked(s *seat) {
	a.seats = slices.DeleteFunc(a.seats, func(other *seat) bool { return other == s })
}

// addFixed returns a seat that does not count: for the client on stdio, or for a rejected connection.
func (a *admission) addFixed(stream *frame.Stream) *seat {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &seat{of: a, stream: stream, fixed: true}
	a.seats = append(a.seats, s)
	return s
}

// leave frees the seat. Call it once, when the connection has ended.
func (s *seat) leave() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.notified {
		s.of.leaving--
	}
	s.of.removeLocked(s)
	if s.left != nil {
		s.left()
	}
}

// begin counts a request. It returns false if the connection was dropped; the caller must not run
// the request then, because its client has received an error that says that it did not run.
func (s *seat) begin() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.busy++
	return !s.dropped
}

// end counts a response and restarts the idle time.
func (s *seat) end() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.busy--
	s.used = time.Now()
}

// follow adds n to the number of subscriptions.
func (s *seat) follow(n int) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.follows += n
}

// clients returns the number of connections, and the number of bytes queued for them, for
// server/status and server/diagnostics.
func (a *admission) clients() (clients int, queued int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.seats {
		queued += int64(s.stream.Queued())
	}
	return len(a.seats), queued
}

// encoded returns the JSON of a value that always encodes.
func encoded(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return line
}
