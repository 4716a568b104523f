package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
)

// completionCommand implements lash completion, which prints a script for a
// shell.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell: bash, zsh or fish."`
}

// Help is shown by --help.
func (completionCommand) Help() string {
	return `The script completes commands, flags, and their values: sessions, turns, tasks, models, plugins, triggers, rules and more. To install it:

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
// candidates, the shell completes file names. Bash splits words at colons and
// equals signs, so its script reads the line instead; it lists the meanings when
// it lists candidates.
var completions = map[string]string{
	"bash": `_lash() {
  local line="${COMP_LINE:0:COMP_POINT}" words lines name current IFS=$' \t'
  read -ra words <<< "$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  current="${words[${#words[@]}-1]}"
  IFS=$'\n'
  lines=($(lash complete -- "${words[@]:1}" 2>/dev/null))
  COMPREPLY=()
  for line in "${lines[@]}"; do
    name="${line%%$'\t'*}"
    name="${name#"${current%"${current##*[:=]}"}"}"
    if [[ ${#lines[@]} -gt 1 && ( $COMP_TYPE == 63 || $COMP_TYPE == 33 ) && -n ${line#*$'\t'} ]]; then
      name="$name  (${line#*$'\t'})"
      name="${name:0:${COLUMNS:-80}-1}"
    fi
    COMPREPLY+=("$name")
  done
  [ ${#COMPREPLY[@]} -gt 0 ] || compopt -o default
}
complete -F _lash lash
`,
	"zsh": `#compdef lash
_lash() {
  local -a lines names
  lines=("${(@f)$(lash complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  names=("${(@)lines%%$'\t'*}")
  lines=("${(@)lines/$'\t'/  }")
  if [[ -n $lines[1] ]]; then compadd -l -d lines -a names; else _files; fi
}
if [ "$funcstack[1]" = _lash ]; then _lash "$@"; else compdef _lash lash; fi
`,
	"fish": `function __lash_complete
  set -l found (lash complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    printf '%s\n' $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c lash -f -a '(__lash_complete)'
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
	at := walk(k.Model.Node, before)
	at.entered, at.env, at.out = entered, e, console.Stdout
	if name, value, ok := strings.Cut(entered, "="); ok && at.wants == "" && strings.HasPrefix(name, "--") {
		at.wants, at.entered, at.before = name[2:], value, name+"="
	}
	return at.candidates(ctx)
}

// completion is a place in a command line, and what was entered there.
type completion struct {
	node    *kong.Node
	args    []string // arguments of the command before this place
	wants   string   // the flag whose value comes here, "" if none
	entered string
	before  string // of the entered word, which candidates repeat: --model=
	env     *daemon.Environment
	out     io.Writer
}

// walk finds the command that words name, and what comes after them.
func walk(node *kong.Node, words []string) *completion {
	at := &completion{node: node}
	for _, w := range words {
		switch {
		case at.wants != "":
			at.wants = ""
		case strings.HasPrefix(w, "-"):
			at.wants = valueFlag(at.node, w)
		default:
			i := slices.IndexFunc(at.node.Children, func(n *kong.Node) bool { return n.Name == w })
			if i < 0 {
				at.args = append(at.args, w)
				continue
			}
			at.node = at.node.Children[i]
		}
	}
	return at
}

// valueFlag returns the name of the flag that a word is if its value is the next word, else "".
func valueFlag(node *kong.Node, word string) string {
	for _, f := range flagsOf(node) {
		if !f.IsBool() && (word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short)) {
			return f.Name
		}
	}
	return ""
}

// flagsOf returns the flags of a command, of its default command and of its parents, without hidden ones.
func flagsOf(at *kong.Node) (all []*kong.Flag) {
	if at.DefaultCmd != nil {
		return flagsOf(at.DefaultCmd)
	}
	for _, group := range at.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// offer prints a candidate and its meaning, if it begins with what was entered.
func (at *completion) offer(name, help string) {
	if strings.HasPrefix(name, at.entered) {
		help, _, _ = strings.Cut(help, "\n")
		fmt.Fprintf(at.out, "%s%s\t%s\n", at.before, console.OneLine(name, 200), console.OneLine(help, 80))
	}
}

// candidates prints what can come here: flags, subcommands, or values of the flag or of the argument.
func (at *completion) candidates(ctx context.Context) error {
	value := at.value()
	switch {
	case at.wants == "" && strings.HasPrefix(at.entered, "-"):
		for _, f := range flagsOf(at.node) {
			at.offer("--"+f.Name, f.Help)
		}
	case value == nil && at.wants == "" && len(at.args) == 0:
		for _, n := range at.node.Children {
			if !n.Hidden {
				at.offer(n.Name, n.Help)
			}
		}
	case value == nil:
	case value.Enum != "":
		return offerWords(value.EnumSlice()...)(ctx, at)
	default:
		if offer := at.source(value.Name); offer != nil {
			return offer(ctx, at)
		}
	}
	return nil
}

// value returns the flag or the argument whose value comes here, or nil. The last argument may have several words.
func (at *completion) value() *kong.Value {
	if at.wants != "" {
		for _, f := range flagsOf(at.node) {
			if f.Name == at.wants {
				return f.Value
			}
		}
		return nil
	}
	n := len(at.node.Positional)
	switch {
	case len(at.args) < n:
		return at.node.Positional[len(at.args)]
	case n > 0 && at.node.Positional[n-1].IsCumulative():
		return at.node.Positional[n-1]
	}
	return nil
}
