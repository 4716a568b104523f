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
	MonitorTimeout    = 5 * 60 * 1000  // ms, of one that does not say
	MaxMonitorTimeout = 60 * 60 * 1000 // ms
	MaxMonitors       = 32             // of a session
	maxMonitorCommand = 8 << 10        // bytes
	maxMonitorEnv     = 8 << 10        // bytes
)

var monitorName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })

// CheckMonitor tells what is wrong in a monitor that somebody wants, as a *SpecError.
func CheckMonitor(s *protocol.MonitorSpec) error {
	env := 0
	for name, value := range s.Env {
		env += len(name) + len(value)
		if !isVariable(name, value) {
			return &SpecError{"env", "must be names of variables with text"}
		}
	}
	for _, c := range []struct {
		wrong         bool
		field, reason string
	}{
		{!monitorName().MatchString(s.ID), "monitorId", "must be 1 to 64 letters, digits, dots, dashes and underscores, and begin with a letter or a digit"},
		{strings.TrimSpace(s.Command) == "" || strings.ContainsRune(s.Command, 0) || len(s.Command) > maxMonitorCommand, "command", fmt.Sprintf("must be a command of at most %d bytes", maxMonitorCommand)},
		{strings.ContainsRune(s.Cwd, 0) || len(s.Cwd) > 4096, "cwd", "must be a path"},
		{env > maxMonitorEnv, "env", fmt.Sprintf("has %d bytes, at most %d", env, maxMonitorEnv)},
		{s.TimeoutMs < 0 || s.TimeoutMs > MaxMonitorTimeout, "timeoutMs", fmt.Sprintf("must be between 1 and %d", MaxMonitorTimeout)},
		{unknown(s.ArmOn, "", protocol.ArmManual, protocol.ArmSession), "armOn", "must be manual or sessionStart"},
		{unknown(s.Wake, "", protocol.WakeTurn, protocol.WakeNotify), "wake", "must be queueTurn or notify"},
	} {
		if c.wrong {
			return &SpecError{c.field, c.reason}
		}
	}
	return nil
}

// Monitor is a spec with what it does not say itself. One that is persistent has no time limit, whatever it says.
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

// Watched is the task of a run of a monitor, in a directory.
func Watched(s *protocol.MonitorSpec, dir string) protocol.TaskSpec {
	return protocol.TaskSpec{
		Kind: protocol.TaskMonitor, Label: s.ID, Recovery: protocol.RecoverOwner, TimeoutMs: s.TimeoutMs,
		Command: &protocol.TaskShell{Script: s.Command, Workdir: dir, Env: s.Env},
	}
}
