package persistence

import (
	"context"
	"database/sql"
	"encoding/json"

	"lashd/rpc/protocol"
)

// FileReader reads what is stored about workspaces: the index of their files, file points, and the
// copies of contents. Its methods are safe for concurrent use.
type FileReader struct{ pool *readPool }

// selectFiles reads the index of a workspace by its root. A file without a copy has an empty
// digest.
const selectFiles = `
SELECT path, kind, mode, size, modified, changed, inode, link, problem, coalesce(digest, '')
FROM workspace_files
WHERE workspace = (SELECT workspace FROM workspaces WHERE root = ?)`

// StoredWorkspace is the index of a workspace, and the number of the newest step of any workspace.
type StoredWorkspace struct {
	Known bool // the workspace has been scanned
	Files []WorkspaceFile
	Step  int64
}

// Workspace reads the index of the workspace with this root. An unknown one has Known false.
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

// selectPoints is the start of every query for file points; scanPoint reads its columns.
const selectPoints = `
SELECT point, p.workspace, root, body, journal
FROM file_points p JOIN workspaces USING (workspace) `

// scanPoint scans a row of selectPoints.
func scanPoint(rows *sql.Rows, p *StoredPoint) error {
	var body []byte
	if err := rows.Scan(&p.Row, &p.Workspace, &p.Root, &body, &p.Journal); err != nil {
		return err
	}
	return decode(body, &p.FilePoint, "file point")
}

// Points reads the file points of a session, oldest first.
func (f *FileReader) Points(ctx context.Context, session int64) ([]StoredPoint, error) {
	return list(ctx, f.pool, scanPoint, selectPoints+"WHERE session = ? ORDER BY point", session)
}

// pointsBelow walks from a session down to its descendants.
const pointsBelow = selectPoints + `
WHERE point >= ?2 AND p.session IN (
  WITH RECURSIVE below (session) AS (
    VALUES (?1)
    UNION
    SELECT s.session
    FROM sessions s JOIN below b ON s.parent = b.session)
  SELECT session FROM below)
ORDER BY point`

// PointsBelow reads the file points of a session and all its descendants from row number from on,
// oldest first.
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

// OpenRewinds reads the unfinished undos of a session.
func (f *FileReader) OpenRewinds(ctx context.Context, session int64) ([]StoredPoint, error) {
	return list(ctx, f.pool, scanPoint, selectPoints+"WHERE session = ? AND journal IS NOT NULL ORDER BY point", session)
}

// firstPointSince compares turns by their row number, which is the order of acceptance.
const firstPointSince = `
SELECT min(point)
FROM file_points p JOIN turns t USING (turn_id)
WHERE p.session = ?1 AND t.turn >= (SELECT turn FROM turns WHERE turn_id = ?2 AND session = ?1)`

// FirstPointSince returns the row number of the first file point of a turn or of a later turn of
// the session. 0: there is none.
func (f *FileReader) FirstPointSince(ctx context.Context, session int64, turn protocol.TurnID) (int64, error) {
	var row sql.NullInt64
	err := f.pool.row(ctx, firstPointSince, []any{session, turn}, &row)
	return row.Int64, err
}

// RewindingSessions lists the sessions with an unfinished undo, which a restart must finish.
func (f *FileReader) RewindingSessions(ctx context.Context) ([]protocol.SessionID, error) {
	return list(ctx, f.pool, func(rows *sql.Rows, id *protocol.SessionID) error { return rows.Scan(id) },
		"SELECT DISTINCT session_id FROM file_points JOIN sessions USING (session) WHERE journal IS NOT NULL")
}

// selectFileChanges starts at the first step of the point, since a step may have changes of several
// points.
const selectFileChanges = `
SELECT point_id, step, path, c.body
FROM file_changes c JOIN file_points p USING (point)
WHERE p.workspace = ?1 AND step >= (SELECT min(step) FROM file_changes WHERE point >= ?2)
ORDER BY step, path`

