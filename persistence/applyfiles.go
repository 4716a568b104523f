package persistence

import (
	"context"
	"fmt"

	"lashd/rpc/protocol"
)

// FileCommit is the part of a commit about the files of one workspace. Points need a session; the
// other fields do not.
type FileCommit struct {
	Workspace string // real path of the root; empty: the commit is about no files
	Copies    []FileCopy
	Index     []WorkspaceFile // new state of these files
	Gone      []string        // paths that no longer exist
	Points    []StoredPoint
	Changes   []FileChange
	Forget    []protocol.PointID // points that are removed
	Pruned    []StoredPoint      // points that lose their changes, so that their copies can be removed
}

// FileTidy is the part of a commit that removes stored file data of any workspace.
type FileTidy struct {
	Indexes []int64    // workspaces whose index is dropped; the next scan reads all their files again
	Moved   []FileCopy // copies with their new location
	Sweep   bool       // remove copies and workspaces that nothing refers to
	InUse   []string   // roots of workspaces that Sweep keeps in any case
}

// FileCopy is the location of a copy of file content: Length bytes at offset At of the file Pack.
// Contents are identified by their digest, so equal files share one copy.
type FileCopy struct {
	Digest protocol.Digest
	Pack   string
	At     int64
	Length int64
}

// WorkspaceFile is the state of a path at the last scan. If the size, times and inode are
// unchanged, the next scan does not read the file.
type WorkspaceFile struct {
	Path string
	protocol.FileState
	ModifiedNs int64
	ChangedNs  int64
	Inode      uint64
}

// StoredPoint is a file point as stored, with the journal of an undo that has not finished.
type StoredPoint struct {
	Row       int64 // order of creation; assigned by the store
	Workspace int64 // row number of the workspace; assigned by the store
	Root      string
	protocol.FilePoint
	Journal []byte // remaining work of an undo; nil: none
}

// FileChange is the change of one path in one step of a workspace's history.
type FileChange struct {
	Point protocol.PointID
	Step  int64
	Path  string
	FileChangeBody
}

// FileChangeBody is the state of a path before and after a change. Nil means that nothing was
// there.
type FileChangeBody struct {
	Before *protocol.FileState `json:"before,omitempty"`
	After  *protocol.FileState `json:"after,omitempty"`
	// Unsure marks a change that was found after an interruption: another program may have made it.
	Unsure bool `json:"unsure,omitempty"`
}

// fileBodies holds the JSON of a FileCommit's parts, parallel to its slices.
type fileBodies struct {
	points, changes, pruned [][]byte
	inUse                   []byte
}

// files encodes the file part of a commit.
func (e *encoder) files(c FileCommit, tidy FileTidy) (b fileBodies) {
	if tidy.Sweep {
		b.inUse = e.json(append([]string{}, tidy.InUse...))
	}
	for _, p := range c.Points {
		b.points = append(b.points, e.json(p.FilePoint))
		e.size += len(p.Journal)
	}
	for _, p := range c.Pruned {
		b.pruned = append(b.pruned, e.json(p.FilePoint))
	}
	for _, d := range c.Changes {
		b.changes = append(b.changes, e.json(d.FileChangeBody))
	}
	return b
}

// Statements for the index, the copies and the points of a workspace. A copy that exists keeps its
// location, because the content is the same. Row numbers of new rows are computed in the statement,
// since the checksum of the row covers them.
const (
	insertWorkspace = `
INSERT INTO workspaces (workspace, root)
VALUES (` + nextWorkspace + `, ?)
ON CONFLICT (root) DO NOTHING`
	insertCopy = `
INSERT INTO file_copies (digest, pack, at, length)
VALUES (?, ?, ?, ?)
ON CONFLICT (digest) DO NOTHING`
	upsertFile = `
INSERT INTO workspace_files (workspace, path, kind, mode, size, modified, changed, inode, link, problem, digest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (workspace, path) DO UPDATE
SET kind = excluded.kind, mode = excluded.mode, size = excluded.size, modified = excluded.modified, changed = excluded.changed,
    inode = excluded.inode, link = excluded.link, problem = excluded.problem, digest = excluded.digest`
	deleteFile  = "DELETE FROM workspace_files WHERE workspace = ? AND path = ?"
	upsertPoint = `
INSERT INTO file_points (point, point_id, session, workspace, turn_id, open, body, journal)
VALUES (` + nextPoint + `, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (point_id) DO UPDATE
SET open = excluded.open, body = excluded.body, journal = excluded.journal`
	insertFileChange = `
INSERT INTO file_changes (point, step, path, before, after, body)
SELECT point, ?, ?, ?, ?, ?
FROM file_points
WHERE point_id = ?`
)

