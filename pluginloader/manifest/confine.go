package manifest

import (
	"cmp"
	"strings"

	"lashd/engine/proc"
	"lashd/pluginloader/child"
)

// String names what the settings allow beyond the sandbox of the session, for people who decide about it; "" if nothing.
func (s ServerSandbox) String() string {
	var all []string
	if s.Sandbox != "" {
		all = append(all, "sandbox "+string(s.Sandbox))
	}
	if s.Network {
		all = append(all, "network")
	}
	if len(s.Hosts) > 0 {
		all = append(all, "hosts "+strings.Join(s.Hosts, " "))
	}
	if len(s.Write) > 0 {
		all = append(all, "write "+strings.Join(s.Write, " "))
	}
	if len(all) == 0 {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}

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
