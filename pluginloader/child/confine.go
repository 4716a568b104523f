package child

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"lashd/engine/proc"
	"lashd/engine/sandbox"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Confinement describes the limits and the sandbox for all programs of one plugin. It does not
// change after it was built and is safe for concurrent use. A nil Confinement confines nothing.
type Confinement struct {
	// Limits bound memory, processes and other resources. They apply with or without a sandbox.
	Limits  proc.Limits
	Sandbox *Sandbox // nil: no sandbox
	Root    string   // the plugin's directory, which a sandboxed program may read
	Data    string   // directory that a sandboxed program may write; empty: none
	// Hidden lists lashd's own directories. A sandbox that asks for a path in or above one of them
	// is rejected.
	Hidden []string
	// Places says which workspaces and files of them the programs must not change.
	Places sandbox.Places
	// Required makes starts fail on systems without a sandbox. Otherwise programs run there without
	// one.
	Required bool
}

// Sandbox lists the access that a plugin requests in its manifest, in addition to the access that
// every sandboxed program has.
type Sandbox struct {
	Workspace   bool     // read the workspace's files
	Write       bool     // read and write the workspace's files
	ReadPaths   []string // absolute, with symbolic links resolved
	WritePaths  []string // like ReadPaths
	OpenNetwork bool     // without it a program has no network
}

var errNoWorkspace = errors.New("the sandbox requests the workspace, but the program serves all workspaces; list directories instead")

// In returns the confinement of one program that is about to start. workspace is the directory that the program works for,
// or empty for a program that serves all workspaces. In fails if the sandbox requests a workspace
// where there is none, a path does not exist, or a path gives access to a directory in Hidden.
func (c *Confinement) In(workspace string) (*sandbox.Box, error) {
	if c == nil {
		return &sandbox.Box{}, nil
	}
	if c.Sandbox == nil {
		return &sandbox.Box{Confinement: &proc.Confinement{Limits: c.Limits}}, nil
	}
	made, err := c.Sandbox.in(workspace, c.Places)
	if err != nil {
		return nil, err
	}
	made.Confinement.Limits = c.Limits
	box := made.Confinement.Sandbox
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
	return made, nil
}

// ReadOnly returns the confinement of the plugin's programs in a session that only reads: they read what they would otherwise also write,
// except for the plugin's data directory. It is c itself if they write nothing else, or run outside a sandbox.
func (c *Confinement) ReadOnly() *Confinement {
	if c == nil || c.Sandbox == nil || !c.Sandbox.Write && len(c.Sandbox.WritePaths) == 0 {
		return c
	}
	held := *c
	held.Sandbox = &Sandbox{
		Workspace: c.Sandbox.Workspace || c.Sandbox.Write, ReadPaths: slices.Concat(c.Sandbox.ReadPaths, c.Sandbox.WritePaths), OpenNetwork: c.Sandbox.OpenNetwork,
	}
	return &held
}

// For returns the confinement in a session whose commands have a mode.
func (c *Confinement) For(mode protocol.SandboxMode) *Confinement {
	if mode == protocol.SandboxReadOnly {
		return c.ReadOnly()
	}
	return c
}

// in resolves the paths of the sandbox for one workspace.
func (s *Sandbox) in(workspace string, places sandbox.Places) (*sandbox.Box, error) {
	held := proc.Confinement{Sandbox: &proc.Sandbox{Network: s.OpenNetwork, Read: slices.Clone(s.ReadPaths), Write: slices.Clone(s.WritePaths)}}
	if !s.Workspace && !s.Write {
		return places.ForPlugin(held, "", false)
	}
	if workspace == "" {
		return nil, errNoWorkspace
	}
	if err := pathresolve.CheckWorkspace(workspace); err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return places.ForPlugin(held, workspace, s.Write)
}

// hides returns an error if a path is inside a hidden directory, or contains one.
func (c *Confinement) hides(path string) error {
	for _, hidden := range c.Hidden {
		if within(path, hidden) || within(hidden, path) {
			return fmt.Errorf("sandbox: %s would give access to lashd's own data in %s", path, hidden)
		}
	}
	return nil
}

// within reports whether path is dir or inside it. It compares directories by identity, so links
// and other spellings of a path count too. Nothing is within a directory that does not exist.
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

// Temp returns the directory for temporary files of a sandboxed program. It is empty if the program
// is not sandboxed or has no data directory.
func (c *Confinement) Temp() string {
	if c == nil || c.Sandbox == nil || c.Data == "" {
		return ""
	}
	return filepath.Join(c.Data, "tmp")
}
