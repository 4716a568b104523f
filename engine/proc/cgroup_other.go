//go:build !linux

package proc

// cgroup is nothing here.
type cgroup struct{}

func (*cgroup) begin(string, string) error { return nil }
func (*cgroup) close() error               { return nil }

// family has no cgroup here.
var family struct{ cgroup cgroup }

// Containment says what ends the processes that a command starts.
func Containment() string { return "process groups" }
