package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"lashd/rpc/protocol"
)

// TestReadersOfTheLogWait reads the log as a subscriber of a session that is being loaded again.
func TestReadersOfTheLogWait(t *testing.T) {
	in3s := func(s *session, then func()) {
		s.resume(true)
		go func() {
			time.Sleep(3 * time.Second)
			then()
		}()
	}
	for name, c := range map[string]struct {
		then func(*session)
		want error
		took time.Duration
	}{
		"until the turn resumes": {func(s *session) {
			s.turnMu.Lock()
			s.turn = &run{journal: journal{nodes: []protocol.Node{{ID: "nod_a"}}}}
			s.turnMu.Unlock()
			s.resumed()
		}, nil, 3 * time.Second},
		"until it is known that no turn resumes": {func(s *session) { s.resume(false) }, nil, 3 * time.Second},
		"until the session leaves memory":        {func(s *session) { close(s.closed) }, ErrShuttingDown, 3 * time.Second},
		"but not without limit":                  {func(*session) {}, nil, resumeTimeout},
	} {
		t.Run("reliability/I9 "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &session{closed: make(chan struct{})}
				in3s(s, func() { c.then(s) })
				began := time.Now()
				n, err := s.draft(t.Context(), "nod_a")
				if took := time.Since(began); !errors.Is(err, c.want) || took != c.took || (n != nil) != (s.turn != nil) {
					t.Errorf("after %v: %v, %v", took, n, err)
				}
			})
		})
	}
}
