package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc"
	"lashd/rpc/protocol"
)

// completionCommand implements lash completion, which prints a script for a
// shell.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Help is shown by --help.
func (completionCommand) Help() string {
	return `The script completes commands, flags, flag values and session ids. To install it:

  bash   lash completion bash > ~/.local/share/bash-completion/completions/lash
  zsh    lash completion zsh > "${fpath[1]}/_lash"
  fish   lash completion fish > ~/.config/fish/completions/lash.fish

A release installs them with the programs.`
}

// Run prints the script of the shell; kong has checked the name.
func (c completionCommand) Run() error {
	fmt.Fprint(console.Stdout, Completion(c.Shell))
	return nil
}

// Completion returns the completion script for bash, zsh or fish.
func Completion(shell string) string { return completions[shell] }

// completions are the scripts by shell. They call "lash complete", which prints
// one candidate per line, followed by a tab and its meaning. If there are no
// candidates, bash and zsh complete file names.
var completions = map[string]string{
	"bash": `_lash() {
  local IFS=$'\n'
  COMPREPLY=($(lash complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1))
  [ ${#COMPREPLY[@]} -gt 0 ] || compopt -o default
}
complete -F _lash lash
`,
	"zsh": `#compdef lash
_lash() {
  local -a lines names
  lines=("${(@f)$(lash complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  names=("${(@)lines%%$'\t'*}")
  if [[ -n $lines[1] ]]; then compadd -l -d lines -a names; else _files; fi
}
if [ "$funcstack[1]" = _lash ]; then _lash "$@"; else compdef _lash lash; fi
`,
	"fish": `complete -c lash -f -a '(lash complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

// completeCommand is the hidden command that the scripts call. The last word is
// the one to complete, and may be empty.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints the completions. It never starts a daemon and prints no errors of its
// own, since it runs on each press of the tab key.
func (c completeCommand) Run(ctx context.Context, k *kong.Kong, e *daemon.Environment) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	before, entered := words[:len(words)-1], words[len(words)-1]
	at, wants := walk(k.Model.Node, before)
	return candidates(ctx, console.Stdout, e, at, wants, entered)
}

// walk finds the command that words name. wants is the flag whose value comes
// next, or "". Words that are neither commands nor flags are arguments and are
// skipped.
func walk(at *kong.Node, words []string) (node *kong.Node, wants string) {
	for _, w := range words {
		if wants != "" {
			wants = ""
			continue
		}
		if name, isFlag := strings.CutPrefix(w, "--"); isFlag {
			for _, f := range flagsOf(at) {
				if f.Name == name && !f.IsBool() {
					wants = name
				}
			}
			continue
		}
		i := slices.IndexFunc(at.Children, func(n *kong.Node) bool { return n.Name == w })
		if i >= 0 {
			at = at.Children[i]
		}
	}
	return at, wants
}

// flagsOf returns the flags of a command and of its parents, without hidden ones.
func flagsOf(at *kong.Node) (all []*kong.Flag) {
	for _, group := range at.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// candidates prints the completions of entered at a command: its flags, the ids or
// names that its first argument takes, or its subcommands. If wants is not empty,
// they are values of that flag.
func candidates(ctx context.Context, out io.Writer, e *daemon.Environment, at *kong.Node, wants, entered string) error {
	offer := func(name, help string) {
		if strings.HasPrefix(name, entered) {
			help, _, _ = strings.Cut(help, "\n")
			fmt.Fprintf(out, "%s\t%s\n", name, console.OneLine(help, 80))
		}
	}
	takes := wants
	if wants == "" && len(at.Positional) > 0 {
		takes = at.Positional[0].Name
	}
	switch {
	case wants == "" && strings.HasPrefix(entered, "-"):
		for _, f := range flagsOf(at) {
			offer("--"+f.Name, f.Help)
		}
	case takes == "session", takes == "sessions":
		return offerSessions(ctx, e, offer)
	case takes == "method":
		methods := rpc.Methods()
		for _, name := range slices.Sorted(maps.Keys(methods)) {
			offer(name, methods[name].Doc)
		}
	case len(valuesOf(at, wants)) > 0:
		for _, v := range valuesOf(at, wants) {
			offer(v, "")
		}
	case wants == "":
		for _, n := range at.Children {
			if !n.Hidden {
				offer(n.Name, n.Help)
			}
		}
	}
	return nil
}

// valuesOf returns the allowed values of a flag or, if flag is "", of the first
// argument. It returns nil if any value is allowed, or if there is no such flag.
func valuesOf(at *kong.Node, flag string) []string {
	if flag == "" && len(at.Positional) > 0 {
		return choices(at.Positional[0])
	}
	for _, f := range flagsOf(at) {
		if f.Name == flag {
			return choices(f.Value)
		}
	}
	return nil
}

// choices returns the values of an enumeration, or nil.
func choices(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

// offerSessions offers session ids if the daemon is running. It does not start a
// daemon, and without one offers nothing.
func offerSessions(ctx context.Context, e *daemon.Environment, offer func(name, help string)) error {
	l, err := e.Dial(ctx, false, nil)
	if err != nil {
		return nil
	}
	defer l.Close()
	var r protocol.SessionListResult
	if err := l.Call(ctx, "session/list", protocol.SessionListParams{}, &r); err != nil {
		return err
	}
	for _, s := range r.Data {
		offer(string(s.ID), s.Title)
	}
	return nil
}
