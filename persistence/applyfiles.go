package persistence

import (
	"context"
	"fmt"

	"lashd/rpc/protocol"
)

// FileCommit is what a commit changes about the files of a workspace. Points need a session, the rest does not.
type FileCommit struct {
	Workspace string // its root; empty: the commit is about no files
	Copies    []FileCopy
	Index     []WorkspaceFile // as they are from now on
	Gone      []string        // paths at which nothing is any more
	Points    []StoredPoint
	Changes   []FileChange
	Forget    []protocol.PointID // points that are removed
	Pruned    []StoredPoint      // points whose changes are let go
}

// FileTidy is what a commit lets go of all workspaces.
type FileTidy struct {
	Indexes []int64    // of workspaces that are to be looked at anew
	Moved   []FileCopy // copies that lie elsewhere now
	Sweep   bool       // copies and workspaces that nothing needs any more
	InUse   []string   // roots of workspaces that stay in any case
}

// FileCopy says where the copy of a file's content lies.
type FileCopy struct {
	Digest protocol.Digest
	Pack   string
	At     int64
	Length int64
}

// WorkspaceFile is what stood at a path when it was looked at last.
type WorkspaceFile struct {
	Path string
	protocol.FileState
	ModifiedNs int64
	ChangedNs  int64
	Inode      uint64
}

// StoredPoint is a file point with what a rewind that is not over has still to do.
type StoredPoint struct {
	Row       int64 // in the order in which they were made; given by the store
	Workspace int64 // likewise
	Root      string
	protocol.FilePoint
	Journal []byte // nil: there is nothing to do
}

// FileChange is a change of a file in a step.
type FileChange struct {
	Point protocol.PointID
	Step  int64
	Path  string
	FileChangeBody
}

// FileChangeBody is what a path was, and what it became. Nil is nothing.
type FileChangeBody struct {
	Before *protocol.FileState `json:"before,omitempty"`
	After  *protocol.FileState `json:"after,omitempty"`
	Unsure bool                `json:"unsure,omitempty"` // it was seen after an interruption, so that somebody else may have made it
}

// fileBodies are the parts of a FileCommit as JSON.
type fileBodies struct {
	points, changes, pruned [][]byte
	inUse                   []byte
}

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

// applyFiles stores what was found out about the files of a workspace; h is nil if that is no session's.
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

func applyPoints(ctx context.Context, t *tx, c *change, h *head, workspace int64) error {
	for i, p := range c.Files.Points {
		if h == nil {
			return fmt.Errorf("file point %s is of no session: %w", p.ID, ErrInvalid)
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

// copyOf is the digest by which a row holds a copy; nil: there is none.
func copyOf(s *protocol.FileState) any {
	if s == nil || s.Digest == "" {
		return nil
	}
	return s.Digest
}
