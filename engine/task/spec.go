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

	"lashd/engine/hostrule"
	"lashd/rpc/protocol"
)

// Limits of the specs of tasks.
const (
	// MaxDeclared is the number of event types, and of signal types.
	MaxDeclared = 64
	// MaxAttempts is the number of attempts at a rerunnable task.
	MaxAttempts = 100
	// MaxScript is the size of a command in bytes.
	MaxScript = 64 << 10
	// MaxPayload is the size in bytes of a payload, and of the value of an outcome.
	MaxPayload = 256 << 10
	// MaxTimeout is the longest time limit, in milliseconds.
	MaxTimeout = 366 * 24 * 60 * 60 * 1000
	// maxLabel is the size of a label in bytes.
	maxLabel = 200
)

// SpecError is the error of an invalid spec. Its text starts with the field.
type SpecError struct {
	// Field is the path of the field with slashes, such as recovery or command/env.
	Field  string
	Reason string
}

func (e *SpecError) Error() string { return e.Field + " " + e.Reason }

// Check validates the spec of a task, independent of other tasks and sessions. The error is
// a *SpecError. Each field is checked by itself first, then the combination of kind,
// recovery, command and subagent.
func Check(s *protocol.TaskSpec) error {
	for _, c := range []struct {
		wrong         bool
		field, reason string
	}{
		{unknown(s.Kind, protocol.TaskCommand, protocol.TaskMonitor, protocol.TaskSubagent, protocol.TaskObserver, protocol.TaskOther), "kind", "must be command, monitor, subagent, observer or other"},
		{unknown(s.Recovery, protocol.RecoverRerun, protocol.RecoverOwner, protocol.RecoverExternal), "recovery", "is required: rerunnable, ownerBound or external"},
		{unknown(s.Cancel, "", protocol.CancelAbort, protocol.CancelCooperative, protocol.CancelElsewhere), "cancel", "must be abortLocal, cooperative or external"},
		{unknown(s.Close, "", protocol.CloseKeep, protocol.CloseCancel, protocol.CloseTransfer), "close", "must be keep, cancel or transfer"},
		{unknown(s.ParentEnd, "", protocol.ParentEndDetach, protocol.ParentEndCancel), "parentEnd", "must be detach or cancel"},
		{s.MaxAttempts < 0 || s.MaxAttempts > MaxAttempts, "maxAttempts", fmt.Sprintf("must be between 1 and %d", MaxAttempts)},
		{s.MaxAttempts > 1 && s.Recovery != protocol.RecoverRerun, "maxAttempts", "is only allowed for rerunnable tasks"},
		{s.TimeoutMs < 0 || s.TimeoutMs > MaxTimeout, "timeoutMs", fmt.Sprintf("must be between 0 and %d", int64(MaxTimeout))},
		{len(s.Label) > maxLabel || !utf8.ValidString(s.Label), "label", fmt.Sprintf("must be text of at most %d bytes", maxLabel)},
		{len(s.Payload) > MaxPayload, "payload", fmt.Sprintf("has %d bytes; the limit is %d", len(s.Payload), MaxPayload)},
		{len(s.Events) > MaxDeclared, "events", fmt.Sprintf("has %d entries; the limit is %d", len(s.Events), MaxDeclared)},
		{len(s.Signals) > MaxDeclared, "signals", fmt.Sprintf("has %d entries; the limit is %d", len(s.Signals), MaxDeclared)},
		{s.Cancel == protocol.CancelElsewhere && s.Recovery != protocol.RecoverExternal, "cancel", "must not be external unless the task is external"},
	} {
		if c.wrong {
			return &SpecError{c.field, c.reason}
		}
	}
	switch {
	case s.Subagent != nil && s.Kind != protocol.TaskSubagent:
		return &SpecError{"subagent", "is only allowed for kind subagent"}
	case s.Kind == protocol.TaskSubagent && s.Recovery != protocol.RecoverExternal:
		return checkSubagent(s)
	}
	return checkCommand(s)
}

