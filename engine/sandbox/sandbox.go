// Package sandbox decides what the commands of a session may reach. A command in a sandbox reads the system without its secrets, writes to
// the workspace and to temporary directories of its own, and reaches no network and no socket of another program.
//
// Package proc enforces that. This package also has the variables of such commands and the texts about them for the model.
package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"lashd/engine/authority"
	"lashd/engine/netproxy"
	"lashd/engine/proc"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Places are the directories of the daemon and its user. All are absolute, without symbolic links.
type Places struct {
	Home    string   // of the user; empty: unknown
	State   string   // of lashd; commands in a sandbox do not see it
	Scratch string   // for temporary files and caches of sandboxed commands, one directory for each workspace
	Hidden  []string // more files and directories that commands do not see
	// Resolver resolves the names of hosts that commands reach. Nil: that of the system.
	Resolver *net.Resolver
	// Named are secrets that the daemon's environment names; see NamedSecrets. They are hidden unless they are in the workspace.
	Named []string
	// Env has variables that commands get although they look like secrets, as NAME=value.
	Env []string
	// Withheld are the names of variables that commands do not get, because they look like secrets.
	Withheld []string
}

// Box is the sandbox of one command.
type Box struct {
	Confinement *proc.Confinement
	Env         []string // variables to add to the command's environment

	mode     protocol.SandboxMode // that counts; it may be narrower than the one asked for
	narrowed string               // why it is narrower
	withheld []string             // as in Places
	resolver *net.Resolver        // as in Places
	home     string               // as in Places
	state    string               // as in Places
	dir      string               // in which the command starts; empty: unknown
	proxy    *netproxy.Proxy      // nil: no network
	granted  []string             // hosts that the call named
	watched  *watched             // nil: the command cannot change the workspace
}

// limits keep a command from filling the disk with one file, and from taking all processes of the machine.
var limits = proc.Limits{Processes: 4096, FileSize: 16 << 30}

// errNoScratch means that the daemon was not given a directory for sandboxes.
var errNoScratch = errors.New("there is no directory for the temporary files of sandboxed commands")

// cache is the directory in which a command finds its caches. All commands of a workspace share it.
const cache = "/tmp/cache"

// For returns the sandbox of a command that works in a workspace; nil if the mode needs none. The command sees the workspace and
// its temporary files; how much of that it may change depends on the mode. It fails if the directories cannot be made, or if a link in
// the path of the workspace leads elsewhere.
func (p Places) For(mode protocol.SandboxMode, workspace string) (*Box, error) {
	if !mode.Confines() {
		return nil, nil
	}
	if !filepath.IsAbs(p.Scratch) {
		return nil, errNoScratch
	}
	if err := pathresolve.CheckWorkspace(workspace); err != nil {
		return nil, err
	}
	hidden := append(p.secrets(), p.named(workspace)...)
	if err := checkPlace(workspace, hidden); err != nil {
		return nil, err
	}
	temp, err := prepare(filepath.Join(p.Scratch, string(protocol.DigestOf([]byte(workspace)))[:16]))
	if err != nil {
		return nil, err
	}
	s := &proc.Sandbox{View: &proc.View{Hide: hidden, Temp: temp}}
	box := &Box{Confinement: &proc.Confinement{Limits: limits, Sandbox: s}, mode: mode, withheld: p.Withheld, resolver: p.Resolver, home: p.Home, state: p.State}
	if box.narrowed = p.tooWide(workspace, hidden); box.narrowed != "" {
		box.mode = protocol.SandboxReadOnly
	}
	box.Env = append(variables(box.mode), p.Env...)
	switch {
	case box.mode == protocol.SandboxWorkspace:
		g := guard(workspace, p.Home)
		s.Write = append([]string{workspace}, g.write...)
		s.Keep = within(s.Write, append(p.linkedPlugins(), g.keep...))
		box.watched = watch(workspace, g)
	case box.narrowed == "":
		s.View.Show = []string{workspace}
	}
	return box, nil
}

// Default returns the mode of sessions that name none: workspace if commands in that directory can run in a sandbox, else "",
// which means fullAccess: lashd asks about each command.
func (p Places) Default(workspace string) protocol.SandboxMode {
	real, err := pathresolve.Existing(workspace)
	if err != nil || !filepath.IsAbs(p.Scratch) || checkPlace(real, p.secrets()) != nil || p.tooWide(real, p.secrets()) != "" || Available() != nil {
		return ""
	}
	return protocol.SandboxWorkspace
}

// Mode returns the mode that counts for commands in a workspace, and why it is narrower than the one asked for; the reason is empty if it is
// not.
func (p Places) Mode(mode protocol.SandboxMode, workspace string) (protocol.SandboxMode, string) {
	at, err := pathresolve.Existing(workspace)
	if err != nil || mode != protocol.SandboxWorkspace {
		return mode, ""
	}
	if why := p.tooWide(at, append(p.secrets(), p.named(at)...)); why != "" {
		return protocol.SandboxReadOnly, why
	}
	return mode, ""
}

