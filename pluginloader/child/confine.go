package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lashd/engine/proc"
	"lashd/internal/pathresolve"
)

// Confinement is what the programs of a plugin are held to.
type Confinement struct {
	Limits  proc.Limits
	Sandbox *Sandbox // nil: none
	Root    string   // the plugin's directory, which a sandboxed program reads
	Data    string   // where it may keep files; empty: nowhere
	Hidden  []string // directories that no sandboxed program reaches by what it asks for: those of lashd itself
	// Required makes starts fail where the system has no sandbox; otherwise programs then run without.
	Required bool
}

// Sandbox is what a plugin asks for beyond what every sandboxed program has.
type Sandbox struct {
	Workspace   bool     // it reads the files of the workspace
	Write       bool     // and writes them
	ReadPaths   []string // absolute, and without links
	WritePaths  []string // likewise
	OpenNetwork bool
}

var errNoWorkspace = errors.New("the sandbox requests the workspace, but the program serves all workspaces; list directories instead")

// In is what a program is held to that works for one workspace; empty: for all. It fails if a sandbox could not be kept.
func (c *Confinement) In(workspace string) (*proc.Confinement, error) {
	if c == nil {
		return nil, nil
	}
	if c.Sandbox == nil {
		return &proc.Confinement{Limits: c.Limits}, nil
	}
	box, err := c.Sandbox.in(workspace)
	if err != nil {
		return nil, err
	}
	for _, path := range append(append([]string{}, box.Read...), box.Write...) {
		if err := c.hides(path); err != nil {
			return nil, err
		}
	}
	for dir, into := range map[string]*[]string{c.Root: &box.Read, c.Data: &box.Write} {
		if dir == "" {
			continue
		}
		if dir, err = pathresolve.Existing(dir); err != nil {
			return nil, fmt.Errorf("sandbox: %w", err)
		}
		*into = append(*into, dir)
	}
	box.Required = c.Required
	return &proc.Confinement{Limits: c.Limits, Sandbox: box}, nil
}

func (s *Sandbox) in(workspace string) (*proc.Sandbox, error) {
	box := &proc.Sandbox{Network: s.OpenNetwork}
	box.Read = append(box.Read, s.ReadPaths...)
	box.Write = append(box.Write, s.WritePaths...)
	if !s.Workspace && !s.Write {
		return box, nil
	}
	if workspace == "" {
		return nil, errNoWorkspace
	}
	dir, err := pathresolve.Existing(workspace)
	if err != nil {
		return nil, fmt.Errorf("sandbox: workspace: %w", err)
	}
	if s.Write {
		box.Write = append(box.Write, dir)
	} else {
		box.Read = append(box.Read, dir)
	}
	return box, nil
}

// hides fails if a path leads to what is hidden, or is in it.
func (c *Confinement) hides(path string) error {
	for _, hidden := range c.Hidden {
		if within(path, hidden) || within(hidden, path) {
			return fmt.Errorf("sandbox: %s would give access to lashd's own data in %s", path, hidden)
		}
	}
	return nil
}

// within tells whether a path is a directory or in it, by whatever way. What is not there is nowhere.
func within(path, dir string) bool {
	target, err := os.Stat(dir)
	if err != nil {
		return false
	}
	if real, err := pathresolve.Existing(path); err == nil {
		path = real
	}
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && os.SameFile(info, target) {
			return true
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// Temp is where a sandboxed program keeps files for a while; empty: it has no such place, or is not sandboxed.
func (c *Confinement) Temp() string {
	if c == nil || c.Sandbox == nil || c.Data == "" {
		return ""
	}
	return filepath.Join(c.Data, "tmp")
}
