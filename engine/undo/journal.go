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

// journal describes the work of a rewind. It is stored before the first file changes and removed in
// the commit that records the outcome. A daemon that finds a journal at its start either completes
// the steps or gives up the rewind, see Files.Resume.
type journal struct {
	// Steps are in the order of filepoint.Order.
	Steps []filepoint.Step      `json:"steps"`
	Files []protocol.FileRewind `json:"files"`
	// Leaf is the last node of the session's history when the rewind started.
	Leaf protocol.NodeID `json:"leaf"`
	// ToNode is the node to which history moves. Empty: history stays.
	ToNode protocol.NodeID `json:"toNode,omitempty"`
	// Key and Hash identify the request, so that a retry gets the same answer.
	Key  string `json:"key,omitempty"`
	Hash []byte `json:"hash,omitempty"`
}

// perform runs the plan. It first commits the journal, then changes the files, then commits the new
// history together with the removal of the journal. A plan without steps only moves history.
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

// complete runs the steps of a stored journal and commits the outcome. It ignores cancellation of
// ctx, because files have changed once it starts. Files that cannot be restored do not stop it:
// they are listed in the result, and the point becomes unrestorable.
func (r *rewind) complete(ctx context.Context, p *persistence.StoredPoint, steps []filepoint.Step) error {
	ctx = context.WithoutCancel(ctx)
	problems := r.applySteps(ctx, steps)
	for i, f := range r.result.Files {
		if err := problems[f.Path]; err != nil {
			r.files.cfg.Log.Error("cannot restore file", "session", p.SessionID, "path", f.Path, "error", err)
			r.result.Files[i].Problem = err.Error()
		}
	}
	if _, err := r.workspace.look(ctx, false, func([]delta) []persistence.FileChange { return nil }); err != nil {
		r.files.cfg.Log.Warn("cannot scan files after a rewind", "session", p.SessionID, "error", err)
	}
	p.State, p.Journal = protocol.PointClosed, nil
	if len(problems) > 0 {
		p.Unrestorable = fmt.Sprintf("%d files could not be restored", len(problems))
	}
	r.result.Point = p.ID
	return r.session.Finish(ctx, Outcome{Point: p, To: r.to, Result: r.result, Request: r.request})
}

// parallelSteps is the number of goroutines that restore files. Each file is synced, so they mostly
// wait for the disk.
const parallelSteps = 8

// applySteps runs steps and returns the errors by path. It can run again after a crash: it skips
// steps that are already done. It does not touch a path that changed after the steps were planned.
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
		r.files.cfg.Log.Error("cannot sync restored files to disk", "root", r.workspace.root, "error", err)
	}
	return problems
}

// errChangedDuringRewind means that another program changed a file after the rewind was planned.
var errChangedDuringRewind = errors.New("the file changed while the undo was running; it is left as it is")

// applyStep runs one step. It does nothing if the path is already in the wanted state, and leaves a
// directory that is not empty.
func (r *rewind) applyStep(ctx context.Context, s filepoint.Step) error {
	now, err := r.workspace.current(ctx, r.dir, s.Path, false)
	switch {
	case err != nil:
		return err
	case filepoint.Equal(now, s.Want):
		return nil
	case !filepoint.Equal(now, s.Now):
		return errChangedDuringRewind
	}
	content, err := r.files.content(ctx, s.Want)
	if err != nil {
		return err
	}
	if err := r.dir.Make(s, content); !errors.Is(err, filepoint.ErrNotEmpty) {
		return err
	}
	return nil // the directory has other files in it
}
