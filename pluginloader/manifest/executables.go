package manifest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Beyond lists what a plugin uses outside its directory. The plugin's digest covers it, so approval
// of a plugin covers it too, and any change of it needs a new approval.
type Beyond struct {
	Name         string       `json:"name"`         // the plugin's name
	Commands     [][]string   `json:"commands"`     // commands that it may run, as written in its files
	Executables  []Executable `json:"executables"`  // the programs of these commands outside the plugin, where known in advance
	Addresses    []string     `json:"addresses"`    // URLs of servers
	Environment  []string     `json:"environment"`  // names of variables to pass from lashd's environment
	Capabilities []Capability `json:"capabilities"` // requests that it may send to lashd

	Files     []NamedFile `json:"files,omitempty"`     // files outside the plugin that commands name; only for a plugin of a workspace
	Uncovered []string    `json:"uncovered,omitempty"` // what else commands may use that approval cannot cover, for people
}

// Executable is a program outside a plugin.
type Executable struct {
	Name   string          `json:"name"`   // as written in the plugin
	Path   string          `json:"path"`   // with links resolved
	Digest protocol.Digest `json:"digest"` // of the file's bytes
}

// Finder locates and reads files outside a plugin. Tests and the loader supply different ones.
type Finder struct {
	// Look locates a program whose name has no slash, like exec.LookPath.
	Look func(name string) (path string, err error)
	// Digest returns the digest of a regular file. nil means DigestOf.
	Digest func(ctx context.Context, path string) (d protocol.Digest, err error)

	// Workspace is the directory in which the commands of a plugin that needs approval run. It is
	// empty for other plugins, and then Beyond.Files stays empty.
	Workspace string
	Root      string // the directory where the plugin will run
	Home      string // home directory of the user who started lashd
}

// Beyond finds what the plugin uses outside its directory. It reads every program that the commands
// name. A program that does not exist is an error.
func (p *Plugin) Beyond(ctx context.Context, find Finder) (Beyond, error) {
	b := Beyond{Name: p.Name, Capabilities: slices.Sorted(slices.Values(p.Capabilities))}
	for _, c := range p.commands() {
		if len(c.argv) > 0 {
			b.Commands = append(b.Commands, c.argv)
		}
		b.Environment = append(b.Environment, c.passEnv...)
		if c.url != "" {
			b.Addresses = append(b.Addresses, c.url)
		}
	}
	slices.SortFunc(b.Commands, slices.Compare)
	for _, list := range []*[]string{&b.Environment, &b.Addresses} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	if find.Digest == nil {
		find.Digest = DigestOf
	}
	if err := b.resolve(ctx, find); err != nil || find.Workspace == "" {
		return b, err
	}
	var err error
	b.Files, b.Uncovered, err = p.named(ctx, find)
	return b, err
}

// command is a command that a plugin runs, or a server that it connects to.
type command struct {
	argv    []string // empty for a server with a URL
	passEnv []string
	url     string
	env     map[string]string
	dir     string // directory to run in, relative to the workspace
	tool    bool   // argv contains {name} placeholders, which the tool call fills in
}

// shell reports whether argv is a line for sh.
func (c command) shell() bool { return len(c.argv) == 3 && c.argv[0] == "sh" && c.argv[1] == "-c" }

// commands returns every command of the plugin: process, tools, hooks, monitors and MCP servers.
func (p *Plugin) commands() []command {
	var all []command
	if c := p.Process; c != nil {
		all = append(all, command{argv: c.Command, passEnv: c.PassEnv, env: c.Env})
	}
	for _, t := range p.Tools {
		if len(t.Command) > 0 {
			all = append(all, command{argv: shell(t.Shell, t.Command), passEnv: t.PassEnv, env: t.Env, tool: true})
		}
	}
	for _, h := range p.CommandHooks {
		all = append(all, command{argv: shell(h.Args == nil, append([]string{h.Command}, h.Args...)), passEnv: h.PassEnv})
	}
	for _, m := range p.Monitors {
		all = append(all, command{argv: shell(true, []string{m.Command}), env: m.Env, dir: m.Cwd})
	}
	for _, name := range slices.Sorted(maps.Keys(p.MCPServers)) {
		all = append(all, p.MCPServers[name].command())
	}
	return all
}

