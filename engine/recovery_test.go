package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// sleeper is a plugin that needs a minute to open one session.
type sleeper struct{ session protocol.SessionID }

func (*sleeper) ID() string                       { return "sleeper" }
func (*sleeper) Register(*plugin.Registrar) error { return nil }

func (s *sleeper) Build(b plugin.BuildContext) (plugin.Plugin, error) {
	if b.SessionID == s.session {
		time.Sleep(9 * time.Second)
	}
	return s, nil
}

func TestRecovery(t *testing.T) {
	t.Run("runtime/P11 a session that is slow to load does not delay the others", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := &sleeper{}
			d := start(t, setup{model: replies(scripted.Reply{Stall: true}), plugins: []plugin.Factory{s}})
			slow, quick := d.session(t), d.session(t)
			d.begin(t, slow, "go")
			turn := d.begin(t, quick, "go").TurnID
			synctest.Wait()
			s.session = slow
			d = d.restart(t, func(s *setup) { s.model = replies(scripted.Reply{Text: "ok"}) })
			began := time.Now()
			if report := d.wait(t, turn); report.State != protocol.TurnCompleted || time.Since(began) > time.Second {
				t.Errorf("it ended as %s after %v", report.State, time.Since(began))
			}
			time.Sleep(time.Minute) // long enough for the other session to open
		})
	})
}
