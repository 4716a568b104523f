package presence

import (
	"testing"
	"testing/synctest"
	"time"
)

// gone reports whether a client counts as absent now.
func gone(a *Absence) bool {
	synctest.Wait()
	select {
	case <-a.Gone:
		return true
	default:
		return false
	}
}

func TestClientThatStaysAwayCountsAsAbsentAfter30Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		disconnected := p.Connected("cli_a")
		a := p.Watch("cli_a")
		defer a.Stop()
		time.Sleep(time.Hour)
		if gone(a) {
			t.Fatal("absent although it is connected")
		}
		disconnected()
		time.Sleep(30*time.Second - 1)
		if gone(a) {
			t.Error("absent before 30 s")
		}
		time.Sleep(time.Nanosecond)
		if !gone(a) {
			t.Error("not absent after 30 s")
		}
	})
}

func TestClientThatReturnsIsNotAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		a := p.Watch("cli_a") // never connected
		defer a.Stop()
		time.Sleep(29 * time.Second)
		disconnected := p.Connected("cli_a")
		time.Sleep(time.Minute)
		if gone(a) {
			t.Error("absent although it returned after 29 s")
		}
		disconnected()
		time.Sleep(30 * time.Second)
		if !gone(a) {
			t.Error("not absent 30 s after it left again")
		}
	})
}

func TestEachConnectionCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		first, second := p.Connected("cli_a"), p.Connected("cli_a")
		a := p.Watch("cli_a")
		defer a.Stop()
		first()
		first() // once only
		time.Sleep(time.Minute)
		if gone(a) {
			t.Error("absent although one of two connections is left")
		}
		second()
		time.Sleep(30 * time.Second)
		if !gone(a) {
			t.Error("not absent without a connection")
		}
	})
}

func TestOtherClientsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		defer p.Connected("cli_b")()
		a, b := p.Watch("cli_a"), p.Watch("cli_b")
		defer a.Stop()
		defer b.Stop()
		time.Sleep(30 * time.Second)
		if !gone(a) || gone(b) {
			t.Errorf("absent are cli_a %v, cli_b %v; want true, false", gone(a), gone(b))
		}
	})
}

func TestClientsThatNobodyNeedsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New()
		p.Connected("cli_a")()
		disconnected := p.Connected("cli_b")
		a := p.Watch("cli_b")
		disconnected()
		a.Stop()
		if n := len(p.clients); n != 0 {
			t.Errorf("%d clients are kept, want 0", n)
		}
		time.Sleep(time.Minute)
		if gone(a) {
			t.Error("a watch that was stopped ends")
		}
	})
}
