package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lashd/engine/authority"
	"lashd/engine/proc"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Server describes an MCP server that runs in a sandbox. All paths are absolute.
type Server struct {
	ID        string // names its directory for temporary files, together with the workspace
	Mode      protocol.SandboxMode
	Workspace string   // empty: it serves no session yet, and runs as in the mode readOnly
	Read      []string // directories that it can read even where lashd's own data hides them
	Data      string   // its own directory, which it may write in each mode; empty: none
	Write     []string // more files and directories that it may write, by the settings of a person; they must exist
	Network   bool     // it uses the network of the machine
	Hosts     []string // hosts that it reaches without a network, by a proxy
	Denied    []string // hosts that rules deny, whatever else allows them
}

// ForServer returns the sandbox of an MCP server: what a command of the session reaches, its own directories, and what its settings
// add. It fails if the directories cannot be made, or if a setting would open a hidden place.
func (p Places) ForServer(s Server) (*Box, error) {
	box, err := p.forSession(s)
	if err != nil {
		return nil, err
	}
	in := box.Confinement.Sandbox
	for _, path := range s.Write {
		real, err := pathresolve.Existing(path)
		if err == nil {
			err = checkWrite(real, in.View.Hide)
		}
		if err != nil {
			return nil, fmt.Errorf("the setting write: %w", err)
		}
		in.Write = append(in.Write, real)
	}
	in.Network = s.Network
	in.View.Show = append(in.View.Show, s.Read...)
	if s.Data != "" {
		in.Write = append(in.Write, s.Data)
	}
	if err := box.reachHosts(s); err != nil {
		return nil, fmt.Errorf("the setting hosts: %w", err)
	}
	in.View.Temp, err = prepare(filepath.Join(p.Scratch, "mcp-"+string(protocol.DigestOf([]byte(s.ID + "\n" + s.Workspace)))[:16]))
	return box, err
}

// reachHosts gives a server the hosts of its settings. In the network of the machine it needs no proxy.
func (b *Box) reachHosts(s Server) error {
	if s.Network || len(s.Hosts) == 0 {
		return nil
	}
	return b.reach(&protocol.NetworkAccess{Granted: s.Hosts, Denied: s.Denied}, "the settings of the server do not name it")
}

// forSession returns the sandbox of a command of the server's session. Without a session there is no workspace.
func (p Places) forSession(s Server) (*Box, error) {
	if s.Workspace != "" {
		return p.For(s.Mode, s.Workspace)
	}
	if !filepath.IsAbs(p.Scratch) {
		return nil, errNoScratch
	}
	view := &proc.View{Hide: append(p.secrets(), p.named(p.Scratch)...)}
	held := &proc.Confinement{Limits: limits, Sandbox: &proc.Sandbox{View: view}}
	return &Box{Confinement: held, Env: append(variables(s.Mode), p.Env...), mode: s.Mode, resolver: p.Resolver}, nil
}

// checkWrite returns an error for a writable path in or above a hidden one, which would be open then.
func checkWrite(path string, hidden []string) error {
	if path == "/" {
		return errors.New("it names the root directory; name the directories that the server needs")
	}
	for _, h := range hidden {
		if _, err := os.Lstat(h); err == nil && (authority.Inside(h, path) || authority.Inside(path, h)) {
			return fmt.Errorf("%s is in or above %s, which programs in a sandbox must not see; name another directory, or set sandbox = \"fullAccess\"", path, h)
		}
	}
	return nil
}

// Needs returns the setting that a program in a sandbox probably lacks, by its last output, and what the sandbox refuses without it.
// network is set if the program has a network, hosts are those that it has and those that were refused to it.
func Needs(program, output string, network bool, hosts []string) (setting, refused string) {
	contains := func(sign string) bool { return strings.Contains(strings.ToLower(output), sign) }
	const files = "writes only to the workspace and to /tmp, and reads no secrets"
	switch {
	case network:
		return fullAccess, files
	case len(hosts) > 0:
		return "hosts = " + list(hosts), "reaches only the hosts of its settings"
	case slices.ContainsFunc(networkSigns, contains) && len(unresolved(output)) > 0:
		return "hosts = " + list(unresolved(output)), "has no network"
	case slices.ContainsFunc(networkSigns, contains):
		return "network = true", "has no network"
	case slices.ContainsFunc(fileSigns, contains):
		return fullAccess, files
	case slices.Contains(downloaders, filepath.Base(program)):
		return "network = true", "has no network"
	}
	return fullAccess, "has no network, " + files
}

// list returns strings as an array of TOML and JSON.
func list(all []string) string {
	encoded, err := json.Marshal(all)
	if err != nil {
		panic("strings are always JSON: " + err.Error())
	}
	return string(encoded)
}

const fullAccess = `sandbox = "fullAccess"`

var (
	// networkSigns and fileSigns are texts by which programs report that a connection or a file was refused.
	networkSigns = []string{
		"getaddrinfo", "eai_again", "enotfound", "econnrefused", "could not resolve", "name resolution", "network is unreachable", "connection refused", "dns error",
	}
	fileSigns = []string{"read-only file system", "erofs", "permission denied", "eacces", "operation not permitted"}
	// downloaders are programs that download what they run.
	downloaders = []string{"npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun", "uvx", "uv", "pipx"}
)