// checkSubagent validates a subagent that lashd runs. It must be rerunnable, because after
// a restart the task continues to wait for the same turn of the child.
func checkSubagent(s *protocol.TaskSpec) error {
	c := s.Subagent
	switch {
	case c == nil:
		return &SpecError{"subagent", "is required for a subagent"}
	case s.Recovery != protocol.RecoverRerun || s.Command != nil || s.Handler != "":
		return &SpecError{"subagent", "is only allowed for rerunnable and external tasks without a command or handler"}
	case s.Cancel == protocol.CancelCooperative:
		return &SpecError{"cancel", "must be abortLocal for a subagent, whose turn is interrupted"}
	case c.SessionID == "":
		return &SpecError{"subagent/sessionId", "is required: the id of the child session"}
	case c.TurnID == "":
		return &SpecError{"subagent/turnId", "is required: the id of the turn"}
	case len(c.Input) == 0:
		return &SpecError{"subagent/input", "must have at least one part"}
	case c.New != nil && len(c.New.MCPServers) > 0:
		return &SpecError{"subagent/new/mcpServers", "is not allowed, because servers of clients are not stored"}
	case c.New != nil && c.New.SessionID != "" && c.New.SessionID != c.SessionID:
		return &SpecError{"subagent/new/sessionId", "must be the child session or absent"}
	}
	return nil
}

// checkCommand validates the command of a task. Commands and monitors that lashd runs need
// one.
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
		return &SpecError{"command", "is only allowed for commands and monitors that lashd runs"}
	}
	return checkShell(c)
}

// checkDetached validates a command that runs independently of the daemon. It is external:
// lashd only starts it and observes its end. It has no terminal and no time limit, because
// no process of lashd is there to serve them.
func checkDetached(s *protocol.TaskSpec) error {
	switch {
	case s.Kind != protocol.TaskCommand || s.Recovery != protocol.RecoverExternal:
		return &SpecError{"command/detach", "is only allowed for external commands"}
	case s.Command.PTY != nil:
		return &SpecError{"command/pty", "is not allowed for a detached command"}
	case s.TimeoutMs != 0:
		return &SpecError{"timeoutMs", "is not allowed for a detached command, which may outlive the daemon that measures it"}
	}
	return checkShell(s.Command)
}

// checkNetwork validates the patterns of hosts that a command reaches; nil has none.
func checkNetwork(n *protocol.NetworkAccess) error {
	if n == nil {
		return nil
	}
	all := slices.Concat(n.Granted, n.Denied)
	for _, r := range n.Rules {
		all = slices.Concat(all, r.Allow, r.Ask)
	}
	_, err := hostrule.ParseAll(all)
	return err
}

// checkShell validates a shell command.
func checkShell(c *protocol.TaskShell) error {
	switch {
	case strings.TrimSpace(c.Script) == "" || strings.ContainsRune(c.Script, 0) || len(c.Script) > MaxScript:
		return &SpecError{"command/script", fmt.Sprintf("must be a command of at most %d bytes", MaxScript)}
	case !c.Sandbox.Known():
		return &SpecError{"command/sandbox", "must be readOnly, workspace or fullAccess"}
	case checkNetwork(c.Network) != nil:
		return &SpecError{"command/network", checkNetwork(c.Network).Error()}
	case c.Detach && c.Sandbox.Confines():
		return &SpecError{"command/detach", "is not allowed in a sandbox, which ends with lashd"}
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

// isVariable reports whether a process can have this variable in its environment.
func isVariable(name, value string) bool {
	return name != "" && !strings.ContainsAny(name, "=\x00") && !strings.ContainsRune(value, 0)
}

// Detached reports whether a task is a detached command. lashd starts it and observes its
// end, but does not run it.
func Detached(s *protocol.TaskSpec) bool {
	return s.Recovery == protocol.RecoverExternal && s.Command != nil && s.Command.Detach
}

// maxMessage is the size in bytes up to which the message of an outcome is stored.
const maxMessage = 16 << 10

// Bounded returns an outcome within the limits of the store. It truncates a long message.
// It drops a value that is too long or not JSON, and says so in the message. A nil outcome
// stays nil.
func Bounded(o *protocol.TaskOutcome) *protocol.TaskOutcome {
	if o == nil {
		return nil
	}
	b := *o
	if len(b.Message) > maxMessage {
		b.Message = strings.ToValidUTF8(b.Message[:maxMessage], "") + "..."
	}
	if len(b.Value) > MaxPayload || len(b.Value) > 0 && !json.Valid(b.Value) {
		b.Value, b.Message = nil, strings.TrimSpace(b.Message+fmt.Sprintf(" [The value of %d bytes was dropped: it is too long or not JSON.]", len(o.Value)))
	}
	return &b
}

func unknown[T comparable](v T, known ...T) bool { return !slices.Contains(known, v) }

// Fingerprint returns a hash that is equal for equal specs.
func Fingerprint(s *protocol.TaskSpec) string {
	b, err := json.Marshal(s)
	if err != nil {
		b = []byte(err.Error()) // the payload is not JSON, which decoding has rejected
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
