package engine

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"lashd/rpc/protocol"
)

// Backup copies all that is stored into a new directory, which can be used as a data directory. Turns go on meanwhile.
func (e *Engine) Backup(ctx context.Context, p *protocol.ServerBackupParams) (*protocol.ServerBackupResult, error) {
	if !filepath.IsAbs(p.Dir) {
		return nil, bad("/dir", "must be an absolute path, not %.200q", p.Dir)
	}
	dir := filepath.Clean(p.Dir)
	err := e.store.Backup(ctx, dir)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, bad("/dir", "names %s, which is there already; name a directory that is not", dir)
	case errors.Is(err, fs.ErrNotExist):
		return nil, bad("/dir", "names a directory that cannot be made: %s is not there", filepath.Dir(dir))
	case errors.Is(err, fs.ErrPermission):
		return nil, bad("/dir", "names a directory that cannot be made: %s may not be written", filepath.Dir(dir))
	case err != nil:
		return nil, err
	}
	return &protocol.ServerBackupResult{Dir: dir}, nil
}
