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
	maxPlugins   = 256 // directories of a set
	looksAtATime = 4

	// leaving is how long a directory has to be missing until its plugin is gone: who puts another one in its place may take
	// it away first, and what the plugin denies has to be denied meanwhile.
	leaving = time.Second
)

// list is the directories of all roots, in the order in which their plugins register.
func (s *set) list() (dirs []string) {
	for _, root := range s.roots {
		dirs = append(dirs, s.in(root)...)
	}
	if len(dirs) > maxPlugins {
		s.loader.config.Log.Warn("there are more plugins than can be loaded", "roots", s.roots, "plugins", len(dirs), "limit", maxPlugins)
		dirs = s.fewer(dirs)
	}
	return dirs
}

// fewer leaves out as many directories as are too many: of those of which nothing has run, the last ones.
func (s *set) fewer(dirs []string) []string {
	for i, dir := range slices.Backward(dirs) {
		if _, ran := s.loader.facts.ranLast(dir); !ran && len(dirs) > maxPlugins {
			dirs = slices.Delete(dirs, i, i+1)
		}
	}
	return dirs[:min(len(dirs), maxPlugins)]
}

// in is the directories of a root, with those that have not been missing for long. If it cannot be read, nobody knows what has
// become of its plugins: they stay.
func (s *set) in(root string) []string {
	dirs, err := s.directories(root)
	if err != nil {
		s.loader.config.Log.Warn("plugins cannot be listed", "error", err)
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

// lingers tells whether a directory that is missing may come back.
func (e *entry) lingers(now time.Time) bool {
	if e.missing.IsZero() {
		e.missing = now
	}
	return now.Before(e.missing.Add(leaving))
}

// directories are those of a root. One that is not there, or leads out of the workspace, has none.
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

// maxNames is how many entries of a root are read.
const maxNames = 10_000

// namesIn are the names in a directory, sorted; of too many, some.
func namesIn(dir string) ([]string, error) {
	f, err := os.Open(dir + string(filepath.Separator) + ".") // fails for a pipe, which would be waited for
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

// mayBeDir tells whether something is a directory, or cannot be looked at.
func mayBeDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir() || err != nil && !errors.Is(err, fs.ErrNotExist)
}

// arrange makes entries of directories, and tells which of before are gone.
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

// findAll looks at directories, some at a time, and at those of which nothing was approved one after the other, within bounds.
// It tells how long these took.
func findAll(ctx context.Context, looks []look) (findings []*finding, took time.Duration) {
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
	bounded, end := context.WithTimeoutCause(ctx, maxUnapprovedTime, errAllowance)
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
