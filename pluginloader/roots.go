package pluginloader

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// Limits of scanning.
	maxPlugins   = 256 // plugins of a set
	looksAtATime = 4   // concurrent scans

	// leaving is how long a directory must be missing before its plugin is removed. Editors and
	// updates may replace a directory in two steps, and what the plugin denies must stay denied
	// between them.
	leaving = time.Second
)

// list returns the directories of all roots in the order in which their plugins register: by root,
// then by name. Hooks run in that order, so it has to be stable. It logs a warning if there are
// more than maxPlugins.
func (s *set) list() (dirs []string) {
	for _, root := range s.roots {
		dirs = append(dirs, s.in(root)...)
	}
	dirs = append(dirs, s.inHand()...)
	if len(dirs) > maxPlugins {
		s.loader.config.Log.Warn("too many plugins; lashd does not load all of them", "roots", s.roots, "plugins", len(dirs), "limit", maxPlugins)
		dirs = s.fewer(dirs)
	}
	return dirs
}

// fewer drops directories beyond the limit: the last ones of which nothing has run. Plugins that
// ran before keep running, so adding many directories cannot switch off a plugin that denies
// something.
func (s *set) fewer(dirs []string) []string {
	for i, dir := range slices.Backward(dirs) {
		if _, ran := s.loader.facts.ranLast(dir); !ran && len(dirs) > maxPlugins {
			dirs = slices.Delete(dirs, i, i+1)
		}
	}
	return dirs[:min(len(dirs), maxPlugins)]
}

// in returns the directories of a root, with those that are missing only briefly. If the root
// cannot be read, the fate of its plugins is unknown, so they stay.
func (s *set) in(root string) []string {
	dirs, err := s.directories(root)
	if err != nil {
		s.loader.config.Log.Warn("cannot list plugins; keeping those that are loaded", "error", err)
		dirs = s.loader.facts.under(root)
	}
	for _, e := range s.entries {
		switch {
		case filepath.Dir(e.dir) != root:
		case slices.Contains(dirs, e.dir):
			e.missing = time.Time{}
		case err != nil:
			dirs, e.missing = append(dirs, e.dir), time.Time{}
		case e.lingers(time.Now()):
			dirs = append(dirs, e.dir)
		}
	}
	slices.Sort(dirs)
	return dirs
}

// lingers reports whether a missing directory may come back. The first call starts the clock.
func (e *entry) lingers(now time.Time) bool {
	if e.missing.IsZero() {
		e.missing = now
	}
	return now.Before(e.missing.Add(leaving))
}

// directories returns the plugin directories of a root. A root that is missing, or leads out of the
// workspace, has none. Names that start with a dot are skipped: editors and tools use them for
// temporary files.
func (s *set) directories(root string) (dirs []string, err error) {
	s.refused = s.contained(root)
	if s.refused != nil {
		return nil, nil
	}
	names, err := namesIn(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, name := range names[:min(len(names), 4*maxPlugins)] {
		dir := filepath.Join(root, name)
		if !strings.HasPrefix(name, ".") && mayBeDir(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, err
}

// maxNames bounds how many entries of a root are read.
const maxNames = 10_000

// namesIn returns the sorted names in a directory, at most maxNames.
func namesIn(dir string) ([]string, error) {
	f, err := os.Open(dir + string(filepath.Separator) + ".") // the dot makes this fail for a pipe, which would block
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(maxNames)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

// mayBeDir reports whether a path is a directory or cannot be checked.
func mayBeDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// arrange returns the entries for directories, reusing existing ones, and the entries whose
// directories are gone. It does not change the set, because the scan of the result may be
// discarded.
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

// findAll scans directories. It scans up to looksAtATime at once. Those without any approval follow
// one after the other, share one allowance, and have a common time limit. took is the time for
// them.
func findAll(ctx context.Context, looks []look, limit time.Duration) (findings []*finding, took time.Duration) {
	findings = make([]*finding, len(looks))
	var looking sync.WaitGroup
	free := make(chan struct{}, looksAtATime)
	var unapproved []int
	for i, g := range looks {
		if g.bounded() {
			unapproved = append(unapproved, i)
			continue
		}
		looking.Go(func() {
			free <- struct{}{}
			findings[i] = g.contained(ctx)
			<-free
		})
	}
	begin := time.Now()
	bounded, end := context.WithTimeoutCause(ctx, limit, errAllowance)
	defer end()
	left := newAllowance()
	for _, i := range unapproved {
		looks[i].left = left
		findings[i] = looks[i].contained(bounded)
	}
	took = time.Since(begin)
	looking.Wait()
	return findings, took
}
