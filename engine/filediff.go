package engine

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

const (
	maxDiffText  = 128 << 10 // of one file
	maxDiffTexts = 4 << 20   // of one answer
)

// Points lists the file points of a session in the order in which they were made.
func (e *Engine) Points(ctx context.Context, p *protocol.SessionParams) (*protocol.SessionPointsResult, error) {
	row, err := e.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	points, err := e.pointsOf(ctx, row.Key)
	return &protocol.SessionPointsResult{Data: list(public(points))}, err
}

// pointsOf reads the points of a session, and what became of them.
func (e *Engine) pointsOf(ctx context.Context, key int64) ([]persistence.StoredPoint, error) {
	points, err := e.store.FilePoints(ctx, key)
	if err != nil {
		return nil, err
	}
	counts, err := e.store.ChangedFiles(ctx, key)
	for i := range points {
		if n, ok := counts[points[i].ID]; ok {
			points[i].Files, points[i].Unkept = n.Files, n.Unkept
		}
	}
	markUndone(points)
	return points, errors.Join(err, e.closeLeft(ctx, points))
}

// closeLeft says of points that they are over where nobody could: their turn ended without going on.
func (e *Engine) closeLeft(ctx context.Context, points []persistence.StoredPoint) error {
	for i := range points {
		p := &points[i]
		if p.State != protocol.PointOpen || p.Kind != protocol.PointTurn {
			continue
		}
		turn, err := e.store.Turn(ctx, p.TurnID)
		if err != nil {
			return err
		}
		if turn.Report != nil {
			p.State = protocol.PointClosed
		}
	}
	return nil
}

func public(points []persistence.StoredPoint) (all []protocol.FilePoint) {
	for _, p := range points {
		all = append(all, p.FilePoint)
	}
	return all
}

// markUndone says of points which a later rewind has undone, unless that was undone itself.
func markUndone(points []persistence.StoredPoint) {
	for i := len(points) - 1; i >= 0; i-- {
		p := points[i]
		if p.Kind != protocol.PointRewind || p.Undone {
			continue
		}
		to := slices.IndexFunc(points, func(o persistence.StoredPoint) bool { return o.ID == p.To })
		for at := to; at >= 0 && at < i; at++ {
			points[at].Undone = true
		}
	}
}

// Diff tells what a session did to files, or one turn or file point of it.
func (e *Engine) Diff(ctx context.Context, p *protocol.SessionDiffParams) (*protocol.SessionDiffResult, error) {
	limit, err := pageSize(p.Limit, 100, 500)
	if err != nil {
		return nil, err
	}
	after, err := diffCursor(p.Cursor)
	if err != nil {
		return nil, err
	}
	row, err := e.store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	points, err := e.pointsToDiff(ctx, row.Key, p)
	if err != nil {
		return nil, err
	}
	result := &protocol.SessionDiffResult{Data: []protocol.FileDiff{}, Points: list(public(points))}
	if len(points) == 0 {
		return result, nil
	}
	undo := map[protocol.PointID]bool{}
	for _, p := range points {
		undo[p.ID] = p.Workspace == points[0].Workspace
	}
	changes, err := e.store.FileChanges(ctx, points[0].Workspace, points[0].Row)
	if err != nil {
		return nil, err
	}
	all := filepoint.Undone(changes, undo)
	page := all[min(after, len(all)):min(after+limit, len(all))]
	if after+len(page) < len(all) {
		result.NextCursor = strconv.Itoa(after + len(page))
	}
	return result, e.diffs(ctx, result, page)
}

func diffCursor(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	after, err := strconv.Atoi(s)
	if err != nil || after < 0 {
		return 0, bad("/cursor", "is none that lashd gave")
	}
	return after, nil
}

// pointsToDiff are those that are meant: all of a session and of what works for it, or one.
func (e *Engine) pointsToDiff(ctx context.Context, key int64, p *protocol.SessionDiffParams) ([]persistence.StoredPoint, error) {
	own, err := e.pointsOf(ctx, key)
	if err != nil {
		return nil, err
	}
	if p.TurnID == "" && p.PointID == "" {
		if len(own) == 0 {
			return nil, nil
		}
		return e.store.FilePointsBelow(ctx, key, own[0].Row)
	}
	one := slices.DeleteFunc(own, func(o persistence.StoredPoint) bool {
		return p.TurnID != "" && o.TurnID != p.TurnID || p.PointID != "" && o.ID != p.PointID
	})
	if len(one) > 0 || p.PointID == "" {
		return one, e.knownTurn(ctx, p)
	}
	return nil, &persistence.NotFoundError{What: "file point", ID: string(p.PointID)}
}

// knownTurn refuses a turn that is not the session's.
func (e *Engine) knownTurn(ctx context.Context, p *protocol.SessionDiffParams) error {
	if p.TurnID == "" {
		return nil
	}
	turn, err := e.store.Turn(ctx, p.TurnID)
	if err == nil && turn.Session != p.SessionID {
		err = &persistence.NotFoundError{What: "turn", ID: string(p.TurnID)}
	}
	return err
}

// diffs adds files to an answer. Once that is large, they come without their text.
func (e *Engine) diffs(ctx context.Context, result *protocol.SessionDiffResult, page []filepoint.Undo) error {
	texts := 0
	for _, u := range page {
		if filepoint.Equal(u.Before, u.After) && filepoint.Unkept(u.Before) == "" {
			continue // it was made undone
		}
		d := protocol.FileDiff{Path: u.Path, Effect: filepoint.EffectOf(u.Before, u.After), Kind: kindOf(u.After, u.Before), Before: u.Before, After: u.After, Unkept: filepoint.Unkept(u.Before)}
		diff, err := e.compare(ctx, u.Path, u.Before, u.After)
		if err != nil {
			return err
		}
		d.Added, d.Removed, d.Binary = diff.Added, diff.Removed, diff.Binary
		if d.Cut = len(diff.Text) > maxDiffText || texts+len(diff.Text) > maxDiffTexts; !d.Cut {
			d.Diff = diff.Text
			texts += len(diff.Text)
		}
		result.Data = append(result.Data, d)
	}
	return nil
}
