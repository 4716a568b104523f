package search

import (
	"context"
	"errors"
	"math"
	"strings"

	"lashd/engine/param"
	"lashd/persistence"
	"lashd/persistence/textindex"
	"lashd/rpc/protocol"
)

// Limits of a search.
const (
	maxQuery = 4 << 10 // bytes
	hitPage  = 256     // matches of a read
	maxHits  = 10_000  // matches that a page looks at; most may be in sessions that are not selected
)

// section is a part of the results. All matches of one are listed before those of the next.
type section int64

const (
	inTitles section = iota
	inMessages
)

// place is where a match is in the results.
type place struct {
	section section
	number  int64 // of the match, which go down within a section
}

// Search looks for messages and titles. It waits up to a second for the index to contain the newest
// messages.
func (s *Searches) Search(ctx context.Context, p *protocol.SessionSearchParams) (*protocol.SessionSearchResult, error) {
	g, err := newMatchPage(p)
	if err != nil {
		return nil, err
	}
	pending, err := s.ready(ctx)
	if err != nil {
		return nil, err
	}
	err = s.fill(ctx, g)
	if textindex.Damaged(err) {
		if pending, err = s.renew(ctx, err); err != nil {
			return nil, err
		}
		g, _ = newMatchPage(p)
		err = s.fill(ctx, g)
	}
	if err != nil {
		return nil, err
	}
	return &protocol.SessionSearchResult{Data: g.data, NextCursor: g.cursor(), Pending: pending}, nil
}

// matchPage collects a page of matches.
type matchPage struct {
	params *protocol.SessionSearchParams
	query  textindex.Query
	cwd    string
	limit  int
	start  place // the last match of the page before
	at     place // the last match that was looked at
	more   bool  // there may be matches for the next page
	looked int
	data   []protocol.SessionMatch

	holders map[int64][]persistence.Holder // by branch
	seen    map[protocol.SessionID]bool    // sessions with a match so far, on earlier pages too; only if each is listed once
}

// newMatchPage checks the params of a search.
func newMatchPage(p *protocol.SessionSearchParams) (*matchPage, error) {
	if len(p.Query) > maxQuery {
		return nil, &param.Error{Pointer: "/query", Reason: "is too long; a query can have 4,096 bytes"}
	}
	query := textindex.Parse(p.Query)
	if query.Empty() {
		return nil, &param.Error{Pointer: "/query", Reason: "has no letter or digit to look for"}
	}
	limit, err := param.PageSize(p.Limit, 20, 100)
	if err != nil {
		return nil, err
	}
	at, err := param.ParseCursor(p.Cursor, param.SearchPages, 2)
	if err != nil {
		return nil, err
	}
	g := &matchPage{
		params: p, query: query, cwd: param.Where(p.Cwd), limit: limit, start: place{section(at[0]), at[1]},
		data: []protocol.SessionMatch{}, holders: map[int64][]persistence.Holder{}, seen: map[protocol.SessionID]bool{},
	}
	if p.Cursor == "" {
		g.start.number = math.MaxInt64
	}
	g.at = g.start
	if p.Distinct { // which sessions earlier pages have is found out again
		g.at = place{inTitles, math.MaxInt64}
	}
	return g, nil
}

// cursor returns where the next page starts; empty: this is the last one.
func (g *matchPage) cursor() string {
	if !g.more {
		return ""
	}
	return param.Cursor(param.SearchPages, int64(g.at.section), g.at.number)
}

// earlier reports whether the match at g.at is on an earlier page.
func (g *matchPage) earlier() bool {
	return g.at.section < g.start.section || g.at.section == g.start.section && g.at.number >= g.start.number
}

// fill looks for matches until the page is full.
func (s *Searches) fill(ctx context.Context, g *matchPage) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.index == nil {
		return errors.New("the search index is not open; repeat the search")
	}
	for g.at.section <= inMessages {
		hits, err := s.hits(ctx, g)
		if err != nil {
			return err
		}
		for _, h := range hits {
			if g.more = len(g.data) == g.limit || g.looked == maxHits; g.more {
				return nil
			}
			g.looked++
			g.at.number = h.Number
			if err := s.look(ctx, g, h); err != nil {
				return err
			}
		}
		if len(hits) < hitPage {
			g.at = place{g.at.section + 1, math.MaxInt64}
		}
	}
	return nil
}

// hits reads the next matches of the section.
func (s *Searches) hits(ctx context.Context, g *matchPage) ([]textindex.Hit, error) {
	if g.at.section == inTitles {
		return s.index.FindTitles(ctx, g.query, g.at.number, hitPage)
	}
	return s.index.FindMessages(ctx, g.query, g.cwd, g.at.number, hitPage)
}

// look adds a match to the page, if its session is selected. A match that the store has no more is
// skipped.
func (s *Searches) look(ctx context.Context, g *matchPage, h textindex.Hit) error {
	session, left, err := s.holder(ctx, g, h)
	if errors.Is(err, persistence.ErrNotFound) || err == nil && session == nil {
		return nil
	}
	if err != nil {
		return err
	}
	if g.params.Distinct {
		again := g.seen[session.ID]
		g.seen[session.ID] = true
		if again || g.earlier() {
			return nil
		}
	}
	m := protocol.SessionMatch{
		SessionID: session.ID, Title: session.Title, Cwd: session.Cwd, UpdatedAtMs: session.UpdatedAtMs, Left: left,
		Snippet: strings.Join(strings.Fields(session.Title), " "),
	}
	if g.at.section == inMessages {
		err = s.describe(ctx, g, h, &m)
	}
	if errors.Is(err, persistence.ErrNotFound) {
		return nil
	}
	g.data = append(g.data, m)
	return err
}

// describe adds the message to a match.
func (s *Searches) describe(ctx context.Context, g *matchPage, h textindex.Hit, m *protocol.SessionMatch) (err error) {
	m.Role = protocol.RoleUser
	if h.Agent {
		m.Role = protocol.RoleAssistant
	}
	if m.NodeID, m.TurnID, m.AtMs, err = s.store.Search.NodeAt(ctx, h.Branch, h.Generation); err == nil {
		m.Snippet, err = s.index.Snippet(ctx, g.query, h.Number)
	}
	return err
}

// holder returns the session under which a match is listed; nil: no session that has it is selected.
// It is the session that the message was written in, or else its newest fork. A session whose active
// path has the message precedes one that has left it.
func (s *Searches) holder(ctx context.Context, g *matchPage, h textindex.Hit) (session *persistence.Holder, left bool, err error) {
	if g.at.section == inTitles {
		one, err := s.store.Search.SessionHolder(ctx, h.Number)
		if err != nil || !g.selects(&one) {
			return nil, false, err
		}
		return &one, false, nil
	}
	all, known := g.holders[h.Branch]
	if !known {
		if all, err = s.store.Search.Holders(ctx, h.Branch); err != nil {
			return nil, false, err
		}
		g.holders[h.Branch] = all
	}
	for i := range all {
		switch one := &all[i]; {
		case !g.selects(one):
		case h.Generation <= one.UpTo:
			return one, false, nil
		case one.Owner:
			session, left = one, true
		}
	}
	return session, left, nil
}

// selects reports whether the search is about a session.
func (g *matchPage) selects(h *persistence.Holder) bool {
	return h.Archived == g.params.Archived && (g.params.Children || !h.Child) && (g.cwd == "" || h.Cwd == g.cwd)
}
