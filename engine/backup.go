package engine

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"lashd/engine/param"
	"lashd/rpc/protocol"
)

// Backup copies the database and its blobs into a new directory, which can serve as a data
// directory. Turns keep running during the copy. Dir must be absolute and must not exist, but its
// parent must. The result lists files that are missing or damaged; the rest is copied.
func (e *Engine) Backup(ctx context.Context, p *protocol.ServerBackupParams) (*protocol.ServerBackupResult, error) {
	if !filepath.IsAbs(p.Dir) {
		return nil, param.Bad("/dir", "must be an absolute path, not %.200q", p.Dir)
	}
	if strings.ContainsRune(p.Dir, 0) {
		return nil, param.Bad("/dir", "must not contain a NUL")
	}
	dir := filepath.Clean(p.Dir)
	report, err := e.store.Backup(ctx, dir)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, param.Bad("/dir", "names %s, which already exists; choose a new directory", dir)
	case errors.Is(err, fs.ErrNotExist):
		return nil, param.Bad("/dir", "cannot be created: %s does not exist", filepath.Dir(dir))
	case errors.Is(err, fs.ErrPermission):
		return nil, param.Bad("/dir", "cannot be created: no permission to write in %s", filepath.Dir(dir))
	case unusablePath(err) != nil:
		return nil, param.Bad("/dir", "cannot be created: %v", unusablePath(err))
	case err != nil:
		return nil, err
	}
	return &protocol.ServerBackupResult{Dir: dir, Missing: report.Missing, Problems: report.Problems}, nil
}

// unusablePath returns the system error that says why the path cannot be used; nil if err has
// another cause, such as a full disk.
func unusablePath(err error) error {
	for _, why := range []error{syscall.ENAMETOOLONG, syscall.ENOTDIR, syscall.ELOOP, syscall.EINVAL, syscall.EROFS} {
		if errors.Is(err, why) {
			return why
		}
	}
	return nil
}
