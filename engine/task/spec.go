package task

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

// Limits of what a task declares.
const (
	MaxDeclared = 64        // types of events, and of signals
	MaxAttempts = 100       // of a rerunnable one
	MaxScript   = 64 << 10  // bytes of a command
	MaxPayload  = 256 << 10 // bytes
	MaxTimeout  = 366 * 24 * 60 * 60 * 1000
	maxLabel    = 200 // bytes
)

// SpecError says what is wrong in a spec, and where.
type SpecError struct {
	Field  string // such as recovery
	Reason string
}

func (e *SpecError) Error() string { return e.Field + " " + e.Reason }

// Check tells what is wrong in a spec, as a *SpecError.
func Check(s *protocol.TaskSpec) error {
	for _, c := range []struct {
		wrong         bool
		field, reason string
	}{
		{unknown(s.Kind, protocol.TaskCommand, protocol.TaskMonitor, protocol.TaskSubagent, protocol.TaskObserver, protocol.TaskOther), "kind", "must be command, monitor, subagent, observer or other"},
		{unknown(s.Recovery, protocol.RecoverRerun, protocol.RecoverOwner, protocol.RecoverExternal), "recovery", "must be rerunnable, ownerBound or external: there is no default"},
		{unknown(s.Cancel, "", protocol.CancelAbort, protocol.CancelCooperative, protocol.CancelElsewhere), "cancel", "must be abortLocal, cooperative or external"},
		{unknown(s.Close, "", protocol.CloseKeep, protocol.CloseCancel, protocol.CloseTransfer), "close", "must be keep, cancel or transfer"},
		{unknown(s.ParentEnd, "", protocol.ParentEndDetach, protocol.ParentEndCancel), "parentEnd", "must be detach or cancel"},
		{s.MaxAttempts < 0 || s.MaxAttempts > MaxAttempts, "maxAttempts", fmt.Sprintf("must be between 1 and %d", MaxAttempts)},
		{s.MaxAttempts > 1 && s.Recovery != protocol.RecoverRerun, "maxAttempts", "is for rerunnable tasks"},
		{s.TimeoutMs < 0 || s.TimeoutMs > MaxTimeout, "timeoutMs", fmt.Sprintf("must be between 0 and %d", int64(MaxTimeout))},
		{len(s.Label) > maxLabel || !utf8.ValidString(s.Label), "label", fmt.Sprintf("must be text of at most %d bytes", maxLabel)},
		{len(s.Payload) > MaxPayload, "payload", fmt.Sprintf("has %d bytes, at most %d", len(s.Payload), MaxPayload)},
		{len(s.Events) > MaxDeclared, "events", fmt.Sprintf("are %d, at most %d", len(s.Events), MaxDeclared)},
		{len(s.Signals) > MaxDeclared, "signals", fmt.Sprintf("are %d, at most %d", len(s.Signals), MaxDeclared)},
		{s.Cancel == protocol.CancelElsewhere && s.Recovery != protocol.RecoverExternal, "cancel", "can be external only for an external task"},
	} {
		if c.wrong {
			return &SpecError{c.field, c.reason}
		}
	}
	switch {
	case s.Subagent != nil && s.Kind != protocol.TaskSubagent:
		return &SpecError{"subagent", "is for tasks of the kind subagent"}
	case s.Kind == protocol.TaskSubagent && s.Recovery != protocol.RecoverExternal:
		return checkSubagent(s)
	}
	return checkCommand(s)
}