// tooWide returns why commands must not write to a workspace: it is or contains the home directory, which has more start-up files than
// lashd knows, or hidden files, or a plugin that lashd runs without approval. It is empty for other workspaces.
func (p Places) tooWide(workspace string, hidden []string) string {
	if p.Home != "" && authority.Inside(p.Home, workspace) {
		return "the workspace contains the home directory"
	}
	for _, path := range hidden {
		if exists(path) && authority.Inside(path, workspace) {
			return "the workspace contains " + path
		}
	}
	for _, path := range p.linkedPlugins() {
		if real, err := pathresolve.Existing(path); err == nil && authority.Inside(workspace, real) {
			return fmt.Sprintf("the workspace is part of a plugin that runs without approval (%s)", path)
		}
	}
	if workspace == "/" {
		return "the workspace is the root directory"
	}
	return ""
}

// checkPlace returns an error for a workspace in a hidden directory.
func checkPlace(workspace string, hidden []string) error {
	for _, path := range hidden {
		if exists(path) && authority.Inside(workspace, path) {
			return fmt.Errorf("the workspace %s is in %s, which commands in a sandbox must not see; choose another workspace, or the mode fullAccess", workspace, path)
		}
	}
	return nil
}

// prepare makes the directory for temporary files with the one for caches in it, and returns its path without links. It repairs what a
// command did to them, and follows no link that a command made.
func prepare(temp string) (string, error) {
	if err := os.MkdirAll(temp, 0o700); err != nil {
		return "", err
	}
	if err := os.Chmod(temp, 0o700); err != nil {
		return "", err
	}
	caches := filepath.Join(temp, filepath.Base(cache))
	if info, err := os.Lstat(caches); err == nil && !info.IsDir() {
		if err := os.Remove(caches); err != nil {
			return "", err
		}
	}
	if err := os.Mkdir(caches, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return pathresolve.Existing(temp)
}

// variables are the variables of a sandboxed command: where its caches are, and that it is in a sandbox.
func variables(mode protocol.SandboxMode) []string {
	return []string{
		"LASHD_SANDBOX=" + string(mode), "TMPDIR=/tmp", "XDG_CACHE_HOME=" + cache, "GOCACHE=" + cache + "/go-build", "npm_config_cache=" + cache + "/npm",
		"PIP_CACHE_DIR=" + cache + "/pip",
	}
}

// Environment returns the variables of env without those that lead to services of the user, such as the agents for keys, and without
// those that the sandbox sets itself.
func Environment(env []string) []string {
	return slices.DeleteFunc(without(env, variables("")), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(services, name) || isProxied(name)
	})
}

// without returns the variables of env that others do not set.
func without(env, others []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(others, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	})
}

// services are variables that name sockets and credentials of services outside of the sandbox.
var services = []string{
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY",
	"XAUTHORITY", "ICEAUTHORITY", "DOCKER_HOST", "KUBECONFIG", "GNOME_KEYRING_CONTROL", "VSCODE_IPC_HOOK_CLI", "GIT_ASKPASS", "SSH_ASKPASS",
}

// secretNames are files and directories in the home directory with keys, tokens, passwords and private messages.
var secretNames = []string{
	".ssh", ".gnupg", ".password-store", ".pki", ".local/share/keyrings", ".kube", ".docker", ".aws", ".azure", ".config/gcloud", ".config/gh", ".config/hub",
	".config/glab-cli", ".config/op", ".config/doctl", ".oci", ".terraform.d", ".vault-token", ".netrc", "_netrc", ".authinfo", ".authinfo.gpg", ".npmrc", ".yarnrc.yml",
	".pypirc", ".git-credentials", ".config/git/credentials", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties",
	".pgpass", ".my.cnf", ".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".claude", ".codex",
	".config/rclone", ".config/github-copilot", ".config/containers", ".config/sops", ".config/composer", ".config/pip", ".databrickscfg", ".s3cfg", ".boto", ".Xauthority",
	".ICEauthority", ".node_repl_history", ".lesshst", ".viminfo", ".local/share/fish", ".var/app", "snap", ".gemini", ".config/goose", ".local/share/opencode", ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history",
}

// systemSecrets are files and directories of the system that a user with privileges could read.
var systemSecrets = []string{
	"/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/docker",
	"/etc/wireguard", "/etc/NetworkManager/system-connections", "/run/user", "/run/secrets", "/run/credentials", "/var/lib/docker", "/var/spool/cron", "/boot",
}

// secrets returns what a sandboxed command cannot see, with symbolic links resolved where there are any.
func (p Places) secrets() []string {
	all := append([]string{p.State}, systemSecrets...)
	all = append(all, p.Hidden...)
	for _, name := range secretNames {
		if p.Home != "" {
			all = append(all, filepath.Join(p.Home, name))
		}
	}
	for i, path := range all {
		if real, err := pathresolve.Existing(path); err == nil {
			all[i] = real
		}
	}
	slices.Sort(all)
	return slices.Compact(slices.DeleteFunc(all, func(path string) bool { return path == "" || path == "/" }))
}

// Available returns nil if commands can run in a sandbox here, else the reason why not. The first call starts a program to find out.
func Available() error { return proc.Views() }
