package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// rewindJournal is what a rewind is about to do. It is durable before the first file changes, and gone in the commit that tells
// what became of it.
type rewindJournal struct {
	Steps  []filepoint.Step      `json:"steps"`
	Files  []protocol.FileRewind `json:"files"`
	Leaf   protocol.NodeID       `json:"leaf"`             // of history before it
	ToNode protocol.NodeID       `json:"toNode,omitempty"` // empty: history stays
	Key    string                `json:"key,omitempty"`    // of the request, and what it stands for
	Hash   []byte                `json:"hash,omitempty"`
}

// perform does what is planned: first the journal, then the files, then history and the end of the journal in one commit.
func (r *fileRewind) perform(ctx context.Context) (*protocol.SessionRewindResult, error) {
	if len(r.steps) == 0 {
		return r.result, r.on(ctx, func(ctx context.Context, st *state) error { return r.finish(ctx, st, nil) })
	}
	j := &rewindJournal{Steps: filepoint.Order(r.steps), Files: r.result.Files, Leaf: r.result.Head.Leaf, Key: r.rc.key, Hash: r.rc.hash}
	if r.to != nil {
		j.ToNode = r.to.node.ID
	}
	p := &persistence.StoredPoint{Root: r.root, Journal: encode(j), FilePoint: protocol.FilePoint{
		ID: protocol.NewPointID(), SessionID: r.p.SessionID, Kind: protocol.PointRewind, State: protocol.PointOpen, To: r.base.ID, AtMs: now(), Files: len(r.steps),
	}}
	begun := persistence.FileCommit{Workspace: r.root, Points: []persistence.StoredPoint{*p}, Changes: r.undoing(p.ID)}
	err := r.on(ctx, func(ctx context.Context, st *state) error {
		return st.commit(ctx, st.change(persistence.Commit{Files: begun}))
	})
	if err != nil {
		return nil, err
	}
	err = r.complete(ctx, p, j)
	return r.result, err
}

// undoing are the changes that the rewind itself makes, so that it can be undone.
func (r *fileRewind) undoing(id protocol.PointID) (changes []persistence.FileChange) {
	r.step++
	for _, s := range r.steps {
		body := persistence.FileChangeBody{Before: s.Now, After: s.Want}
		changes = append(changes, persistence.FileChange{Point: id, Step: r.step, Path: s.Path, FileChangeBody: body})
	}
	return changes
}

// complete makes the steps of a journal, and then closes it. From here on nobody can cancel it.
func (r *fileRewind) complete(ctx context.Context, p *persistence.StoredPoint, j *rewindJournal) error {
	ctx = context.WithoutCancel(ctx)
	problems := r.applySteps(ctx, j.Steps)
	for i, f := range r.result.Files {
		if err := problems[f.Path]; err != nil {
			r.eng.Log.Error("file is not brought back", "session", p.SessionID, "path", f.Path, "error", err)
			r.result.Files[i].Problem = err.Error()
		}
	}
	if _, err := r.look(ctx, false, func([]delta) []persistence.FileChange { return nil }); err != nil {
		r.eng.Log.Warn("files are not looked at after a rewind", "session", p.SessionID, "error", err)
	}
	p.State, p.Journal = protocol.PointClosed, nil
	if len(problems) > 0 {
		p.Unrestorable = fmt.Sprintf("%d files were not brought back", len(problems))
	}
	r.result.Point = p.ID
	return r.close(p.ID, func(ctx context.Context, st *state) error { return r.finish(ctx, st, p) })
}

// close stores what became of the files. Want of space delays it, and the session is held meanwhile: the journal must not be left
// behind by what comes after it. If lashd ends before, the next one brings the rewind to its end.
func (r *fileRewind) close(id protocol.PointID, store func(context.Context, *state) error) error {
	owner := r.held.owner
	return untilSpace(owner.ctx, func() error { return r.on(owner.ctx, store) }, func(err error) {
		owner.eng.Log.Error("rewind waits to be stored", "session", owner.id, "point", id, "error", err)
	})
}

// parallelSteps is how many files are brought back at once: each is synced, which is mostly waiting.
const parallelSteps = 8

// applySteps makes steps, and tells what went wrong with which. What is done already is not done again; what somebody has changed since
// the steps were planned is left alone.
func (r *fileRewind) applySteps(ctx context.Context, steps []filepoint.Step) map[string]error {
	var mu sync.Mutex
	problems := map[string]error{}
	one := func(s filepoint.Step) {
		if err := r.applyStep(ctx, s); err != nil {
			mu.Lock()
			defer mu.Unlock()
			problems[s.Path] = err
		}
	}
	ordered, free := filepoint.Split(steps)
	for _, s := range ordered {
		one(s)
	}
	var wg sync.WaitGroup
	for part := range slices.Chunk(free, max(1, (len(free)+parallelSteps-1)/parallelSteps)) {
		wg.Go(func() {
			for _, s := range part {
				one(s)
			}
		})
	}
	wg.Wait()
	if err := r.dir.Sync(steps); err != nil {
		r.eng.Log.Error("files that were brought back are not synced", "root", r.root, "error", err)
	}
	return problems
}

// errMeanwhile means that somebody was quicker than a rewind.
var errMeanwhile = errors.New("it was changed in this moment, and is left as it is")

func (r *fileRewind) applyStep(ctx context.Context, s filepoint.Step) error {
	present, err := r.present(ctx, r.dir, s.Path, false)
	switch {
	case err != nil:
		return err
	case filepoint.Equal(present, s.Want):
		return nil
	case !filepoint.Equal(present, s.Now):
		return errMeanwhile
	}
	content, err := r.eng.contentOf(ctx, s.Want)
	if err != nil {
		return err
	}
	if err := r.dir.Make(s, content); !errors.Is(err, filepoint.ErrNotEmpty) {
		return err
	}
	return nil // somebody else has something in it
}

// finish stores what became of the rewind: that of files, if there is any, and that of history.
func (r *fileRewind) finish(ctx context.Context, st *state, p *persistence.StoredPoint) error {
	c := st.change(persistence.Commit{})
	if p != nil {
		c.Files = persistence.FileCommit{Workspace: p.Root, Points: []persistence.StoredPoint{*p}}
		c.Tell(pointEvent(p.FilePoint))
	}
	if r.to != nil && r.to.node.ID != st.row.Head.Leaf {
		st.moveLeaf(ctx, c, *r.to, r.result)
	}
	r.result.Seq = c.Seq()
	if c.Receipt = r.rc.with(r.result); len(c.Told()) == 0 && c.Receipt == nil {
		return nil
	}
	return st.commit(ctx, c)
}
