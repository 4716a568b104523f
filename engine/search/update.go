package search

import (
	"context"
	"strings"

	"lashd/persistence"
	"lashd/persistence/textindex"
	"lashd/rpc/protocol"
)

// Sizes of the steps in which the index is updated.
const (
	scanPage   = 1000    // branches, marks or titles of a read
	nodePage   = 256     // nodes of a read
	batchNodes = 4000    // nodes of a transaction of the index
	batchText  = 1 << 20 // bytes of text after which a transaction ends
)

// catchUp brings the index up to date: the first time by comparing it with the whole store, later
// with what has changed.
func (s *Searches) catchUp(ctx context.Context) error {
	if s.index == nil {
		if err := s.open(ctx); err != nil {
			return err
		}
	}
	u := &update{store: s.store, index: s.index, pending: s.setPending}
	var err error
	if s.scanned {
		branches, sessions := s.store.Search.Changes.Take()
		err = u.take(ctx, branches, sessions)
	} else {
		err = u.scan(ctx)
	}
	if err == nil {
		err = u.run(ctx)
	}
	s.scanned = err == nil // after a failure, compare again
	return err
}

// update is one update of the index: the branches and titles that differ from the store, and the
// batch that is written next.
type update struct {
	store   *persistence.Store
	index   *textindex.Index
	stale   []staleBranch
	batch   textindex.Batch
	nodes   int   // read for the batch
	text    int   // bytes in the batch
	left    int64 // nodes that are missing in the index
	cut     bool  // text was removed
	pending func(int64)
}

// staleBranch is a branch of which the index has other nodes than the store. mark is the generation
// up to which the index has it.
type staleBranch struct {
	persistence.BranchEnd
	mark int64
}

// take finds the differences among the branches and sessions that have changed.
func (u *update) take(ctx context.Context, branches, sessions []int64) error {
	for _, b := range branches {
		end, err := u.store.Search.BranchEnd(ctx, b)
		if err != nil {
			return err
		}
		mark, err := u.index.Mark(ctx, b)
		if err != nil {
			return err
		}
		u.compare(end, mark)
	}
	for _, key := range sessions {
		title, err := u.store.Search.Title(ctx, key)
		if err != nil {
			return err
		}
		found, err := u.index.Titles(ctx, key-1, 1)
		if err != nil {
			return err
		}
		if len(found) == 0 || found[0].Session != key {
			found = []textindex.Title{{Session: key}}
		}
		u.compareTitle(textindex.Title(title), found[0])
	}
	return nil
}

// compare notes a branch if index and store differ.
func (u *update) compare(end persistence.BranchEnd, mark int64) {
	if end.Last != mark {
		u.stale = append(u.stale, staleBranch{end, mark})
		u.left += max(0, end.Last-mark)
	}
}

// compareTitle notes a title if index and store differ.
func (u *update) compareTitle(now, indexed textindex.Title) {
	if now != indexed {
		u.batch.Titles = append(u.batch.Titles, now)
		u.cut = u.cut || indexed.Title != ""
	}
}

// scan finds all differences between index and store.
func (u *update) scan(ctx context.Context) error {
	ends := reader[persistence.BranchEnd]{
		next: u.store.Search.BranchEnds, key: func(b persistence.BranchEnd) int64 { return b.Branch },
	}
	marks := reader[textindex.Mark]{next: u.index.Marks, key: func(m textindex.Mark) int64 { return m.Branch }}
	err := merge(ctx, &ends, &marks, func(branch int64, end *persistence.BranchEnd, mark *textindex.Mark) {
		if end == nil {
			end = &persistence.BranchEnd{Branch: branch, Last: -1}
		}
		if mark == nil {
			mark = &textindex.Mark{Generation: -1}
		}
		u.compare(*end, mark.Generation)
	})
	if err != nil {
		return err
	}
	titles := reader[persistence.SessionTitle]{
		next: u.store.Search.Titles, key: func(t persistence.SessionTitle) int64 { return t.Session },
	}
	indexed := reader[textindex.Title]{next: u.index.Titles, key: func(t textindex.Title) int64 { return t.Session }}
	return merge(ctx, &titles, &indexed, func(key int64, now *persistence.SessionTitle, then *textindex.Title) {
		if now == nil {
			now = &persistence.SessionTitle{Session: key}
		}
		if then == nil {
			then = &textindex.Title{Session: key}
		}
		u.compareTitle(textindex.Title(*now), *then)
	})
}

// run writes all differences to the index.
func (u *update) run(ctx context.Context) error {
	u.pending(u.left)
	for _, b := range u.stale {
		if err := u.branch(ctx, b); err != nil {
			return err
		}
	}
	if err := u.flush(ctx); err != nil || !u.cut {
		return err
	}
	return u.index.Erase(ctx)
}

// branch adds the nodes of a branch that are missing in the index, or removes those that the store
// has no more.
func (u *update) branch(ctx context.Context, b staleBranch) error {
	if b.Last < b.mark {
		u.cut = true
		u.batch.Marks = append(u.batch.Marks, textindex.Mark{Branch: b.Branch, Generation: b.Last})
	}
	for b.mark < b.Last {
		nodes, err := u.store.Search.Texts(ctx, b.Branch, b.mark, nodePage)
		if err != nil {
			return err
		}
		if len(nodes) == 0 { // deleted since; the change is noted
			return nil
		}
		for i := range nodes {
			u.add(&nodes[i], b.BranchEnd)
		}
		read := nodes[len(nodes)-1].Generation
		u.nodes += len(nodes)
		u.left -= read - b.mark
		b.mark = read
		u.mark(textindex.Mark{Branch: b.Branch, Generation: read})
		if u.nodes >= batchNodes || u.text >= batchText {
			if err := u.flush(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// mark sets the mark of the branch that is being read.
func (u *update) mark(m textindex.Mark) {
	if n := len(u.batch.Marks); n > 0 && u.batch.Marks[n-1].Branch == m.Branch {
		u.batch.Marks = u.batch.Marks[:n-1]
	}
	u.batch.Marks = append(u.batch.Marks, m)
}

// add adds the message of a node to the batch, if it has one that people or models wrote.
func (u *update) add(n *protocol.Node, of persistence.BranchEnd) {
	text := messageText(n.Message)
	if text == "" {
		return
	}
	u.text += len(text)
	u.batch.Messages = append(u.batch.Messages, textindex.Message{
		Branch: of.Branch, Generation: n.Generation, AtMs: n.AtMs, Agent: n.Message.Role == protocol.RoleAssistant, Cwd: of.Cwd, Text: text,
	})
}

// messageText returns the text that a person or a model wrote in a message. Wakes, reasoning, tool
// calls and their results are left out.
func messageText(m *protocol.Message) string {
	if m == nil {
		return ""
	}
	kinds := []protocol.PartKind{protocol.PartText}
	switch {
	case m.Role == protocol.RoleAssistant:
		kinds = append(kinds, protocol.PartCommentary, protocol.PartProse)
	case m.Role != protocol.RoleUser || m.Cause() != nil:
		return ""
	}
	var texts []string
	for i := range m.Parts {
		for _, kind := range kinds {
			if p := &m.Parts[i]; p.Kind == kind && strings.TrimSpace(p.Text) != "" {
				texts = append(texts, p.Text)
			}
		}
	}
	return strings.Join(texts, "\n")
}

// flush writes the batch and starts the next one.
func (u *update) flush(ctx context.Context) error {
	if err := u.index.Write(ctx, &u.batch); err != nil {
		return err
	}
	u.batch, u.nodes, u.text = textindex.Batch{}, 0, 0
	u.pending(u.left)
	return nil
}
