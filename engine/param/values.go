package param

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"lashd/rpc/protocol"
)

// What a client may ask for at most. Larger values are mistakes, or would overflow on the way.
const (
	maxWait        = 365 * 24 * time.Hour
	maxName        = 256 // bytes of a key or label that a client chooses; the store takes no longer keys
	maxSessionID   = 128 // likewise
	maxTitle       = 1000
	maxClientTools = 512
	maxParts       = 1000 // of an input or a message

	MaxChunk = 1 << 20 // bytes of an artifact in one request or answer
)

// CheckWait refuses a time that is negative or does not fit.
func CheckWait(pointer string, ms int64) error {
	if ms < 0 || ms > maxWait.Milliseconds() {
		return Bad(pointer, "must be 0 to %d milliseconds", maxWait.Milliseconds())
	}
	return nil
}

// CheckName refuses a name that a client chose, if nobody could write it into a log or a file name. None is fine.
func CheckName(pointer, name string) error {
	if len(name) > maxName || strings.ContainsFunc(name, unicode.IsControl) {
		return Bad(pointer, "must have at most %d bytes and no control characters", maxName)
	}
	return nil
}

// CheckClientID refuses an id that no client should go by. None is fine.
func CheckClientID(id protocol.ClientID) error { return CheckName("/clientId", string(id)) }

// CheckPlugin refuses a missing or wrong name of a plugin, and a wrong workspace. No workspace is fine.
func CheckPlugin(name, cwd string) error {
	if name == "" {
		return Bad("/name", "is needed")
	}
	if err := CheckName("/name", name); err != nil {
		return err
	}
	return CheckWorkspace(cwd)
}

// CheckWorkspace refuses a workspace that is no directory. None is fine.
func CheckWorkspace(cwd string) error {
	if cwd == "" {
		return nil
	}
	_, err := CheckCwd(cwd)
	return err
}

// CheckCwd refuses what is no absolute path of a directory that exists, and returns the path without superfluous parts.
func CheckCwd(cwd string) (string, error) {
	if !filepath.IsAbs(cwd) {
		return "", Bad("/cwd", "must be an absolute path, not %.200q", cwd)
	}
	info, err := os.Stat(cwd)
	if err != nil || !info.IsDir() {
		return "", Bad("/cwd", "%.200q is not a directory", cwd)
	}
	return filepath.Clean(cwd), nil
}

// CheckTitle refuses a title that is too long.
func CheckTitle(title string) error {
	if len(title) > maxTitle {
		return Bad("/title", "has %d bytes, at most %d", len(title), maxTitle)
	}
	return nil
}

// checkSessionID refuses an id for a new session that could not stand in a path or a command. None is fine.
func checkSessionID(id protocol.SessionID) error {
	if len(id) > maxSessionID || strings.ContainsFunc(string(id), func(c rune) bool { return !IsIDRune(c) }) {
		return Bad("/sessionId", "must have at most %d letters, digits, - and _", maxSessionID)
	}
	return nil
}

// IsIDRune reports whether an id or name that a client chooses may contain a character.
func IsIDRune(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// PageSize returns the size of a page that a client asks for, def if it asks for none. More than limit is refused.
func PageSize(n, def, limit int) (int, error) {
	if n < 0 || n > limit {
		return 0, Bad("/limit", "must be 1 to %d", limit)
	}
	return cmp.Or(n, def), nil
}

// CheckSnapshotName refuses what cannot name a snapshot.
func CheckSnapshotName(name string) error {
	if name == "" {
		return Bad("/name", "must not be empty")
	}
	return CheckName("/name", name)
}

// CheckDigest refuses what is no digest.
func CheckDigest(d protocol.Digest) error {
	if len(d) != 64 || strings.Trim(string(d), "0123456789abcdef") != "" {
		return Bad("/digest", "must be 64 hexadecimal digits")
	}
	return nil
}

// CheckUpload refuses a part of an upload that makes no sense by itself.
func CheckUpload(p *protocol.ArtifactWriteParams) error {
	switch {
	case p.UploadID == "":
		return Bad("/uploadId", "must not be empty")
	case p.Offset < 0:
		return Bad("/offset", "must not be negative")
	case len(p.Bytes) > MaxChunk:
		return Bad("/bytes", "has %d bytes, at most %d", len(p.Bytes), MaxChunk)
	case p.Digest != "" && !p.Done:
		return Bad("/digest", "comes with the last part")
	case p.Digest != "":
		return CheckDigest(p.Digest)
	}
	return CheckName("/uploadId", p.UploadID)
}
