package pluginloader

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"lashd/internal/pathresolve"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// rootOf returns the directory with a workspace's plugins.
func rootOf(cwd string) string { return filepath.Join(cwd, ".agents", "plugins") }

// ErrCwd means that a request names a workspace by a relative path.
var ErrCwd = errors.New("cwd must be an absolute path")

// workspaceOf resolves links in a directory, so that each workspace has one set however its path is
// written. An empty path stays empty and means no workspace.
func workspaceOf(cwd string) (string, error) {
	if cwd == "" {
		return "", nil
	}
	if !filepath.IsAbs(cwd) {
		return "", ErrCwd
	}
	if real, err := pathresolve.Existing(cwd); err == nil {
		return real, nil
	}
	return filepath.Clean(cwd), nil
}

// upward returns a directory and its parents up to the root of its git repository. Outside of a
// repository it returns only the directory.
func upward(cwd string) []string {
	dirs := []string{cwd}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dirs
		}
		if dir == filepath.Dir(dir) {
			return dirs[:1]
		}
		dirs = append(dirs, filepath.Dir(dir))
	}
}

// workspace returns the directory whose plugins sessions in cwd use: the nearest one with plugins,
// from cwd up to the root of its git repository, else the nearest one with a layout, or cwd itself. So sessions in a subdirectory have
// the repository's plugins, and a layout there does not switch them off.
func (l *Loader) workspace(cwd string) (string, error) {
	cwd, err := workspaceOf(cwd)
	if err != nil || cwd == "" {
		return cwd, err
	}
	dirs := upward(cwd)
	for _, dir := range dirs {
		if l.holdsPlugins(dir) {
			return dir, nil
		}
	}
	for _, dir := range dirs {
		if hasLayout(l, dir) {
			return dir, nil
		}
	}
	return cwd, nil
}

// holdsPlugins reports whether a workspace may have plugins, or has some that are still in use. The
// second case covers a directory that has just been deleted.
func (l *Loader) holdsPlugins(dir string) bool {
	l.mu.Lock()
	w := l.workspaces[dir]
	used := w != nil && slices.ContainsFunc(w.listed, func(e *entry) bool { return e.dir != w.layout })
	l.mu.Unlock()
	return used || l.hasPlugins(dir)
}

// hasPlugins reports whether a workspace may have plugins of its own. A directory of the user's
// plugins does not belong to a workspace, even if it lies inside.
func (l *Loader) hasPlugins(cwd string) bool {
	info, err := os.Stat(rootOf(cwd))
	if err != nil || !info.IsDir() {
		return false
	}
	for _, root := range l.config.User {
		if other, err := os.Stat(root); err == nil && os.SameFile(info, other) {
			return false
		}
	}
	return true
}

// setOf returns the set for sessions in cwd after its first scan. A directory without plugins has
// the user's set. Any goroutine may call it.
func (l *Loader) setOf(ctx context.Context, cwd string) (*set, error) {
	cwd, err := l.workspace(cwd)
	if err == nil {
		err = l.started(ctx)
	}
	if err != nil || cwd == "" {
		return l.user, err
	}
	l.mu.Lock()
	w := l.workspaces[cwd]
	l.mu.Unlock()
	if w == nil && !l.hasPlugins(cwd) && !hasLayout(l, cwd) {
		return l.user, nil
	}
	if w == nil {
		if w, err = do(ctx, l, func(ctx context.Context) (*set, error) { return l.enter(ctx, cwd), nil }); err != nil {
			return nil, err
		}
	}
	return w, l.wait(ctx, w.ready)
}

// enter loads the approved plugins of a workspace and starts to watch it. It returns at once; ready
// of the set is closed after the first scan. It runs on the loader's goroutine.
func (l *Loader) enter(ctx context.Context, cwd string) *set {
	l.mu.Lock()
	w := l.workspaces[cwd]
	l.mu.Unlock()
	if w != nil {
		return w
	}
	w = &set{loader: l, scope: protocol.ScopeWorkspace, cwd: cwd, roots: []string{rootOf(cwd)}, ready: make(chan struct{})}
	if !isHome(l, cwd) {
		w.layout = cwd
	}
	w.recall(ctx)
	w.swap(ctx)
	w.stop = watchAll(l.watcher, append(w.watched(), rootOf(cwd)), watch.Bounds{Within: cwd, Entries: maxUnapprovedEntries, Dirs: maxUnapprovedDirs})
	l.look(ctx, w, func() { close(w.ready) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.workspaces[cwd] = w
	return w
}

// end releases everything in a set. Run calls it at its end.
func (s *set) end() {
	if s.looking != nil {
		s.looking()
	}
	if s.stop != nil {
		s.stop()
	}
	for _, e := range s.entries {
		e.drop()
	}
	if s.host != nil {
		s.loader.retire(s.host, s.units)
	}
}

// notifyAbout notifies clients about the entries that use a unit, for example after one of its programs
// has failed.
func (l *Loader) notifyAbout(u *unit) {
	for _, s := range l.sets() {
		for _, e := range s.entries {
			if e.unit == u {
				l.notify(e)
			}
		}
	}
}

// notifyAll notifies clients about all entries whose info has changed.
func (l *Loader) notifyAll() {
	for _, s := range l.sets() {
		for _, e := range s.entries {
			l.notify(e)
		}
	}
}

// notify notifies clients and the log about an entry, if its info has changed since the last time.
func (l *Loader) notify(e *entry) {
	info := e.public()
	if info.Status == "" || same(info, e.lastAnnounced) { // not scanned yet, or nothing new
		return
	}
	e.lastAnnounced = info
	l.config.News(protocol.ServerEvent{Type: protocol.ServerPluginChanged, Plugin: &info})
	log := l.config.Log.With("plugin", info.Name, "dir", info.Dir, "status", info.Status)
	if len(info.Problems) == 0 {
		log.Info("plugin", "generation", info.Generation)
	}
	for _, p := range info.Problems {
		log.Warn("plugin", "file", p.File, "line", p.Line, "column", p.Column, "problem", p.Message)
	}
}
