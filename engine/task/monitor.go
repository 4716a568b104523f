package task

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"lashd/rpc/protocol"
)

// Limits of monitors.
const (
	// MonitorTimeout is the default time limit of a run, in milliseconds.
	MonitorTimeout = 5 * 60 * 1000
	// MaxMonitorTimeout is the longest time limit of a run, in milliseconds.
	MaxMonitorTimeout = 60 * 60 * 1000
	// MaxMonitors is the number of monitors of one session.
	MaxMonitors = 32
	// maxMonitorCommand is the size of a command in bytes.
	maxMonitorCommand = 8 << 10
	// maxMonitorEnv is the size in bytes of all environment variables together.
	maxMonitorEnv = 8 << 10
)

// monitorName matches the ids of monitors. They are part of task ids and wake sources, so
// they have no blanks or slashes.
var monitorName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })

// CheckMonitor validates the spec of a monitor before its defaults are filled in. The error
// is a *SpecError with the wire name of the field.
func CheckMonitor(s *protocol.MonitorSpec) error {
	env := 0
	for name, value := range s.Env {
		env += len(name) + len(value)
		if !isVariable(name, value) {
			return &SpecError{"env", "must map variable names to text without NUL"}
		}
	}
	for _, c := range []struct {
		wrong         bool
		field, reason string
	}{
		{!monitorName().MatchString(s.ID), "monitorId", "must be 1 to 64 letters, digits, dots, dashes and underscores, and start with a letter or digit"},
		{strings.TrimSpace(s.Command) == "" || strings.ContainsRune(s.Command, 0) || len(s.Command) > maxMonitorCommand, "command", fmt.Sprintf("must be a command of at most %d bytes", maxMonitorCommand)},
		{strings.ContainsRune(s.Cwd, 0) || len(s.Cwd) > 4096, "cwd", "must be a path"},
		{env > maxMonitorEnv, "env", fmt.Sprintf("has %d bytes; the limit is %d", env, maxMonitorEnv)},
		{s.TimeoutMs < 0 || s.TimeoutMs > MaxMonitorTimeout, "timeoutMs", fmt.Sprintf("must be between 1 and %d", MaxMonitorTimeout)},
		{!s.Sandbox.Known(), "sandbox", "must be readOnly, workspace or fullAccess"},
		{checkNetwork(s.Network) != nil, "network", fmt.Sprint(checkNetwork(s.Network))},
		{unknown(s.ArmOn, "", protocol.ArmManual, protocol.ArmSession), "armOn", "must be manual or sessionStart"},
		{unknown(s.Wake, "", protocol.WakeTurn, protocol.WakeNotify), "wake", "must be queueTurn or notify"},
	} {
		if c.wrong {
			return &SpecError{c.field, c.reason}
		}
	}
	return nil
}

// Monitor returns a valid spec with its defaults filled in. A persistent monitor has no
// time limit.
func Monitor(s protocol.MonitorSpec) protocol.MonitorSpec {
	s.ArmOn, s.Wake = cmp.Or(s.ArmOn, protocol.ArmManual), cmp.Or(s.Wake, protocol.WakeTurn)
	s.TimeoutMs = cmp.Or(s.TimeoutMs, MonitorTimeout)
	if s.Persistent {
		s.TimeoutMs = 0
	}
	if len(s.Env) == 0 {
		s.Env = nil
	}
	return s
}

// Watched returns the spec of the task that runs a monitor in the directory dir.
func Watched(s *protocol.MonitorSpec, dir string) protocol.TaskSpec {
	return protocol.TaskSpec{
		Kind: protocol.TaskMonitor, Label: s.ID, Recovery: protocol.RecoverOwner, TimeoutMs: s.TimeoutMs,
		Command: &protocol.TaskShell{Script: s.Command, Workdir: dir, Env: s.Env, Sandbox: s.Sandbox, Network: s.Network},
	}
}
