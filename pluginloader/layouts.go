package pluginloader

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"lashd/engine/rulebook"
	"lashd/pluginloader/content"
	"lashd/pluginloader/layout"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// A layout of other agents, such as the .claude of a workspace, is one more plugin of its set. Its entry has the home directory or the
// workspace as its directory, of which only the files of the layout are read.

// layoutParts returns the name of the set's layout, and the files that belong to it.
func (s *set) layoutParts() (name string, only layout.Selection) {
	if s.scope == protocol.ScopeUser {
		return layout.HomeName, layout.Home()
	}
	return layout.ProjectName, layout.Project()
}

// watched returns the paths of the layout that are watched.
func (s *set) watched() (paths []string) {
	if s.layout == "" {
		return nil
	}
	_, only := s.layoutParts()
	for _, path := range only {
		paths = append(paths, filepath.Join(s.layout, filepath.FromSlash(path)))
	}
	return paths
}

// inLayout reports whether a watched path belongs to the layout.
func (s *set) inLayout(path string) bool { return slices.Contains(s.watched(), path) }

// inHand returns the directory of the layout if it has any files, or had some a moment ago.
func (s *set) inHand() []string {
	e := s.at(s.layout)
	switch {
	case s.layout == "":
		return nil
	case hasAny(s.watched()):
		if e != nil {
			e.missing = time.Time{}
		}
	case e == nil || !e.lingers(time.Now()):
		return nil
	}
	return []string{s.layout}
}

// hasAny reports whether one of the paths exists.
func hasAny(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		info, err := os.Lstat(path)
		return err == nil && info.Mode().Type()&os.ModeSymlink == 0
	})
}

// hasLayout reports whether a workspace has a layout. That of the user does not belong to a workspace, even if it lies inside.
func hasLayout(l *Loader, cwd string) bool {
	s := set{scope: protocol.ScopeWorkspace, layout: cwd}
	return !isHome(l, cwd) && hasAny(s.watched())
}

// isHome reports whether a directory is the one with the user's layout.
func isHome(l *Loader, dir string) bool {
	home, err := os.Stat(l.config.Layout)
	if l.config.Layout == "" || err != nil {
		return false
	}
	info, err := os.Stat(dir)
	return err == nil && os.SameFile(info, home)
}

// UserLayout returns the directory with the layout of the user; empty if there is none, or the user disabled it.
func (l *Loader) UserLayout() string {
	if l.config.Layout == "" || l.facts.disabled(l.config.Layout) {
		return ""
	}
	return l.config.Layout
}

// watchAll watches paths until stop is called.
func watchAll(w *watch.Watcher, paths []string, b watch.Bounds) (stop func()) {
	var stops []func()
	for _, path := range paths {
		stops = append(stops, w.WatchWithin(path, b))
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// LayoutRules implements rulebook.LayoutRules: the permissions in the layouts of the user and of the workspace of cwd, as far as they are
// in use.
func (l *Loader) LayoutRules(cwd string) (all []rulebook.Layout) {
	cwd, err := l.workspace(cwd)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range []*set{l.user, l.workspaces[cwd]} {
		if s == nil || s.layout == "" {
			continue
		}
		for _, e := range s.listed {
			if e.dir == s.layout && e.shown != nil {
				all = append(all, s.rulesOf(e.shown.manifest.Rules)...)
			}
			if e.dir == s.layout {
				all = append(all, s.rulesOf(e.ruled)...)
			}
		}
	}
	return all
}

// rulesOf returns permissions of the set's layout; none without any.
func (s *set) rulesOf(rules []protocol.ApprovalRule) []rulebook.Layout {
	if len(rules) == 0 {
		return nil
	}
	return []rulebook.Layout{{Dir: s.layout, Name: s.rulesFile(), Level: s.ruleLevel(), Rules: rules}}
}

// permissions returns the rules of a layout of the user that cannot be loaded: a mistake in a hook must not switch them off. Those of a
// workspace wait for its approval, like everything in it.
func (g look) permissions(status protocol.PluginStatus) []protocol.ApprovalRule {
	if g.only == nil || g.set.scope != protocol.ScopeUser || status != protocol.PluginFailed {
		return nil
	}
	root, err := os.OpenRoot(g.dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	return manifest.Permissions(root)
}

// rulesFile names the files with the permissions of the set's layout.
func (s *set) rulesFile() string {
	if s.scope == protocol.ScopeUser {
		return "~/.claude/settings.json"
	}
	return ".claude/settings.json"
}

// ruleLevel returns the level of the permissions of the set's layout.
func (s *set) ruleLevel() protocol.RuleLevel {
	if s.scope == protocol.ScopeUser {
		return protocol.LevelUser
	}
	return protocol.LevelWorkspace
}

// source returns what is copied of the entry's directory.
func (e *entry) source() content.Source {
	from := content.Source{Workspace: e.set.cwd, Dir: e.dir, Only: e.only}
	if e.only != nil {
		from.Name, _ = e.set.layoutParts()
	}
	return from
}

// load reads the plugin in the entry's directory.
func (e *entry) load(root *os.Root) (*manifest.Plugin, error) {
	if e.only != nil {
		name, _ := e.set.layoutParts()
		return manifest.LoadLayout(root, name)
	}
	return manifest.Load(root)
}
