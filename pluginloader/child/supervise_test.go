package child

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// run is the simplest life.
type run struct {
	began time.Time
	over  chan struct{}
}

func (r *run) Alive() bool {
	select {
	case <-r.over:
		return false
	default:
		return true
	}
}

func (r *run) Over() <-chan struct{} { return r.over }
func (r *run) Began() time.Time      { return r.began }
func (r *run) Reason() error         { return errors.New("exit status 1") }

func (r *run) dies(s *Supervisor[*run]) {
	close(r.over)
	s.Ended(r)
}

// stillborn is a supervisor whose lives never come up; starts has when each was tried.
func stillborn(starts *[]time.Time) *Supervisor[*run] {
	return &Supervisor[*run]{Plugin: "p", Launch: func(context.Context) (*run, error) {
		*starts = append(*starts, time.Now())
		return nil, &Error{"p", Crashed, errors.New("exit status 1")}
	}}
}

// living is a supervisor whose lives last until they are ended.
func living(all *[]*run) *Supervisor[*run] {
	return &Supervisor[*run]{Plugin: "p", Launch: func(context.Context) (*run, error) {
		r := &run{time.Now(), make(chan struct{})}
		*all = append(*all, r)
		return r, nil
	}}
}

func TestSupervisor(t *testing.T) {
	t.Run("reliability/P14 a crashing plugin restarts less and less often, and then not at all", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var starts []time.Time
			s := stillborn(&starts)
			for range 1000 {
				_, _ = s.Use(t.Context())
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
			if _, err := s.Use(t.Context()); CodeOf(err) != Quarantined {
				t.Errorf("then: got %v", err)
			}
			time.Sleep(time.Hour)
			if _, err := s.Use(t.Context()); CodeOf(err) != Quarantined || len(starts) != 5 {
				t.Errorf("an hour later: got %v", err)
			}
			s.Resume()
			if _, err := s.Use(t.Context()); CodeOf(err) != Crashed || len(starts) != 6 {
				t.Errorf("after Resume: got %v, %d starts", err, len(starts))
			}
		})
	})
	t.Run("outside/26 a resumed supervisor reports success only after a start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var starts []time.Time
			var all []*run
			broken, works := stillborn(&starts), living(&all)
			var reports []Standing
			s := &Supervisor[*run]{Plugin: "p", Launch: broken.Launch}
			s.Report = func() {
				_, st := s.Look()
				reports = append(reports, st)
			}
			fails := func() {
				for range 6 {
					_, _ = s.Use(t.Context())
				}
				synctest.Wait()
			}
			fails()
			s.Resume()
			if _, st := s.Look(); !st.Resumed || st.Failing || st.Quarantined || len(reports) != 1 || !reports[0].Failing {
				t.Errorf("resumed it is %+v, reported were %+v", st, reports)
			}
			fails()
			if len(reports) != 2 || !reports[1].Failing || reports[1].Resumed {
				t.Errorf("failed again, reported were %+v", reports)
			}
			s.Resume()
			s.Launch = works.Launch
			_, err := s.Use(t.Context())
			synctest.Wait()
			if err != nil || len(reports) != 3 || reports[2].Failing || reports[2].Resumed {
				t.Errorf("begun: %v, reported were %+v", err, reports)
			}
			close(all[0].over)
		})
	})
	t.Run("reliability/P14 a caller with a short deadline fails at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var starts []time.Time
			s := stillborn(&starts)
			for range 3 {
				_, _ = s.Use(t.Context())
			}
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			began := time.Now()
			if _, err := s.Use(ctx); CodeOf(err) != Crashed || time.Since(began) > 0 {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		})
	})
	t.Run("reliability/P14 a tireless life is retried for ever, at least every 30 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var starts []time.Time
			s := stillborn(&starts)
			s.Tireless = true
			for range 50 {
				_, _ = s.Use(t.Context())
			}
			last := len(starts) - 1
			if gap := starts[last].Sub(starts[last-1]); len(starts) != 50 || gap < 15*time.Second || gap > 30*time.Second {
				t.Errorf("%d starts, the last after %v", len(starts), gap)
			}
		})
	})
	t.Run("reliability/P14 rare crashes never lead to quarantine, and the delay never exceeds 30 s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var all []*run
			s := living(&all)
			for n := range 20 {
				time.Sleep(40 * time.Second)
				began := time.Now()
				l, err := s.Use(t.Context())
				if err != nil || len(all) != n+1 {
					t.Fatalf("%d: %v, %d processes", n, err, len(all))
				}
				if delay := time.Since(began); delay > 30*time.Second {
					t.Errorf("start %d comes after %v", n, delay)
				}
				l.dies(s)
			}
		})
	})
	t.Run("reliability/P14 an exit right after the handshake counts as a crash", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var all []*run
			s := living(&all)
			launch := s.Launch
			s.Launch = func(ctx context.Context) (*run, error) {
				l, err := launch(ctx)
				l.dies(s)
				return l, err
			}
			for range 100 {
				_, _ = s.Use(t.Context())
			}
			if len(all) != 5 {
				t.Errorf("%d starts, want 5", len(all))
			}
		})
	})
	t.Run("reliability/P14 an unreported end counts as a crash", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var all []*run
			s := living(&all)
			l, _ := s.Use(t.Context())
			close(l.over)
			began := time.Now()
			_, _ = s.Use(t.Context())
			if took := time.Since(began); took < 50*time.Millisecond || len(all) != 2 {
				t.Errorf("the next start comes after %v, %d starts", took, len(all))
			}
		})
	})
	t.Run("concurrent callers start a plugin once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var all []*run
			s := living(&all)
			for range 50 {
				go func() { _, _ = s.Use(t.Context()) }()
			}
			synctest.Wait()
			if len(all) != 1 {
				t.Errorf("%d starts", len(all))
			}
		})
	})
	t.Run("shutdown does not wait for the next start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var starts []time.Time
			s := stillborn(&starts)
			for range 4 {
				_, _ = s.Use(t.Context())
			}
			go func() { _, _ = s.Use(t.Context()) }()
			synctest.Wait()
			began := time.Now()
			s.Close()
			if took := time.Since(began); took > 0 {
				t.Errorf("it took %v", took)
			}
			if _, err := s.Use(t.Context()); CodeOf(err) != Stopped {
				t.Errorf("afterwards: %v", err)
			}
		})
	})
}
