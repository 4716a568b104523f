//go:build !linux

package proc

// cgroup does nothing: only Linux has cgroups.
type cgroup struct{}

func (*cgroup) begin(string, string) error { return nil }
func (*cgroup) close() error               { return nil }

// family has only the unused cgroup here.
var family struct{ cgroup cgroup }

// Containment describes how the processes of a command are ended.
func Containment() string { return "process groups" }
