package manifest

import (
	"cmp"

	"lashd/engine/proc"
	"lashd/pluginloader/child"
)

// Confinement is what the programs of a plugin are held to: what it says, and of limits that it does not name, what lashd is
// configured with. Which directories are meant, whoever starts them says.
func (c *Contributions) Confinement(otherwise proc.Limits) child.Confinement {
	own := Limits{}
	if c.Limits != nil {
		own = *c.Limits
	}
	held := child.Confinement{Limits: proc.Limits{
		Memory:    cmp.Or(own.MemoryMiB<<20, otherwise.Memory),
		Processes: cmp.Or(own.Processes, otherwise.Processes),
		OpenFiles: cmp.Or(own.OpenFiles, otherwise.OpenFiles),
		FileSize:  cmp.Or(own.FileMiB<<20, otherwise.FileSize),
	}}
	if s := c.Sandbox; s != nil {
		held.Sandbox = &child.Sandbox{
			Workspace: s.Workspace == AccessRead || s.Workspace == AccessWrite, Write: s.Workspace == AccessWrite,
			ReadPaths: s.Read, WritePaths: s.Write, OpenNetwork: s.Network,
		}
	}
	return held
}
