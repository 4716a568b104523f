package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"lashd/rpc/protocol"
)

// user is a client with sessions of its own. It reconnects to each new daemon and continues where it
// was.
type user struct {
	*soak
	name   string
	random *rand.Rand
	held   []*held
	peer   *peer
	lost   *request // a request without an answer
	acked  int
	unsure int
}

// request is a request that is repeated until it is answered. A key or an id makes it take effect
// once.
type request struct {
	method string
	params any
	may    protocol.ErrorKind // kind of an error that is acceptable
	then   func(json.RawMessage)
}

func newUser(s *soak, i int) *user {
	return &user{soak: s, name: fmt.Sprintf("user%d", i), random: rand.New(rand.NewPCG(1, uint64(i)))}
}

// has creates a session for the client.
func (u *user) has(p *peer, h *held) {
	u.t.Helper()
	ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{
		SessionID: h.id, Cwd: h.cwd, Unknown: &protocol.UnknownOutcomeRule{DeadlineMs: new(int64)},
	})
	ask[protocol.Empty](p, "session/detach", protocol.SessionParams{SessionID: h.id})
	ask[protocol.TriggerResult](p, "trigger/register", protocol.TriggerRegisterParams{Key: string(h.id), TriggerSpec: protocol.TriggerSpec{
		Source: protocol.TriggerSource{Type: protocol.TypeManualEmitted, Key: string(h.id)},
		Action: protocol.TriggerAction{Kind: protocol.TriggerWakes, Text: "it happened", SessionID: h.id},
	}})
	u.held = append(u.held, h)
}

// work makes one request after another until ctx is done or the daemon has died. Once calm is done it
// makes no pauses.
func (u *user) work(ctx, calm context.Context) {
	if u.connect() != nil {
		return
	}
	for ctx.Err() == nil {
		if u.lost == nil {
			u.lost = u.held[u.random.IntN(len(u.held))].wants(u.random)
		}
		if u.send() != nil {
			return
		}
		select {
		case <-calm.Done():
		case <-time.After(u.pause/2 + time.Duration(u.random.Int64N(int64(u.pause)))):
		}
	}
}

// connect connects to the daemon, attaches to the sessions, and repeats the unanswered request.
func (u *user) connect() (err error) {
	if u.peer != nil {
		u.peer.conn.Close()
	}
	u.peer = u.dial(u.name)
	u.peer.hear(u.heard)
	for _, h := range u.held {
		after := h.seq()
		r, err := try[protocol.SessionAttachResult](u.peer, "session/attach", protocol.SessionAttachParams{SessionID: h.id, AfterSeq: &after})
		switch {
		case err != nil:
			return err
		case r.Gap != nil:
			u.t.Errorf("reliability/I9 a cursor of the previous daemon gets a gap: %+v", r.Gap)
		}
	}
	if u.lost != nil {
		u.unsure++
		return u.send()
	}
	return nil
}

// send sends a request. It fails if the daemon has died.
func (u *user) send() error {
	r := u.lost
	answer, err := try[json.RawMessage](u.peer, r.method, r.params)
	code, kind := refusal(err)
	switch {
	case err == nil, r.may != "" && kind == r.may:
		u.acked++
		if u.lost = nil; r.then != nil && err == nil {
			r.then(answer)
		}
	case code != 0:
		u.lost = nil
		u.t.Errorf("%s %+v is rejected: %v", r.method, r.params, err)
	default:
		return err
	}
	return nil
}

// heard takes an event of one of the sessions.
func (u *user) heard(e told) {
	for _, h := range u.held {
		if e.SessionID == h.id && e.Seq > 0 {
			h.hear(e)
		}
	}
}

// finish lets work end, stops work that does not end, and waits until all sessions are idle.
func (u *user) finish() {
	if u.lost != nil && u.send() != nil {
		u.t.Errorf("%s got no answer to %s", u.name, u.lost.method)
	}
	for _, h := range u.held {
		if err := h.settle(u.peer); err != nil {
			u.t.Errorf("issue/5 %s does not become idle: %v", h.id, err)
		}
	}
	u.peer.conn.Close()
}
