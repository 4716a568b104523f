package param

import (
	"cmp"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"lashd/rpc/protocol"
)

// Limits of the MCP servers that a client adds to a session.
const (
	// MaxServers is the number of servers of one client.
	MaxServers    = 32
	maxServerArgs = 256
	// maxServerNames is the number of variables, and of headers.
	maxServerNames = 64
	// maxServerText is the size in bytes of each value.
	maxServerText = 8192
)

// CheckServer validates an MCP server of a client: a command with arguments and
// environment, or a URL with headers. Its errors never quote values, because environment
// variables and headers are often secrets.
// pointer locates the server in the request. It opens no connection and starts no program.
func CheckServer(pointer string, s protocol.MCPServer) error {
	switch {
	case (s.Command == "") == (s.URL == ""):
		return Bad(pointer, "must have either a command or a url")
	case s.URL != "" && (len(s.Args) > 0 || len(s.Env) > 0):
		return Bad(pointer, "must not have args or env together with a url")
	case s.Command != "" && len(s.Headers) > 0:
		return Bad(pointer, "must not have headers together with a command")
	case strings.ContainsRune(s.Command, filepath.Separator) && !filepath.IsAbs(s.Command):
		return Bad(pointer+"/command", "must be a name in PATH or an absolute path")
	case s.URL != "" && !isWeb(s.URL):
		return Bad(pointer+"/url", "must be an http or https URL")
	case len(s.Args) > maxServerArgs:
		return Bad(pointer+"/args", "has %d elements, at most %d", len(s.Args), maxServerArgs)
	}
	texts := map[string]string{"/command": s.Command, "/url": s.URL}
	for i, arg := range s.Args {
		texts["/args/"+strconv.Itoa(i)] = arg
	}
	if err := checkTexts(pointer, texts); err != nil {
		return err
	}
	for name, value := range s.Headers {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return Bad(pointer+"/headers/"+Escape(name), "must not have control characters")
		}
	}
	return cmp.Or(checkType(pointer+"/type", s), checkNamed(pointer+"/env", s.Env), checkNamed(pointer+"/headers", s.Headers), CheckWait(pointer+"/timeoutMs", s.TimeoutMs))
}

// checkType rejects a type that contradicts the command or URL of a server.
func checkType(pointer string, s protocol.MCPServer) error {
	switch s.Type {
	case "":
		return nil
	case protocol.MCPStdio:
		if s.Command == "" {
			return Bad(pointer, "must be %q for a server that has a url", protocol.MCPHTTP)
		}
		return nil
	case protocol.MCPHTTP:
		if s.URL == "" {
			return Bad(pointer, "must be %q for a server that has a command", protocol.MCPStdio)
		}
		return nil
	}
	return Bad(pointer, "must be %q or %q", protocol.MCPStdio, protocol.MCPHTTP)
}

// isWeb reports whether an address is an http or https URL with a host.
// Addresses of other schemes, such as file and unix, are rejected.
func isWeb(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

// checkNamed validates environment variables or headers: their number, names and sizes.
func checkNamed(pointer string, values map[string]string) error {
	if len(values) > maxServerNames {
		return Bad(pointer, "has %d members, at most %d", len(values), maxServerNames)
	}
	texts := map[string]string{}
	for name, value := range values {
		if name == "" || len(name) > 128 || strings.ContainsFunc(name, func(c rune) bool { return !IsIDRune(c) && c != '.' }) {
			return Bad(pointer, "must have names of 1 to 128 letters, digits, -, _ and .")
		}
		texts["/"+name] = value
	}
	return checkTexts(pointer, texts)
}

// checkTexts validates the size of values by their pointers, in sorted order so that the
// error is deterministic.
func checkTexts(pointer string, texts map[string]string) error {
	for _, at := range slices.Sorted(maps.Keys(texts)) {
		if len(texts[at]) > maxServerText || strings.Contains(texts[at], "\x00") {
			return Bad(pointer+at, "must have at most %d bytes and no NUL", maxServerText)
		}
	}
	return nil
}