// command returns the command that starts the server, or its URL.
func (s Server) command() command {
	if s.URL != "" {
		return command{passEnv: s.PassEnv, url: s.URL}
	}
	return command{argv: append([]string{s.Command}, s.Args...), passEnv: s.PassEnv, env: s.Env}
}

// shell returns argv, as a call of sh if script is set.
func shell(script bool, argv []string) []string {
	if script {
		return append([]string{"sh", "-c"}, argv...)
	}
	return argv
}

// resolve finds the programs outside the plugin. The digest of the directory covers those inside.
func (b *Beyond) resolve(ctx context.Context, find Finder) error {
	for _, argv := range b.Commands {
		name := argv[0]
		if find.Workspace != "" {
			name = strings.ReplaceAll(name, "${CLAUDE_PROJECT_DIR}", find.Workspace)
		}
		known := slices.ContainsFunc(b.Executables, func(e Executable) bool { return e.Name == name })
		if known || strings.Contains(name, "${") {
			continue
		}
		e, err := executable(ctx, name, find)
		if err != nil {
			return err
		}
		b.Executables = append(b.Executables, e)
	}
	slices.SortFunc(b.Executables, func(a, b Executable) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// executable locates one program and computes its digest.
func executable(ctx context.Context, name string, find Finder) (Executable, error) {
	file := name
	var err error
	if !strings.ContainsAny(name, `/\`) {
		file, err = find.Look(name)
	}
	if err == nil {
		file, err = pathresolve.Existing(file)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return Executable{}, fmt.Errorf("the program %q is not in PATH", name)
	}
	if err != nil {
		return Executable{}, fmt.Errorf("the program %q: %w", name, err)
	}
	sum, err := find.Digest(ctx, file)
	return Executable{Name: name, Path: file, Digest: sum}, err
}

// MaxProgram is the maximum size in bytes of a program outside a plugin.
const MaxProgram = 1 << 30

// DigestOf returns the digest of a regular file.
func DigestOf(ctx context.Context, path string) (protocol.Digest, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := pathresolve.CheckStored(f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return Sum(ctx, f)
}

// Sum returns the digest of an open file. It rejects files that are not regular, and files without
// a size, such as those of the kernel, because reading them might not end. It returns an error if
// the file changes while it is read.
func Sum(ctx context.Context, f *os.File) (protocol.Digest, error) {
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", f.Name())
	case info.Size() == 0 || info.Size() > MaxProgram:
		return "", fmt.Errorf("%s has %d bytes; a program has 1 to %d bytes", f.Name(), info.Size(), MaxProgram)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(reader{ctx, f}, info.Size()+1))
	if err == nil && n != info.Size() {
		err = fmt.Errorf("%s: %w", f.Name(), errChanged)
	}
	if err != nil {
		return "", err
	}
	return protocol.Digest(fmt.Sprintf("%x", sum.Sum(nil))), nil
}

// record adds everything that approval covers to a digest.
func (b Beyond) record(d *digester) {
	d.record("name", b.Name)
	for _, argv := range b.Commands {
		d.record(append([]string{"command"}, argv...)...)
	}
	for _, e := range b.Executables {
		d.record("executable", e.Name, e.Path, string(e.Digest))
	}
	d.record("addresses", joined(b.Addresses))
	d.record("environment", joined(b.Environment))
	for _, c := range b.Capabilities {
		d.record("capability", string(c))
	}
	for _, f := range b.Files {
		d.record("named", f.Path, string(f.Digest))
	}
	for _, text := range b.Uncovered {
		d.record("uncovered", text)
	}
}