// Changes reads the file changes in a workspace from the first step of the point with row number
// from on, by any session, in the order in which they were seen.
func (f *FileReader) Changes(ctx context.Context, workspace, from int64) ([]FileChange, error) {
	return list(ctx, f.pool, scanFileChange, selectFileChanges, workspace, from)
}

// scanFileChange scans a row of selectFileChanges.
func scanFileChange(rows *sql.Rows, d *FileChange) error {
	var body []byte
	if err := rows.Scan(&d.Point, &d.Step, &d.Path, &body); err != nil {
		return err
	}
	return decode(body, &d.FileChangeBody, "change of a file")
}

// KnownCopies returns which of the digests have a stored copy.
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

// Copy returns the location of a content's copy, or fails with ErrNotFound.
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

// CopiesIn lists the copies in a pack, by their offset.
func (f *FileReader) CopiesIn(ctx context.Context, pack string) ([]FileCopy, error) {
	return list(ctx, f.pool, scanCopy, "SELECT digest, pack, at, length FROM file_copies WHERE pack = ? ORDER BY at", pack)
}

// CopyBytes returns for each pack how many of its bytes are copies in use. The rest of the file can
// be reclaimed.
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

// OldestPoints reads the oldest closed points that still have changes: the first ones to prune.
func (f *FileReader) OldestPoints(ctx context.Context, limit int) ([]StoredPoint, error) {
	return list(ctx, f.pool, scanPoint, selectPoints+"WHERE open = 0 AND EXISTS (SELECT 1 FROM file_changes c WHERE c.point = p.point) ORDER BY point LIMIT ?", limit)
}

// CountPoint counts what a point changed.
func (f *FileReader) CountPoint(ctx context.Context, id protocol.PointID) (n ChangeCount, err error) {
	err = f.pool.row(ctx, countPoint, []any{id}, &n.Files, &n.Directories, &n.Unkept)
	return n, err
}

// countPoint counts a path once, however many steps changed it.
const countPoint = `
SELECT ` + counts + `
FROM file_changes c
WHERE point = (SELECT point FROM file_points WHERE point_id = ?)`

// counts are the columns of a ChangeCount. A path that was a directory in one step and a file in another counts as a file.
const counts = `count(DISTINCT iif(` + onlyDirectory + `, NULL, path)),
  count(DISTINCT path) - count(DISTINCT iif(` + onlyDirectory + `, NULL, path)),
  count(DISTINCT iif(c.body ->> '$.before.problem' IS NULL, NULL, path))`

const onlyDirectory = `coalesce(c.body ->> '$.before.kind', 'directory') = 'directory' AND coalesce(c.body ->> '$.after.kind', 'directory') = 'directory'`

// IdleWorkspaces returns the roots, by row number, of workspaces without a point that can still be
// undone. Their index can be dropped.
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

// selectIdle finds workspaces whose points are all closed and pruned.
const selectIdle = `
SELECT workspace, root
FROM workspaces w
WHERE NOT EXISTS (
  SELECT 1
  FROM file_points p
  WHERE p.workspace = w.workspace AND (p.open OR EXISTS (SELECT 1 FROM file_changes c WHERE c.point = p.point)))`

// CountPoints counts what each point of a session changed.
func (f *FileReader) CountPoints(ctx context.Context, session int64) (map[protocol.PointID]ChangeCount, error) {
	type count struct {
		point protocol.PointID
		ChangeCount
	}
	counts, err := list(ctx, f.pool, func(rows *sql.Rows, v *count) error { return rows.Scan(&v.point, &v.Files, &v.Directories, &v.Unkept) }, countChanges, session)
	all := make(map[protocol.PointID]ChangeCount, len(counts))
	for _, v := range counts {
		all[v.point] = v.ChangeCount
	}
	return all, err
}

// ChangeCount counts the changed files and directories of a point. Unkept is the number of those without a copy of
// their old content.
type ChangeCount struct{ Files, Directories, Unkept int }

// countChanges is countPoint for all points of a session.
const countChanges = `
SELECT point_id, ` + counts + `
FROM file_changes c JOIN file_points p USING (point)
WHERE p.session = ?
GROUP BY point`
