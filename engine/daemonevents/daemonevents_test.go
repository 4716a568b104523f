package daemonevents

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"lashd/rpc/protocol"
)

// titles returns the next events of a watcher: their types, with the titles of sessions.
func titles(t *testing.T, w *Watcher) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	events, err := w.Next(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for _, e := range events {
		line := string(e.Type) + " " + string(e.SessionID)
		if e.Session != nil {
			line += " " + e.Session.Title
		}
		all = append(all, line)
	}
	return all
}

func TestWatcherGetsNewestEventOfEachSubject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Publisher
		w := p.Watch()
		defer w.Close()
		p.Session(protocol.Session{ID: "ses_a", Title: "one"})
		p.Session(protocol.Session{ID: "ses_b", Title: "two"})
		p.Session(protocol.Session{ID: "ses_a", Title: "three"})
		want := []string{"session/changed ses_b two", "session/changed ses_a three"}
		if got := titles(t, w); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		p.SessionDeleted("ses_b")
		if got, want := titles(t, w), []string{"session/deleted ses_b"}; !slices.Equal(got, want) {
			t.Errorf("then got %q, want %q", got, want)
		}
	})
}

func TestEachWatcherGetsEventsSinceItsWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Publisher
		early := p.Watch()
		defer early.Close()
		p.Session(protocol.Session{ID: "ses_a", Title: "one"})
		late := p.Watch()
		defer late.Close()
		p.Session(protocol.Session{ID: "ses_b", Title: "two"})
		if got, want := titles(t, early), []string{"session/changed ses_a one", "session/changed ses_b two"}; !slices.Equal(got, want) {
			t.Errorf("the early watcher got %q, want %q", got, want)
		}
		if got, want := titles(t, late), []string{"session/changed ses_b two"}; !slices.Equal(got, want) {
			t.Errorf("the late watcher got %q, want %q", got, want)
		}
	})
}

func TestNextWaitsForAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Publisher
		w := p.Watch()
		defer w.Close()
		go func() {
			time.Sleep(time.Minute)
			p.SessionDeleted("ses_a")
		}()
		began := time.Now()
		events, err := w.Next(t.Context())
		if err != nil || len(events) != 1 || time.Since(began) != time.Minute {
			t.Fatalf("got %+v, %v after %v; want one event after 1m", events, err, time.Since(began))
		}
		if want := began.Add(time.Minute).UnixMilli(); events[0].AtMs != want {
			t.Errorf("the event is of %d, want %d", events[0].AtMs, want)
		}
	})
}

func TestNextEndsWithItsContext(t *testing.T) {
	var p Publisher
	w := p.Watch()
	defer w.Close()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if events, err := w.Next(ctx); events != nil || err != why {
		t.Errorf("got %+v, %v; want %v", events, err, why)
	}
}

func TestClosedWatcherIsNotWatching(t *testing.T) {
	var p Publisher
	if p.Watched() {
		t.Error("Watched reports true without a watcher")
	}
	a, b := p.Watch(), p.Watch()
	a.Close()
	if !p.Watched() {
		t.Error("not watched although one of two watchers is left")
	}
	b.Close()
	p.SessionDeleted("ses_a")
	if p.Watched() || len(a.take())+len(b.take()) != 0 {
		t.Error("a closed watcher gets events")
	}
}
