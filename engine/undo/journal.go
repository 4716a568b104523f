package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// journal is what a rewind is about to do. It is stored before the first file changes, and removed in the commit that tells what
// became of the rewind.
type journal struct {
	Steps  []filepoint.Step      `json:"steps"`
	Files  []protocol.FileRewind `json:"files"`
	Leaf   protocol.NodeID       `json:"leaf"`             // of history before it
	ToNode protocol.NodeID       `json:"toNode,omitempty"` // empty: history stays
	Key    string                `json:"key,omitempty"`    // of the request
	Hash   []byte                `json:"hash,omitempty"`
}

// perform does what is planned: first the journal, then the files, then history and the end of the journal in one commit.
func (r *rewind) perform(ctx context.Context) error {
	steps := r.plan.steps
	if len(steps) == 0 {
		return r.session.Finish(ctx, Outcome{To: r.to, Result: r.result, Request: r.request})
	}
	root, ordered := r.workspace.root, filepoint.Order(steps)
	r.workspace.step++
	body, err := json.Marshal(&journal{
		Steps: ordered, Files: r.plan.files, Leaf: r.result.Head.Leaf, ToNode: r.to, Key: r.request.Key, Hash: r.request.Hash,
	})
	if err != nil {
		return err
	}
	p := &persistence.StoredPoint{Root: root, Journal: body, FilePoint: protocol.FilePoint{
		ID: protocol.NewPointID(), SessionID: r.p.SessionID, Kind: protocol.PointRewind, State: protocol.PointOpen, To: r.base, AtMs: time.Now().UnixMilli(), Files: len(steps),
	}}
	changes := r.plan.undoing(p.ID, r.workspace.step)
	begun := persistence.FileCommit{Workspace: root, Points: []persistence.StoredPoint{*p}, Changes: changes}
	if err := r.session.Begin(ctx, begun); err != nil {
		return err
	}
	return r.complete(ctx, p, ordered)
}

// complete makes the steps of a journal, and then closes it. From here on nobody can cancel it.
func (r *rewind) complete(ctx context.Context, p *persistence.StoredPoint, steps []filepoint.Step) error {
	ctx = context.WithoutCancel(ctx)
	problems := r.applySteps(ctx, steps)
	for i, f := range r.result.Files {
		if err := problems[f.Path]; err != nil {
			r.files.cfg.Log.Error("file is not brought back", "session", p.SessionID, "path", f.Path, "error", err)
			r.result.Files[i].Problem = err.Error()
		}
	}
	if _, err := r.workspace.look(ctx, false, func([]delta) []persistence.FileChange { return nil }); err != nil {
		r.files.cfg.Log.Warn("files are not looked at after a rewind", "session", p.SessionID, "error", err)
	}
	p.State, p.Journal = protocol.PointClosed, nil
	if len(problems) > 0 {
		p.Unrestorable = fmt.Sprintf("%d files were not brought back", len(problems))
	}
	r.result.Point = p.ID
	return r.session.Finish(ctx, Outcome{Point: p, To: r.to, Result: r.result, Request: r.request})
}

// parallelSteps is how many files are brought back at once: each is synced, which is mostly waiting.
const parallelSteps = 8

// applySteps makes steps, and returns the errors by path. A step that is done already is not done again; a path that somebody has
// changed since the steps were planned is left alone.
func (r *rewind) applySteps(ctx context.Context, steps []filepoint.Step) map[string]error {
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
		r.files.cfg.Log.Error("files that were brought back are not synced", "root", r.workspace.root, "error", err)
	}
	return problems
}

// errChangedMeanwhile means that somebody changed a file while it was rewound.
var errChangedMeanwhile = errors.New("it was changed in this moment, and is left as it is")

func (r *rewind) applyStep(ctx context.Context, s filepoint.Step) error {
	now, err := r.workspace.current(ctx, r.dir, s.Path, false)
	switch {
	case err != nil:
		return err
	case filepoint.Equal(now, s.Want):
		return nil
	case !filepoint.Equal(now, s.Now):
		return errChangedMeanwhile
	}
	content, err := r.files.content(ctx, s.Want)
	if err != nil {
		return err
	}
	if err := r.dir.Make(s, content); !errors.Is(err, filepoint.ErrNotEmpty) {
		return err
	}
	return nil // somebody else has something in it
}
