package sandbox

import (
	"path/filepath"
	"slices"

	"lashd/engine/proc"
	"lashd/internal/pathresolve"
)

// ForPlugin adds a workspace to the sandbox of a plugin's program, which reads it, and also writes to it if write is set. workspace is empty
// for a program that serves all workspaces. In what the program writes, it cannot change files that start programs, as a command cannot. Where
// commands only read the workspace, the program does, too.
func (p Places) ForPlugin(c proc.Confinement, workspace string, write bool) (*Box, error) {
	s := *c.Sandbox
	c.Sandbox = &s
	box := &Box{Confinement: &c, home: p.Home}
	keep := p.linkedPlugins()
	for _, dir := range s.Write {
		keep = slices.Concat(keep, kept(dir), repositoryAt(filepath.Join(dir, ".git")).keep)
	}
	if workspace != "" {
		hidden := append(p.secrets(), p.named(workspace)...)
		if err := checkPlace(workspace, hidden); err != nil {
			return nil, err
		}
		if write && p.tooWide(workspace, hidden) == "" {
			g := guard(workspace, p.Home)
			s.Write = slices.Concat(s.Write, []string{workspace}, g.write)
			keep = append(keep, g.keep...)
			box.watched = watch(workspace, g)
		} else {
			s.Read = append(slices.Clip(s.Read), workspace)
		}
	}
	s.Keep = within(s.Write, keep)
	return box, nil
}

// ShowPlugin lets a command of a plugin read the plugin's directory, which is among lashd's own files. It does nothing for other directories.
func (b *Box) ShowPlugin(name, root string) {
	if b == nil || b.state == "" || filepath.Base(root) != name {
		return
	}
	real, err := pathresolve.Existing(root)
	if err == nil && filepath.Dir(filepath.Dir(real)) == filepath.Join(b.state, "plugins", "copies") {
		b.Confinement.Sandbox.View.Show = append(b.Confinement.Sandbox.View.Show, real)
	}
}

// Watch returns a function that does the same as Changes for one call of a program that serves many. It looks for what changed since Watch was
// called, also in files that appeared after the program began, because its sandbox does not keep these.
func (b *Box) Watch() func() string {
	if b == nil || b.watched == nil {
		return func() string { return "" }
	}
	g := guard(b.watched.workspace, b.home)
	w := watch(b.watched.workspace, g)
	s := b.Confinement.Sandbox
	for _, path := range within(s.Write, g.keep) {
		if exists(path) && !isIn(path, s.Keep) {
			w.exposed = append(w.exposed, path)
		}
	}
	return w.changes
}
