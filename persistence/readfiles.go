package persistence

import (
	"context"
	"database/sql"
	"encoding/json"

	"lashd/rpc/protocol"
)

// FileReader reads what is known of workspaces: their files, file points, and copies of contents. Its methods are safe for concurrent
// use.
type FileReader struct{ pool *readPool }

const selectFiles = `
SELECT path, kind, mode, size, modified, changed, inode, link, problem, coalesce(digest, '')
FROM workspace_files
WHERE workspace = (SELECT workspace FROM workspaces WHERE root = ?)`

// StoredWorkspace is what stood in a workspace when it was looked at last, and the number of the newest step.
type StoredWorkspace struct {
	Known bool // it was looked at
	Files []WorkspaceFile
	Step  int64
}

// Workspace reads what is known of a workspace.
func (f *FileReader) Workspace(ctx context.Context, root string) (w StoredWorkspace, err error) {
	if err := f.pool.row(ctx, "SELECT EXISTS (SELECT 1 FROM workspaces WHERE root = ?)", []any{root}, &w.Known); err != nil {
		return w, err
	}
	w.Files, err = list(ctx, f.pool, func(rows *sql.Rows, w *WorkspaceFile) error {
		var inode int64
		err := rows.Scan(&w.Path, &w.Kind, &w.Mode, &w.Size, &w.ModifiedNs, &w.ChangedNs, &inode, &w.Link, &w.Problem, &w.Digest)
		w.Inode = uint64(inode)
		return err
	}, selectFiles, root)
	if err == nil {
		err = f.pool.row(ctx, "SELECT coalesce(max(step), 0) FROM file_changes", nil, &w.Step)
	}
	return w, err
}

const selectPoints = `
SELECT point, p.workspace, root, body, journal
FROM file_points p JOIN workspaces USING (workspace) `

func scanPoint(rows *sql.Rows, p *StoredPoint) error {
	var body []byte
	if err := rows.Scan(&p.Row, &p.Workspace, &p.Root, &body, &p.Journal); err != nil {
		return err
	}
	return decode(body, &p.FilePoint, "file point")
}

// Points reads the file points of a session in the order in which they were made.
func (f *FileReader) Points(ctx context.Context, session int64) ([]StoredPoint, error) {
	return list(ctx, f.pool, scanPoint, selectPoints+"WHERE session = ? ORDER BY point", session)
}

const pointsBelow = selectPoints + `
WHERE point >= ?2 AND p.session IN (
  WITH RECURSIVE below (session) AS (
    VALUES (?1)
    UNION
    SELECT s.session
    FROM sessions s JOIN below b ON s.parent = b.session)
  SELECT session FROM below)
ORDER BY point`

// PointsBelow reads those of a session, and of all that work for it, from one on.
func (f *FileReader) PointsBelow(ctx context.Context, session, from int64) ([]StoredPoint, error) {
	return list(ctx, f.pool, scanPoint, pointsBelow, session, from)
}

// PointOfTurn reads the file point of a turn, or fails with ErrNotFound.
func (f *FileReader) PointOfTurn(ctx context.Context, session int64, turn protocol.TurnID) (StoredPoint, error) {
	found, err := list(ctx, f.pool, scanPoint, selectPoints+"WHERE session = ? AND turn_id = ?", session, turn)
	if err == nil && len(found) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return StoredPoint{}, err
	}
	return found[0], nil
}

// OpenRewinds reads the rewinds of a session that are not over.
func (f *FileReader) OpenRewinds(ctx context.Context, session int64) ([]StoredPoint, error) {
	return list(ctx, f.pool, scanPoint, selectPoints+"WHERE session = ? AND journal IS NOT NULL ORDER BY point", session)
}

const firstPointSince = `
SELECT min(point)
FROM file_points p JOIN turns t USING (turn_id)
WHERE p.session = ?1 AND t.turn >= (SELECT turn FROM turns WHERE turn_id = ?2 AND session = ?1)`

// FirstPointSince is the row of the first point of a turn, or of one after it; 0: there is none.
func (f *FileReader) FirstPointSince(ctx context.Context, session int64, turn protocol.TurnID) (int64, error) {
	var row sql.NullInt64
	err := f.pool.row(ctx, firstPointSince, []any{session, turn}, &row)
	return row.Int64, err
}

// RewindingSessions are the sessions with a rewind that is not over.
func (f *FileReader) RewindingSessions(ctx context.Context) ([]protocol.SessionID, error) {
	return list(ctx, f.pool, func(rows *sql.Rows, id *protocol.SessionID) error { return rows.Scan(id) },
		"SELECT DISTINCT session_id FROM file_points JOIN sessions USING (session) WHERE journal IS NOT NULL")
}

const selectFileChanges = `
SELECT point_id, step, path, c.body
FROM file_changes c JOIN file_points p USING (point)
WHERE p.workspace = ?1 AND step >= (SELECT min(step) FROM file_changes WHERE point >= ?2)
ORDER BY step, path`

// Changes reads what was done to the files of a workspace in the steps of a point and after these, whoever did it, in the order in
// which it was seen.
func (f *FileReader) Changes(ctx context.Context, workspace, from int64) ([]FileChange, error) {
	return list(ctx, f.pool, scanFileChange, selectFileChanges, workspace, from)
}

