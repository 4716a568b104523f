package pluginloader

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// set is the plugins of the user, or of a workspace, and the host of the sessions that have them.
type set struct {
	loader *Loader
	scope  protocol.PluginScope
	cwd    string   // of a workspace
	roots  []string // the directories whose directories are plugins
	stop   func()   // of watching them; nil: Run does that

	entries []*entry // in the order in which they register; the loader's goroutine's
	listed  []*entry // likewise, as others see them: under the loader's mu
	units   []*unit  // that the host is made of
	host    *plugin.Host
	number  int64 // of the generation
}

// has tells whether one of the roots is the set's.
func (s *set) has(roots []string) bool {
	return slices.ContainsFunc(roots, func(r string) bool { return slices.Contains(s.roots, r) })
}

const (
	maxPlugins   = 256 // directories of a root
	looksAtATime = 4
)

// list is the directories of all roots, in the order in which their plugins register. A root that cannot be read is an error:
// nobody knows what has become of its plugins.
func (s *set) list() (dirs []string, err error) {
	for _, root := range s.roots {
		names, err := os.ReadDir(root)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, n := range names[:min(len(names), 4*maxPlugins)] {
			dir := filepath.Join(root, n.Name())
			if !strings.HasPrefix(n.Name(), ".") && isDir(dir) && len(dirs) < maxPlugins {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// arrange makes the entries those of directories, and tells which of before are gone.
func (s *set) arrange(dirs []string) (now, gone []*entry) {
	old := map[string]*entry{}
	for _, e := range s.entries {
		old[e.dir] = e
	}
	for _, dir := range dirs {
		e := old[dir]
		if e == nil {
			e = s.entry(dir)
		}
		delete(old, dir)
		now = append(now, e)
	}
	for _, e := range s.entries {
		if old[e.dir] != nil {
			gone = append(gone, e)
		}
	}
	return now, gone
}

// dirs are the directories that were there last.
func (s *set) dirs() (all []string) {
	for _, e := range s.entries {
		all = append(all, e.dir)
	}
	return all
}

// look looks at all directories of the set, and tells whether anything has changed.
func (s *set) look(ctx context.Context) (changed bool) {
	dirs, err := s.list()
	if err != nil {
		s.loader.config.Log.Warn("plugins cannot be listed", "error", err)
		dirs = s.dirs()
	}
	entries, gone := s.arrange(dirs)
	changed = len(gone) > 0
	findings := make([]*finding, len(entries))
	var looking sync.WaitGroup
	free := make(chan struct{}, looksAtATime)
	for i, e := range entries {
		looking.Go(func() {
			free <- struct{}{}
			findings[i] = e.examine(ctx)
			<-free
		})
	}
	looking.Wait()
	for i, f := range findings {
		changed = changed || f != nil
		entries[i].note(f)
	}
	s.entries = entries
	for _, e := range gone {
		s.loader.forget(ctx, e)
	}
	return changed
}

// note takes down what a look came to.
func (e *entry) note(f *finding) {
	e.next = e.unit
	if f == nil {
		return
	}
	info := protocol.PluginInfo{Name: f.name, Scope: e.set.scope, Dir: e.dir, Status: f.status, Found: f.found, Problems: f.problems}
	if info.Name == "" {
		info.Name = e.info.Name
	}
	switch {
	case f.unit != nil || f.fatal:
		e.next = f.unit
	case e.unit == nil:
	case f.status == protocol.PluginUntrusted:
		info.Status = protocol.PluginModified
	default:
		info.Status = protocol.PluginDegraded
	}
	e.sign, e.info = f.sign, info
	for _, p := range info.Problems {
		if !p.Warning {
			e.log.Note(slog.LevelError, "lashd: "+p.String())
		}
	}
}
