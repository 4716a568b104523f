package param

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"lashd/engine/task"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Limits of parameters. They reject mistakes and values that would overflow later.
const (
	// maxWait is the longest duration.
	maxWait = 365 * 24 * time.Hour
	// maxName is the size in bytes of a key or label that a client chooses. It is the limit
	// of keys in the store.
	maxName = 256
	// maxSessionID is the size in bytes of a session id that a client chooses.
	maxSessionID = 128
	// maxTitle is the size of a session title in bytes.
	maxTitle = 1000
	// maxClientTools is the number of tools in an overlay.
	maxClientTools = 512
	// maxParts is the number of parts of an input or a message.
	maxParts = 1000

	// MaxChunk is the number of bytes of an artifact in one request or answer.
	MaxChunk = 1 << 20
)

// CheckWait validates a duration in milliseconds. 0 is valid.
func CheckWait(pointer string, ms int64) error {
	if ms < 0 || ms > maxWait.Milliseconds() {
		return Bad(pointer, "must be 0 to %d milliseconds", maxWait.Milliseconds())
	}
	return nil
}

// CheckName validates a name that a client chooses, so that it fits into logs and file
// names. Empty is valid.
func CheckName(pointer, name string) error {
	if len(name) > maxName || strings.ContainsFunc(name, unicode.IsControl) {
		return Bad(pointer, "must have at most %d bytes and no control characters", maxName)
	}
	return nil
}

// CheckClientID validates the id of a client. Empty is valid.
func CheckClientID(id protocol.ClientID) error { return CheckName("/clientId", string(id)) }

// CheckPlugin validates the name of a plugin, which is required, and an optional workspace.
func CheckPlugin(name, cwd string) error {
	if name == "" {
		return Bad("/name", "is required")
	}
	if err := CheckName("/name", name); err != nil {
		return err
	}
	_, err := CheckWorkspace(cwd)
	return err
}

// CheckWorkspace is CheckCwd for an optional workspace, which may be empty.
func CheckWorkspace(cwd string) (string, error) {
	if cwd == "" {
		return "", nil
	}
	return CheckCwd(cwd)
}

// CheckCwd returns the path under which an existing directory is stored as a workspace: without
// symbolic links, so that no new link can redirect it later. The given path must be absolute.
func CheckCwd(cwd string) (string, error) {
	if !filepath.IsAbs(cwd) {
		return "", Bad("/cwd", "must be an absolute path, not %.200q", cwd)
	}
	at, err := pathresolve.Workspace(cwd)
	if err != nil {
		return "", Bad("/cwd", "%.200q is not a directory", cwd)
	}
	return at, nil
}

// ResolveCwd is CheckCwd for a new session. A path that was stored before, such as that of a trigger, must not lead elsewhere now.
func ResolveCwd(cwd string, stored bool) (string, error) {
	at, err := CheckCwd(cwd)
	if err == nil && stored && at != cwd {
		err = &pathresolve.ElsewhereError{Workspace: cwd, Leads: at}
	}
	return at, err
}

// Where returns where a path leads that a request names a workspace with. Unlike CheckCwd it accepts
// a directory that is gone.
func Where(cwd string) string {
	if filepath.IsAbs(cwd) {
		if at, err := pathresolve.Real(cwd); err == nil {
			return at
		}
	}
	return cwd
}

// CheckTitle validates the length of a session title.
func CheckTitle(title string) error {
	if len(title) > maxTitle {
		return Bad("/title", "has %d bytes, at most %d", len(title), maxTitle)
	}
	return nil
}

// checkSessionID validates the id that a client chooses for a new session. It must be safe
// in paths and commands. Empty is valid.
func checkSessionID(id protocol.SessionID) error {
	if len(id) > maxSessionID || strings.ContainsFunc(string(id), func(c rune) bool { return !IsIDRune(c) }) {
		return Bad("/sessionId", "must have at most %d letters, digits, - and _", maxSessionID)
	}
	return nil
}

// IsIDRune reports whether a character is allowed in ids and names that clients choose.
func IsIDRune(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// PageSize returns the size of a page: n, or def if n is 0. It returns an Error if n is
// negative or greater than limit.
func PageSize(n, def, limit int) (int, error) {
	if n < 0 || n > limit {
		return 0, Bad("/limit", "must be 1 to %d", limit)
	}
	return cmp.Or(n, def), nil
}

// CheckSnapshotName validates the name of a snapshot.
func CheckSnapshotName(name string) error {
	if name == "" {
		return Bad("/name", "must not be empty")
	}
	return CheckName("/name", name)
}

// CheckDigest validates a digest: 64 lower-case hexadecimal digits.
func CheckDigest(d protocol.Digest) error {
	if len(d) != 64 || strings.Trim(string(d), "0123456789abcdef") != "" {
		return Bad("/digest", "must be 64 hexadecimal digits")
	}
	return nil
}

// CheckUpload validates one part of an upload. The engine checks its place among the other
// parts.
func CheckUpload(p *protocol.ArtifactWriteParams) error {
	switch {
	case p.UploadID == "":
		return Bad("/uploadId", "must not be empty")
	case p.Offset < 0:
		return Bad("/offset", "must not be negative")
	case len(p.Bytes) > MaxChunk:
		return Bad("/bytes", "has %d bytes, at most %d", len(p.Bytes), MaxChunk)
	case p.Digest != "" && !p.Done:
		return Bad("/digest", "is only allowed in the last part")
	case p.Digest != "":
		return CheckDigest(p.Digest)
	}
	return CheckName("/uploadId", p.UploadID)
}

// CheckTaskEvent checks that a task's spec declares the event, and the size and schema of its
// payload.
func CheckTaskEvent(spec *protocol.TaskSpec, name string, payload json.RawMessage) error {
	if len(payload) > task.MaxPayload {
		return Bad("/payload", "has %d bytes, at most %d", len(payload), task.MaxPayload)
	}
	for _, declared := range spec.Events {
		if declared.Name == name {
			return CheckPayload("/payload", declared.Schema, payload)
		}
	}
	return Bad("/name", "is not an event that the task declares")
}
