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

// Beyond is what of a plugin reaches beyond its directory: a person who approves the plugin approves that, too.
type Beyond struct {
	Name         string       `json:"name"`         // what it is known by
	Commands     [][]string   `json:"commands"`     // that it may run, as it says them
	Executables  []Executable `json:"executables"`  // which these are, where that is known before
	Addresses    []string     `json:"addresses"`    // of servers
	Environment  []string     `json:"environment"`  // names of variables that it gets from the environment of lashd
	Capabilities []Capability `json:"capabilities"` // what it may ask of lashd

	Files     []NamedFile `json:"files,omitempty"`     // outside the plugin that the commands name, of a plugin of a workspace
	Uncovered []string    `json:"uncovered,omitempty"` // what else they may use, as far as that is known
}

// Executable is a program.
type Executable struct {
	Name   string          `json:"name"`   // as the plugin says it
	Path   string          `json:"path"`   // where it is, after all links
	Digest protocol.Digest `json:"digest"` // of its bytes
}

// Finder finds files outside a plugin.
type Finder struct {
	Look   func(name string) (path string, err error)                            // a program without a slash in its name, as exec.LookPath does
	Digest func(ctx context.Context, path string) (d protocol.Digest, err error) // of a regular file; nil: DigestOf

	// Where the commands of a plugin run that a person has to approve. Without a workspace nobody has, and Beyond.Files is empty.
	Workspace string
	Root      string // where the plugin will be
	Home      string // of the person who started lashd
}

// Beyond finds what the plugin reaches. A program that is not there is an error.
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

// command is something that a plugin runs, or a server that it speaks to.
type command struct {
	argv    []string
	passEnv []string
	url     string
	env     map[string]string
	dir     string // where it runs, in the workspace
	tool    bool   // {name} stands for a parameter, which the caller of the tool gives
}

// commands are all that a plugin runs.
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

func (s Server) command() command {
	if s.URL != "" {
		return command{passEnv: s.PassEnv, url: s.URL}
	}
	return command{argv: append([]string{s.Command}, s.Args...), passEnv: s.PassEnv, env: s.Env}
}

// shell is the command that runs a script, or the command itself.
func shell(script bool, argv []string) []string {
	if script {
		return append([]string{"sh", "-c"}, argv...)
	}
	return argv
}

// resolve finds the programs that are outside of the plugin. Those inside are in the digest of its directory.
func (b *Beyond) resolve(ctx context.Context, find Finder) error {
	for _, argv := range b.Commands {
		name := argv[0]
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

// MaxProgram is how many bytes a program outside a plugin may have.
const MaxProgram = 1 << 30

// DigestOf gives the digest of a regular file.
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

// Sum gives the digest of a file that is open. One that is not regular, or has no size of its own, as those of the kernel, is
// refused, because reading it might not end.
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
