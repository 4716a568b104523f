package undo

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"lashd/engine/filepoint"
	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Limits of session/diff. Larger diffs are reported as cut, with their line counts.
const (
	maxDiffText  = 128 << 10 // of one file
	maxDiffTexts = 4 << 20   // of one answer
)

// Points lists the file points of a session, oldest first.
func (f *Files) Points(ctx context.Context, p *protocol.SessionParams) (*protocol.SessionPointsResult, error) {
	row, err := f.cfg.Store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	points, err := f.pointsOf(ctx, row.Key)
	return &protocol.SessionPointsResult{Data: public(points)}, err
}

// pointsOf reads the points of a session with their file counts, and sets Undone and State to their
// present values.
func (f *Files) pointsOf(ctx context.Context, key int64) ([]persistence.StoredPoint, error) {
	points, err := f.cfg.Store.Files.Points(ctx, key)
	if err != nil {
		return nil, err
	}
	counts, err := f.cfg.Store.Files.CountPoints(ctx, key)
	for i := range points {
		if n, ok := counts[points[i].ID]; ok {
			points[i].Files, points[i].Directories, points[i].Unkept = n.Files, n.Directories, n.Unkept
		}
	}
	markUndone(points)
	return points, errors.Join(err, f.closeEnded(ctx, points))
}

// closeEnded marks open points as closed if their turn has ended. A turn that was interrupted ends
// without closing its point. The store is not changed.
func (f *Files) closeEnded(ctx context.Context, points []persistence.StoredPoint) error {
	for i := range points {
		p := &points[i]
		if p.State != protocol.PointOpen || p.Kind != protocol.PointTurn {
			continue
		}
		turn, err := f.cfg.Store.Turn(ctx, p.TurnID)
		if err != nil {
			return err
		}
		if turn.Report != nil {
			p.State = protocol.PointClosed
		}
	}
	return nil
}

// public drops the fields that clients do not see. The result is never nil.
func public(points []persistence.StoredPoint) []protocol.FilePoint {
	all := []protocol.FilePoint{}
	for _, p := range points {
		all = append(all, p.FilePoint)
	}
	return all
}

// markUndone sets Undone on points that a later rewind has undone. It reads rewinds from the newest
// back, because a rewind that is itself undone undoes nothing.
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

// Diff returns what a session changed in files: as a whole, in one turn, or in one file point. The
// changes of a path are combined into one diff. Directories that come or go have none.
func (f *Files) Diff(ctx context.Context, p *protocol.SessionDiffParams) (*protocol.SessionDiffResult, error) {
	limit, err := param.PageSize(p.Limit, 100, 500)
	if err != nil {
		return nil, err
	}
	after, err := diffCursor(p.Cursor)
	if err != nil {
		return nil, err
	}
	row, err := f.cfg.Store.Session(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	points, err := f.pointsToDiff(ctx, row.Key, p)
	if err != nil {
		return nil, err
	}
	result := &protocol.SessionDiffResult{Data: []protocol.FileDiff{}, Points: public(points)}
	if len(points) == 0 {
		return result, nil
	}
	undo := map[protocol.PointID]bool{}
	for _, p := range points {
		undo[p.ID] = p.Workspace == points[0].Workspace
	}
	changes, err := f.cfg.Store.Files.Changes(ctx, points[0].Workspace, points[0].Row)
	if err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(filepoint.Undone(changes, undo), func(u filepoint.Undo) bool { return isDirectory(u.Before) && isDirectory(u.After) })
	page := all[min(after, len(all)):min(after+limit, len(all))]
	if after+len(page) < len(all) {
		result.NextCursor = strconv.Itoa(after + len(page))
	}
	return result, f.diffs(ctx, result, page)
}

// isDirectory reports whether a path held no file.
func isDirectory(s *protocol.FileState) bool { return s == nil || s.Kind == protocol.FileDirectory }

// diffCursor parses a cursor, which is the number of files on earlier pages.
func diffCursor(s string) (int, error) {
	if s == "" {
		return 0, nil
	}
	after, err := strconv.Atoi(s)
	if err != nil || after < 0 {
		return 0, param.Bad("/cursor", "is not a cursor that lashd returned")
	}
	return after, nil
}

// pointsToDiff returns the points that a request selects. Without a turn or point these are all
// points of the session and of its subagents.
func (f *Files) pointsToDiff(ctx context.Context, key int64, p *protocol.SessionDiffParams) ([]persistence.StoredPoint, error) {
	own, err := f.pointsOf(ctx, key)
	if err != nil {
		return nil, err
	}
	if p.TurnID == "" && p.PointID == "" {
		if len(own) == 0 {
			return nil, nil
		}
		return f.cfg.Store.Files.PointsBelow(ctx, key, own[0].Row)
	}
	one := slices.DeleteFunc(own, func(o persistence.StoredPoint) bool {
		return p.TurnID != "" && o.TurnID != p.TurnID || p.PointID != "" && o.ID != p.PointID
	})
	if len(one) > 0 || p.PointID == "" {
		return one, f.knownTurn(ctx, p.SessionID, p.TurnID)
	}
	return nil, &persistence.NotFoundError{What: "file point", ID: string(p.PointID)}
}

// knownTurn returns a not-found error if the turn belongs to another session. An empty id is valid.
func (f *Files) knownTurn(ctx context.Context, session protocol.SessionID, id protocol.TurnID) error {
	if id == "" {
		return nil
	}
	turn, err := f.cfg.Store.Turn(ctx, id)
	if err == nil && turn.Session != session {
		err = &persistence.NotFoundError{What: "turn", ID: string(id)}
	}
	return err
}

// diffs appends files to a result. After maxDiffTexts bytes of diff text it adds files without
// text.
func (f *Files) diffs(ctx context.Context, result *protocol.SessionDiffResult, page []filepoint.Undo) error {
	texts := 0
	for _, u := range page {
		if filepoint.Equal(u.Before, u.After) && filepoint.Unkept(u.Before) == "" {
			continue // its changes cancel out
		}
		d := protocol.FileDiff{Path: u.Path, Effect: filepoint.EffectOf(u.Before, u.After), Kind: kindOf(u.After, u.Before), Before: u.Before, After: u.After, Unkept: filepoint.Unkept(u.Before)}
		diff, err := f.diff(ctx, u.Path, u.Before, u.After)
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
