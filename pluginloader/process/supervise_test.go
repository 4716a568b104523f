package process

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// stillborn is a supervisor whose processes never come up; starts has when each was tried.
func stillborn(starts *[]time.Time) *supervisor {
	return &supervisor{plugin: "p", launch: func(context.Context) (*life, error) {
		*starts = append(*starts, time.Now())
		return nil, &Error{"p", Crashed, errors.New("exit status 1")}
	}}
}

// living is a supervisor whose processes live until they are ended.
func living(all *[]*life) *supervisor {
	s := &supervisor{plugin: "p"}
	s.launch = func(context.Context) (*life, error) {
		l := &life{peer: newPeer("p", Limits{}.filled()), grants: newGrants(), over: make(chan struct{}), began: time.Now(), ended: s.ended, log: slog.New(slog.DiscardHandler)}
		*all = append(*all, l)
		return l, nil
	}
	return s
}

func (l *life) dies() {
	l.end(Crashed, errors.New("exit status 1"))
	close(l.over)
}

func TestSupervisor(t *testing.T) {
	t.Run("reliability/P14 a plugin that keeps crashing is started less and less often, and then not at all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var starts []time.Time
			s := stillborn(&starts)
			for range 1000 {
				_, _ = s.use(t.Context())
			}
			if len(starts) != 5 {
				t.Fatalf("%d starts, want 5", len(starts))
			}
			least := 50 * time.Millisecond
			for i := 1; i < len(starts); i++ {
				if gap := starts[i].Sub(starts[i-1]); gap < least || gap > 2*least {
					t.Errorf("start %d follows after %v, want %v to %v", i+1, gap, least, 2*least)
				}
				least *= 2
			}
			if _, err := s.use(t.Context()); codeOf(err) != Quarantined {
				t.Errorf("then it comes to %v", err)
			}
			time.Sleep(time.Hour)
			if _, err := s.use(t.Context()); codeOf(err) != Quarantined || len(starts) != 5 {
				t.Errorf("an hour later it comes to %v", err)
			}
			s.resume()
			if _, err := s.use(t.Context()); codeOf(err) != Crashed || len(starts) != 6 {
				t.Errorf("after Resume it comes to %v, %d starts", err, len(starts))
			}
		})
	})
	t.Run("reliability/P14 who cannot wait for the next start is told at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var starts []time.Time
			s := stillborn(&starts)
			for range 3 {
				_, _ = s.use(t.Context())
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			began := time.Now()
			if _, err := s.use(ctx); codeOf(err) != Crashed || time.Since(began) > 0 {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	})
	t.Run("reliability/P14 seldom crashes never come to a quarantine, and the delay never to more than 30 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var all []*life
			s := living(&all)
			for n := range 20 {
				time.Sleep(40 * time.Second)
				began := time.Now()
				l, err := s.use(t.Context())
				if err != nil || len(all) != n+1 {
					t.Fatalf("%d: %v, %d processes", n, err, len(all))
				}
				if delay := time.Since(began); delay > 30*time.Second {
					t.Errorf("start %d comes after %v", n, delay)
				}
				l.dies()
			}
		})
	})
	t.Run("reliability/P14 one that ends right after the handshake has crashed, too", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var all []*life
			s := living(&all)
			launch := s.launch
			s.launch = func(ctx context.Context) (*life, error) {
				l, err := launch(ctx)
				l.dies()
				return l, err
			}
			for range 100 {
				_, _ = s.use(t.Context())
			}
			if len(all) != 5 {
				t.Errorf("%d starts, want 5", len(all))
			}
		})
	})
	t.Run("many that need it start it once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var all []*life
			s := living(&all)
			for range 50 {
				go func() { _, _ = s.use(t.Context()) }()
			}
			synctest.Wait()
			if len(all) != 1 {
				t.Errorf("%d starts", len(all))
			}
		})
	})
	t.Run("a shutdown does not wait for the next start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var starts []time.Time
			s := stillborn(&starts)
			for range 4 {
				_, _ = s.use(t.Context())
			}
			go func() { _, _ = s.use(t.Context()) }()
			synctest.Wait()
			began := time.Now()
			s.close()
			if took := time.Since(began); took > 0 {
				t.Errorf("it took %v", took)
			}
			if _, err := s.use(t.Context()); codeOf(err) != Stopped {
				t.Errorf("afterwards: %v", err)
			}
		})
	})
}
