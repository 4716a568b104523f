package engine

import (
	"context"
	"time"

	"lashd/internal/deadline"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// mark says of a point whether its tools are at work, or were and are not looked after yet.
func (w *workspace) mark(id protocol.PointID, working bool) {
	w.eng.files.mu.Lock()
	defer w.eng.files.mu.Unlock()
	w.busy[id] = working
}

// marked tells whether the tools of a point are at work, and whether nobody has looked after them yet.
func (w *workspace) marked(id protocol.PointID) (working, open bool) {
	w.eng.files.mu.Lock()
	defer w.eng.files.mu.Unlock()
	working, open = w.busy[id]
	return working, open
}

// resting are the points whose tools are not at work any more. The look that begins now sees all that they did.
func (w *workspace) resting() (points []protocol.PointID) {
	w.eng.files.mu.Lock()
	defer w.eng.files.mu.Unlock()
	for id, working := range w.busy {
		if !working {
			points = append(points, id)
		}
	}
	return points
}

// seenTo lets go of points whose tools somebody has looked after.
func (w *workspace) seenTo(points []protocol.PointID) {
	w.eng.files.mu.Lock()
	defer w.eng.files.mu.Unlock()
	for _, id := range points {
		delete(w.busy, id)
	}
}

// lookFor is look for a turn, which waits for it only so long.
func (w *workspace) lookFor(ctx context.Context, catchUp bool, note noting) error {
	ctx, cancel := context.WithTimeoutCause(ctx, filePatience, errFilesSlow)
	defer cancel()
	_, err := alone(ctx, w, func() ([]delta, error) { return w.look(ctx, catchUp, note) })
	return err
}

// hangPatience is how long work on a workspace goes on after its turn has had enough of it. What takes longer is given up: its file system may
// hang.
const hangPatience = 50 * time.Second

// alone works on a workspace that is taken for that. Work that is given up keeps it until it ends, so that nobody else is there meanwhile: others
// are told that it takes too long.
func alone[T any](ctx context.Context, w *workspace, work func() (T, error)) (T, error) {
	if err := w.take(ctx); err != nil {
		var zero T
		return zero, err
	}
	return deadline.Do(context.WithoutCancel(ctx), filePatience+hangPatience, errFilesSlow, func(context.Context) (T, error) {
		defer w.giveBack()
		return work()
	})
}

// attribute makes changes those of all whose tools are at work. Without any, somebody else made them, and that is not kept.
func (w *workspace) attribute(deltas []delta) []persistence.FileChange {
	return w.changes(deltas, w.atWorkNow(), false)
}

// atWorkNow are the points of which the next look sees what their tools did.
func (w *workspace) atWorkNow() (points []protocol.PointID) {
	w.eng.files.mu.Lock()
	defer w.eng.files.mu.Unlock()
	for id := range w.busy {
		points = append(points, id)
	}
	return points
}

// changes are what a step did to files, for each of some points.
func (w *workspace) changes(deltas []delta, points []protocol.PointID, unsure bool) (all []persistence.FileChange) {
	if len(deltas)*len(points) == 0 {
		return nil
	}
	w.step++
	for _, id := range points {
		for _, d := range deltas {
			body := persistence.FileChangeBody{Before: d.before, After: d.after, Unsure: unsure}
			all = append(all, persistence.FileChange{Point: id, Step: w.step, Path: d.path, FileChangeBody: body})
		}
	}
	return all
}
