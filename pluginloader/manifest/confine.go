package manifest

import (
	"cmp"

	"lashd/engine/proc"
	"lashd/pluginloader/child"
)

// Confinement returns the limits and the sandbox of the plugin's programs. Limits that the plugin
// does not set come from otherwise, lashd's configuration. The caller fills in the directories.
func (c *Contributions) Confinement(otherwise proc.Limits) child.Confinement {
	own := Limits{}
	if c.Limits != nil {
		own = *c.Limits
	}
	confinement := child.Confinement{Limits: proc.Limits{
		Memory:    cmp.Or(own.MemoryMiB<<20, otherwise.Memory),
		Processes: cmp.Or(own.Processes, otherwise.Processes),
		OpenFiles: cmp.Or(own.OpenFiles, otherwise.OpenFiles),
		FileSize:  cmp.Or(own.FileMiB<<20, otherwise.FileSize),
	}}
	if s := c.Sandbox; s != nil {
		confinement.Sandbox = &child.Sandbox{
			Workspace: s.Workspace == AccessRead || s.Workspace == AccessWrite, Write: s.Workspace == AccessWrite,
			ReadPaths: s.Read, WritePaths: s.Write, OpenNetwork: s.Network,
		}
	}
	return confinement
}