func scanFileChange(rows *sql.Rows, d *FileChange) error {
	var body []byte
	if err := rows.Scan(&d.Point, &d.Step, &d.Path, &body); err != nil {
		return err
	}
	return decode(body, &d.FileChangeBody, "change of a file")
}

// KnownCopies tells of which contents there are copies.
func (f *FileReader) KnownCopies(ctx context.Context, digests []protocol.Digest) (map[protocol.Digest]bool, error) {
	asked, err := json.Marshal(digests)
	if err != nil {
		return nil, err
	}
	found, err := list(ctx, f.pool, scanDigest, "SELECT digest FROM file_copies WHERE digest IN (SELECT value FROM json_each(?))", asked)
	known := make(map[protocol.Digest]bool, len(found))
	for _, d := range found {
		known[d] = true
	}
	return known, err
}

func scanCopy(rows *sql.Rows, c *FileCopy) error {
	return rows.Scan(&c.Digest, &c.Pack, &c.At, &c.Length)
}

// Copy tells where the copy of a content lies, or fails with ErrNotFound.
func (f *FileReader) Copy(ctx context.Context, d protocol.Digest) (FileCopy, error) {
	found, err := list(ctx, f.pool, scanCopy, "SELECT digest, pack, at, length FROM file_copies WHERE digest = ?", d)
	if err == nil && len(found) == 0 {
		err = &NotFoundError{What: "copy", ID: string(d)}
	}
	if err != nil {
		return FileCopy{}, err
	}
	return found[0], nil
}

// CopiesIn are the copies in a pack, in the order in which they lie there.
func (f *FileReader) CopiesIn(ctx context.Context, pack string) ([]FileCopy, error) {
	return list(ctx, f.pool, scanCopy, "SELECT digest, pack, at, length FROM file_copies WHERE pack = ? ORDER BY at", pack)
}

// CopyBytes is how much of the packs is copies that rows name, by pack.
func (f *FileReader) CopyBytes(ctx context.Context) (map[string]int64, error) {
	type sum struct {
		pack  string
		bytes int64
	}
	sums, err := list(ctx, f.pool, func(rows *sql.Rows, v *sum) error { return rows.Scan(&v.pack, &v.bytes) },
		"SELECT pack, sum(length) FROM file_copies GROUP BY pack")
	all := make(map[string]int64, len(sums))
	for _, v := range sums {
		all[v.pack] = v.bytes
	}
	return all, err
}

// OldestPoints reads the oldest points that are over and still have changes.
func (f *FileReader) OldestPoints(ctx context.Context, limit int) ([]StoredPoint, error) {
	return list(ctx, f.pool, scanPoint, selectPoints+"WHERE open = 0 AND EXISTS (SELECT 1 FROM file_changes c WHERE c.point = p.point) ORDER BY point LIMIT ?", limit)
}

// CountPoint counts the files that a point changed.
func (f *FileReader) CountPoint(ctx context.Context, id protocol.PointID) (n ChangeCount, err error) {
	err = f.pool.row(ctx, countPoint, []any{id}, &n.Files, &n.Unkept)
	return n, err
}

const countPoint = `
SELECT count(DISTINCT path), count(DISTINCT iif(body ->> '$.before.problem' IS NULL, NULL, path))
FROM file_changes
WHERE point = (SELECT point FROM file_points WHERE point_id = ?)`

// IdleWorkspaces reads the roots of workspaces, by number, of which no point is left that files can be brought back to.
func (f *FileReader) IdleWorkspaces(ctx context.Context) (map[int64]string, error) {
	type row struct {
		workspace int64
		root      string
	}
	found, err := list(ctx, f.pool, func(rows *sql.Rows, v *row) error { return rows.Scan(&v.workspace, &v.root) }, selectIdle)
	idle := make(map[int64]string, len(found))
	for _, v := range found {
		idle[v.workspace] = v.root
	}
	return idle, err
}

const selectIdle = `
SELECT workspace, root
FROM workspaces w
WHERE NOT EXISTS (
  SELECT 1
  FROM file_points p
  WHERE p.workspace = w.workspace AND (p.open OR EXISTS (SELECT 1 FROM file_changes c WHERE c.point = p.point)))`

// CountPoints counts the files that each point of a session changed, and those of which there is no copy of what they were.
func (f *FileReader) CountPoints(ctx context.Context, session int64) (map[protocol.PointID]ChangeCount, error) {
	type count struct {
		point protocol.PointID
		ChangeCount
	}
	counts, err := list(ctx, f.pool, func(rows *sql.Rows, v *count) error { return rows.Scan(&v.point, &v.Files, &v.Unkept) }, countChanges, session)
	all := make(map[protocol.PointID]ChangeCount, len(counts))
	for _, v := range counts {
		all[v.point] = v.ChangeCount
	}
	return all, err
}

// ChangeCount counts files of a point.
type ChangeCount struct{ Files, Unkept int }

const countChanges = `
SELECT point_id, count(DISTINCT path), count(DISTINCT iif(c.body ->> '$.before.problem' IS NULL, NULL, path))
FROM file_changes c JOIN file_points p USING (point)
WHERE p.session = ?
GROUP BY point`