// applyFiles stores the result of a scan. h is nil in a commit without a session.
func applyFiles(ctx context.Context, t *tx, c *change, h *head) error {
	if err := applyTidy(ctx, t, c); err != nil || c.Files.Workspace == "" {
		return err
	}
	if err := t.exec(ctx, insertWorkspace, c.Files.Workspace); err != nil {
		return err
	}
	var workspace int64
	if err := t.row(ctx, "SELECT workspace FROM workspaces WHERE root = ?", []any{c.Files.Workspace}, &workspace); err != nil {
		return err
	}
	for _, k := range c.Files.Copies {
		if err := t.exec(ctx, insertCopy, k.Digest, k.Pack, k.At, k.Length); err != nil {
			return err
		}
	}
	for _, f := range c.Files.Index {
		err := t.exec(ctx, upsertFile, workspace, f.Path, f.Kind, f.Mode, f.Size, f.ModifiedNs, f.ChangedNs, int64(f.Inode), f.Link, f.Problem, copyOf(&f.FileState))
		if err != nil {
			return err
		}
	}
	for _, path := range c.Files.Gone {
		if err := t.exec(ctx, deleteFile, workspace, path); err != nil {
			return err
		}
	}
	return applyPoints(ctx, t, c, h, workspace)
}

// applyPoints stores the points of a commit and their changes. Forgotten points are removed last.
func applyPoints(ctx context.Context, t *tx, c *change, h *head, workspace int64) error {
	for i, p := range c.Files.Points {
		if h == nil {
			return fmt.Errorf("file point %s has no session: %w", p.ID, ErrInvalid)
		}
		open := p.State == protocol.PointOpen
		if err := t.exec(ctx, upsertPoint, p.ID, h.session, workspace, p.TurnID, open, c.files.points[i], p.Journal); err != nil {
			return fmt.Errorf("file point %s: %w", p.ID, err)
		}
	}
	for i, d := range c.Files.Changes {
		if err := t.exec(ctx, insertFileChange, d.Step, d.Path, copyOf(d.Before), copyOf(d.After), c.files.changes[i], d.Point); err != nil {
			return fmt.Errorf("change of %s: %w", d.Path, err)
		}
	}
	for _, id := range c.Files.Forget {
		if err := t.exec(ctx, "DELETE FROM file_points WHERE point_id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

// Statements of applyTidy. sweepWorkspaces keeps workspaces with a point and those in a JSON array.
// sweepCopies keeps copies that the index or a change refers to.
const (
	dropIndex       = "DELETE FROM workspace_files WHERE workspace = ?"
	moveCopy        = "UPDATE file_copies SET pack = ?, at = ?, length = ? WHERE digest = ?"
	sweepWorkspaces = `
DELETE FROM workspaces
WHERE NOT EXISTS (SELECT 1 FROM file_points p WHERE p.workspace = workspaces.workspace)
  AND root NOT IN (SELECT value FROM json_each(?))`
	sweepCopies = `
DELETE FROM file_copies
WHERE NOT EXISTS (SELECT 1 FROM workspace_files f WHERE f.digest = file_copies.digest)
  AND NOT EXISTS (SELECT 1 FROM file_changes c WHERE c.before = file_copies.digest)
  AND NOT EXISTS (SELECT 1 FROM file_changes c WHERE c.after = file_copies.digest)`
)

// applyTidy removes changes of pruned points and what Tidy names. Copies are swept last, when no
// row refers to them any more.
func applyTidy(ctx context.Context, t *tx, c *change) error {
	for i, p := range c.Files.Pruned {
		err := t.exec(ctx, "UPDATE file_points SET body = ? WHERE point_id = ?", c.files.pruned[i], p.ID)
		if err == nil {
			err = t.exec(ctx, "DELETE FROM file_changes WHERE point = ?", p.Row)
		}
		if err != nil {
			return err
		}
	}
	for _, workspace := range c.Tidy.Indexes {
		if err := t.exec(ctx, dropIndex, workspace); err != nil {
			return err
		}
	}
	for _, m := range c.Tidy.Moved {
		if err := t.exec(ctx, moveCopy, m.Pack, m.At, m.Length, m.Digest); err != nil {
			return err
		}
	}
	if !c.Tidy.Sweep {
		return nil
	}
	if err := t.exec(ctx, sweepWorkspaces, c.files.inUse); err != nil {
		return err
	}
	return t.exec(ctx, sweepCopies)
}

// copyOf returns the digest of a file's stored copy as a column value, or nil if there is no copy.
func copyOf(s *protocol.FileState) any {
	if s == nil || s.Digest == "" {
		return nil
	}
	return s.Digest
}
