package fact_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"lashd/engine/change"
	"lashd/engine/fact"
	"lashd/persistence"
)

// language is a value of a fact.
type language string

const (
	cells  fact.Name[language] = "cells"
	format fact.Name[string]   = "format"
)

// session is a session in a store of its own.
type session struct {
	t     *testing.T
	store *persistence.Store
	stop  func()
	base  change.Base
}

// openSession opens the store in a directory and runs it.
func openSession(t *testing.T, dir string) *session {
	t.Helper()
	store, err := persistence.Open(t.Context(), persistence.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(ctx) }()
	return &session{t: t, store: store, stop: func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}}
}

// commit stores a change, or drops it if land is false.
func (s *session) commit(c *change.Change, land bool) {
	s.t.Helper()
	if err := c.Finish(); err != nil {
		s.t.Fatal(err)
	}
	if !land {
		c.Drop()
		return
	}
	if err := c.Seal("ses_1", s.base, 1); err != nil {
		s.t.Fatal(err)
	}
	res, err := s.store.Commit(s.t.Context(), &c.Commit)
	if err != nil {
		s.t.Fatal(err)
	}
	c.Land(res)
}

// book reads the facts from the store.
func (s *session) book() *fact.Book {
	s.t.Helper()
	row, err := s.store.Session(s.t.Context(), "ses_1")
	if err != nil {
		s.t.Fatal(err)
	}
	parts, err := s.store.Components(s.t.Context(), row.Key, "")
	if err != nil {
		s.t.Fatal(err)
	}
	b := &fact.Book{}
	if body := parts[fact.Component]; body != nil {
		if err := json.Unmarshal(body, b); err != nil {
			s.t.Fatal(err)
		}
	}
	return b
}

func TestFacts(t *testing.T) {
	dir := t.TempDir()
	s := openSession(t, dir)
	b := &fact.Book{}
	t.Run("runtime/S06 a fact is set once, and a later change gets the value that it has", func(t *testing.T) {
		c := change.New(s.base, persistence.Commit{Create: &persistence.NewSession{Cwd: "/"}})
		first, again := cells.Settle(b, c, "starlark"), cells.Settle(b, c, "python")
		if _, ok := cells.Of(b); ok || first != "starlark" || again != "starlark" {
			t.Errorf("in one change: %q, then %q, set before it is stored: %v", first, again, ok)
		}
		s.commit(c, true)
		c = change.New(s.base, persistence.Commit{})
		if got := cells.Settle(b, c, "python"); got != "starlark" {
			t.Errorf("in a later change: %q", got)
		}
		if s.commit(c, false); len(c.Component) != 0 {
			t.Errorf("a change that sets nothing writes %d components", len(c.Component))
		}
	})
	t.Run("runtime/S06 a fact of a change that is not stored is not set", func(t *testing.T) {
		c := change.New(s.base, persistence.Commit{})
		format.Settle(b, c, "raw")
		s.commit(c, false)
		if got, ok := format.Of(b); ok {
			t.Errorf("%q", got)
		}
	})
	t.Run("runtime/S06 facts are typed and survive a restart, beside facts that are set later", func(t *testing.T) {
		c := change.New(s.base, persistence.Commit{})
		format.Settle(b, c, "raw")
		s.commit(c, true)
		s.stop()
		s = openSession(t, dir)
		b := s.book()
		var got language
		if got, _ = cells.Of(b); got != "starlark" {
			t.Errorf("cells are %q", got)
		}
		if got, _ := format.Of(b); got != "raw" {
			t.Errorf("format is %q", got)
		}
	})
	s.stop()
}