func checkSubagent(s *protocol.TaskSpec) error {
	c := s.Subagent
	switch {
	case c == nil:
		return &SpecError{"subagent", "is required for a subagent"}
	case s.Recovery != protocol.RecoverRerun || s.Command != nil || s.Handler != "":
		return &SpecError{"subagent", "is for rerunnable and external tasks, without a command and a handler"}
	case s.Cancel == protocol.CancelCooperative:
		return &SpecError{"cancel", "must be abortLocal for a subagent: its turn is interrupted"}
	case c.SessionID == "":
		return &SpecError{"subagent/sessionId", "must name the child"}
	case c.TurnID == "":
		return &SpecError{"subagent/turnId", "must be the id of the turn"}
	case len(c.Input) == 0:
		return &SpecError{"subagent/input", "must have at least one part"}
	case c.New != nil && len(c.New.MCPServers) > 0:
		return &SpecError{"subagent/new/mcpServers", "must not be set: nothing is stored of what clients bring"}
	case c.New != nil && c.New.SessionID != "" && c.New.SessionID != c.SessionID:
		return &SpecError{"subagent/new/sessionId", "must be the child, or absent"}
	}
	return nil
}

func checkCommand(s *protocol.TaskSpec) error {
	c := s.Command
	if c != nil && c.Detach {
		return checkDetached(s)
	}
	runs := s.Recovery != protocol.RecoverExternal && (s.Kind == protocol.TaskCommand || s.Kind == protocol.TaskMonitor)
	switch {
	case c == nil && runs:
		return &SpecError{"command", "is required for a command or a monitor"}
	case c == nil:
		return nil
	case !runs:
		return &SpecError{"command", "is for commands and monitors that lashd runs"}
	}
	return checkShell(c)
}

// checkDetached checks a command that is left to itself.
func checkDetached(s *protocol.TaskSpec) error {
	switch {
	case s.Kind != protocol.TaskCommand || s.Recovery != protocol.RecoverExternal:
		return &SpecError{"command/detach", "is for external commands"}
	case s.Command.PTY != nil:
		return &SpecError{"command/pty", "is not for a detached command"}
	case s.TimeoutMs != 0:
		return &SpecError{"timeoutMs", "is not for a detached command, which may outlive whoever measures it"}
	}
	return checkShell(s.Command)
}

func checkShell(c *protocol.TaskShell) error {
	switch {
	case strings.TrimSpace(c.Script) == "" || strings.ContainsRune(c.Script, 0) || len(c.Script) > MaxScript:
		return &SpecError{"command/script", fmt.Sprintf("must be a command of at most %d bytes", MaxScript)}
	case c.Workdir != "" && !filepath.IsAbs(c.Workdir) || strings.ContainsRune(c.Workdir, 0):
		return &SpecError{"command/workdir", "must be an absolute path"}
	}
	for name, value := range c.Env {
		if !isVariable(name, value) {
			return &SpecError{"command/env", "must be names of variables with text"}
		}
	}
	return nil
}

// isVariable tells whether a program can have this in its environment.
func isVariable(name, value string) bool {
	return name != "" && !strings.ContainsAny(name, "=\x00") && !strings.ContainsRune(value, 0)
}

// Detached tells whether a task is a command that is left to itself: it runs elsewhere, but lashd begins it, and sees it end.
func Detached(s *protocol.TaskSpec) bool {
	return s.Recovery == protocol.RecoverExternal && s.Command != nil && s.Command.Detach
}

// maxMessage is how many bytes of an outcome's message are kept.
const maxMessage = 16 << 10

// Bounded is an outcome that can be stored: what is too long of it is left out, and that is told.
func Bounded(o *protocol.TaskOutcome) *protocol.TaskOutcome {
	if o == nil {
		return nil
	}
	b := *o
	if len(b.Message) > maxMessage {
		b.Message = strings.ToValidUTF8(b.Message[:maxMessage], "") + "..."
	}
	if len(b.Value) > MaxPayload || len(b.Value) > 0 && !json.Valid(b.Value) {
		b.Value, b.Message = nil, strings.TrimSpace(b.Message+fmt.Sprintf(" [The value of %d bytes is not kept: it is too long, or no JSON.]", len(o.Value)))
	}
	return &b
}

func unknown[T comparable](v T, known ...T) bool { return !slices.Contains(known, v) }

// Fingerprint is the same for two specs that ask for the same.
func Fingerprint(s *protocol.TaskSpec) string {
	b, err := json.Marshal(s)
	if err != nil {
		b = []byte(err.Error()) // a payload that is no JSON; Check of whoever decoded it refuses that
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
