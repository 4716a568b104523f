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

const (
	maxConnections   = 128 // clients at once
	maxPerProcess    = 64  // of them, of one process
	spareConnections = 16  // clients beyond those, which are told so
	sparePerProcess  = 4   // of them, of one process
	maxLeaving       = 64  // dropped connections that may still be told why
)

// admission decides who may connect. When there is no room, it drops a connection that is idle: one without a request in flight and
// without a subscription. It is safe for concurrent use.
type admission struct {
	mu      sync.Mutex
	seats   []*seat
	leaving int
}

// seat is the place of one connection. Its fields are guarded by the admission's mutex, except those that do not change.
type seat struct {
	of     *admission
	stream *frame.Stream
	peer   int    // pid of the process that connected; processes whose pid is unknown count as one
	spare  bool   // one too many: its first request is told so, and it is let go
	fixed  bool   // it counts for nothing: the only connection of a daemon on stdio, or one that is refused
	left   func() // called when it leaves; nil: nothing

	used    time.Time // when it was last used
	busy    int       // requests in flight
	follows int       // subscriptions
	dropped bool
	told    bool // why
}

// enter admits a connection of a process, if need be in place of an idle one, or as a spare. It fails if there is no room even for that.
func (a *admission) enter(stream *frame.Stream, peer int) (*seat, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &seat{of: a, stream: stream, peer: peer, used: time.Now()}
	if victim, full := crowded(a.seats, peer); full {
		if victim != nil {
			a.dropLocked(victim)
		} else if s.spare = true; !spareRoom(a.seats, peer) {
			return nil, false
		}
	}
	a.seats = append(a.seats, s)
	return s, true
}

// crowded tells whether there is no room for another connection of a process, and which one it may have the place of; nil: none.
func crowded(seats []*seat, peer int) (victim *seat, full bool) {
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

// before tells whether a goes before b: one of the process with the most connections, and the one that was not used for longest.
func before(a, b *seat, count map[int]int) bool {
	if count[a.peer] != count[b.peer] {
		return count[a.peer] > count[b.peer]
	}
	return a.used.Before(b.used)
}

// idle tells whether its client would lose nothing: it waits for no answer and no event, and has read what was written.
func (s *seat) idle() bool {
	return !s.spare && !s.fixed && s.busy == 0 && s.follows == 0 && s.stream.Queued() == 0
}

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

// dropLocked ends a connection, and tells its client why unless too many others are being told.
func (a *admission) dropLocked(s *seat) {
	a.removeLocked(s)
	s.dropped = true
	if a.leaving >= maxLeaving {
		s.stream.Abort()
		return
	}
	a.leaving++
	s.told = true
	s.stream.CloseWith(dropped)
}

// dropped is what the client of an idle connection is told at its end.
var dropped = encoded(struct {
	Version string          `json:"jsonrpc"`
	ID      *int            `json:"id"`
	Error   *jsonrpc2.Error `json:"error"`
}{"2.0", nil, newError(codeOverloaded, "lashd closed this idle connection to make room for another; connect again", protocol.ErrorData{
	Kind: protocol.KindOverloaded, Retry: protocol.RetryNow, Outcome: protocol.EffectNone,
})})

func tooMany() error {
	text := fmt.Sprintf("too many connections (at most %d, and %d per process); close some and try again", maxConnections, maxPerProcess)
	return newError(codeOverloaded, text, protocol.ErrorData{
		Kind: protocol.KindOverloaded, Retry: protocol.RetryNow, RetryAfterMs: 1000, Outcome: protocol.EffectNone,
	})
}

func (a *admission) removeLocked(s *seat) {
	a.seats = slices.DeleteFunc(a.seats, func(other *seat) bool { return other == s })
}

// alone is the seat of a connection that is not one of the socket.
func (a *admission) alone(stream *frame.Stream) *seat {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := &seat{of: a, stream: stream, fixed: true}
	a.seats = append(a.seats, s)
	return s
}

// leave gives the place back when the connection has ended.
func (s *seat) leave() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.told {
		s.of.leaving--
	}
	s.of.removeLocked(s)
	if s.left != nil {
		s.left()
	}
}

// begin counts a request. It fails if the connection was dropped: then the request must not be done.
func (s *seat) begin() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.busy++
	return !s.dropped
}

// end counts an answer.
func (s *seat) end() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.busy--
	s.used = time.Now()
}

// follow counts subscriptions that begin, or end.
func (s *seat) follow(n int) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.follows += n
}

// clients is how many connections there are, and queued how many bytes they have yet to read.
func (a *admission) clients() (clients int, queued int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.seats {
		queued += int64(s.stream.Queued())
	}
	return len(a.seats), queued
}

func encoded(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return line
}
