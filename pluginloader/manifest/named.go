package manifest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

// NamedFile is a file outside a plugin that one of its commands names. A process that can change
// the file can change the effect of the command, so approval covers the file.
type NamedFile struct {
	Path   string          `json:"path"`             // absolute, but with links not resolved
	Digest protocol.Digest `json:"digest,omitempty"` // of the file's bytes; empty: there was no file
}

// maxNamed is the number of words in a plugin's commands that lashd examines.
const maxNamed = 2000

// naming searches the commands of one plugin for files that they name. It guesses: a word may name
// a file in several ways, and every file that exists is covered.
type naming struct {
	find      Finder
	files     map[string]protocol.Digest // result: digests by path
	uncovered map[string]bool            // result: what approval cannot cover, as texts for people
	seen      map[string]bool            // words that were examined, with their context
	found     bool                       // the current command names a file that exists
}

// named returns the files outside the plugin that its commands name, and texts about what the
// commands may use beyond these.
func (p *Plugin) named(ctx context.Context, find Finder) ([]NamedFile, []string, error) {
	n := &naming{find: find, files: map[string]protocol.Digest{}, uncovered: map[string]bool{}, seen: map[string]bool{}}
	for _, c := range p.commands() {
		if err := n.command(ctx, c); err != nil {
			return nil, nil, err
		}
	}
	var files []NamedFile
	for _, path := range slices.Sorted(maps.Keys(n.files)) {
		files = append(files, NamedFile{path, n.files[path]})
	}
	return files, slices.Sorted(maps.Keys(n.uncovered)), nil
}

// command examines one command: its arguments, its environment and code for a shell.
func (n *naming) command(ctx context.Context, c command) error {
	if len(c.argv) == 0 {
		return nil
	}
	shown := strings.Join(c.argv, " ")
	for _, reason := range openEnded(c) {
		n.note("%s: %s", shown, reason)
	}
	n.found = false
	words := slices.Clone(c.argv[1:])
	for _, name := range slices.Sorted(maps.Keys(c.env)) {
		words = append(words, c.env[name])
	}
	for _, word := range words {
		if err := n.word(ctx, c, word); err != nil {
			return err
		}
	}
	if n.found {
		n.note("%s: files that the named files load, such as modules beside them", shown)
	}
	return nil
}

// note records something that approval cannot cover.
func (n *naming) note(format string, args ...any) { n.uncovered[fmt.Sprintf(format, args...)] = true }

// word examines one word as a whole. If it is code, a list, or an option with a value, word
// examines its parts as well: the words that a shell would make of it, and what stands between punctuation.
func (n *naming) word(ctx context.Context, c command, word string) error {
	if c.tool {
		word = n.literal(word)
	}
	text := n.expand(word)
	code := strings.ContainsAny(text, " \t\n;|&<>()")
	if !c.shell() && strings.Contains(text, "/") && variable().MatchString(text) {
		n.note("%s: a variable of lashd's environment chooses the file", word)
	}
	parts := append([]string{text}, n.quoted(word, 0)...)
	parts = append(parts, strings.FieldsFunc(variable().ReplaceAllString(text, "\n"),
		func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&<>(){}=,:@", r) })...)
	for i, part := range parts {
		if err := n.part(ctx, c, part, i > 0 && code); err != nil {
			return err
		}
	}
	return nil
}

// maxNested is the depth of code within code, such as sh -c in a line for sh, that naming reads.
const maxNested = 3

// quoted returns the words that a shell makes of code, without quotes and with known variables, and those of code in them. Variables
// come last, so directories may have any characters.
func (n *naming) quoted(code string, depth int) (all []string) {
	if depth == maxNested || !strings.ContainsAny(code, " \t\n\"'\\;|&<>()=") {
		return nil
	}
	for _, word := range shellWords(code) {
		_, value, _ := strings.Cut(word, "=")
		all = append(all, n.expand(word), n.expand(value))
		if word != code {
			all = append(all, n.quoted(word, depth+1)...)
		}
	}
	return all
}

// shellWords splits code at white space and operators outside of quotes, and removes quotes and backslashes as a shell does.
func shellWords(code string) (all []string) {
	var b strings.Builder
	quote, escaped := rune(0), false
	for _, r := range code + "\n" {
		switch {
		case escaped:
			b.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote = r
		case quote == 0 && strings.ContainsRune(" \t\n;|&<>()`", r):
			if b.Len() > 0 {
				all = append(all, b.String())
			}
			b.Reset()
		default:
			b.WriteRune(r)
		}
	}
	return all
}

// literal removes the parameters from a word of a tool's command, because their values are unknown.
func (n *naming) literal(word string) string {
	var texts []string
	parameters := false
	for _, piece := range Pieces(word) {
		if parameters = parameters || piece.Parameter != ""; piece.Text != "" {
			texts = append(texts, piece.Text)
		}
	}
	if parameters && strings.Contains(word, "/") {
		n.note("%s: the tool call chooses the file", word)
	}
	return strings.Join(texts, " ")
}

// knownVariable matches a variable whose directory is known before the command runs, with quotes of its own.
var knownVariable = lazy(`"` + knownName + `"|` + knownName)

// knownName matches such a variable without quotes.
const knownName = `\$(?:(?:CLAUDE_PLUGIN_ROOT|PLUGIN_ROOT|CLAUDE_PROJECT_DIR|PWD|HOME)\b|` +
	`\{(?:CLAUDE_PLUGIN_ROOT|PLUGIN_ROOT|CLAUDE_PROJECT_DIR|PWD|HOME)(?::[-=?][^}]*)?\})`

// expand replaces known variables by their directories.
func (n *naming) expand(word string) string {
	dirs := map[string]string{
		"CLAUDE_PLUGIN_ROOT": n.find.Root, "PLUGIN_ROOT": n.find.Root, "CLAUDE_PROJECT_DIR": n.find.Workspace, "PWD": n.find.Workspace, "HOME": n.find.Home,
	}
	return knownVariable().ReplaceAllStringFunc(word, func(ref string) string {
		name, _, _ := strings.Cut(strings.Trim(ref, `"${}`), ":")
		return dirs[name]
	})
}

// part examines a part of a word in every directory in which the command may look for it. inCode
// means that the part comes from shell code, where it may also name a program.
func (n *naming) part(ctx context.Context, c command, part string, inCode bool) error {
	starts := inCode || wrappers[filepath.Base(c.argv[0])]
	key := fmt.Sprintf("%q %q %v %v", part, c.dir, inCode, starts)
	if part == "" || len(part) > 4096 || n.seen[key] {
		return nil
	}
	n.seen[key] = true
	switch {
	case len(n.seen) > maxNamed:
		n.note("the commands have more than %d words; approval does not cover files that only later words name", maxNamed)
		return nil
	case strings.HasPrefix(part, "~/"):
		part = n.find.Home + part[1:]
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if filepath.IsAbs(part) {
		return n.path(ctx, filepath.Clean(part), !strings.HasPrefix(part, "//")) // a double slash is the rest of a URL
	}
	for _, base := range []string{filepath.Join(n.find.Workspace, c.dir), n.find.Root, n.find.Home} {
		if base == "" {
			continue
		}
		likely := base != n.find.Home && base != n.find.Root && !strings.HasPrefix(part, "-") && (!inCode || strings.ContainsAny(part, "./"))
		if err := n.path(ctx, filepath.Join(base, part), likely && !strings.ContainsAny(part, " \t\n\"'`;|&<>()$*?=\\!")); err != nil {
			return err
		}
	}
	if starts && !strings.Contains(part, "/") {
		return n.program(ctx, part)
	}
	return nil
}

// program covers a program that a command starts by name.
func (n *naming) program(ctx context.Context, name string) error {
	path, err := n.find.Look(name)
	if err != nil {
		return nil
	}
	return n.path(ctx, path, false)
}

// path covers a file outside the plugin. If there is no file but the path is a likely one, it records
// that there was none, so that creating the file needs a new approval.
func (n *naming) path(ctx context.Context, path string, likely bool) error {
	if path == n.find.Root || strings.HasPrefix(path, n.find.Root+string(filepath.Separator)) {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if likely {
			n.files[path] = ""
		}
		return nil
	case err != nil:
		if likely {
			n.note("%s: cannot be read: %v", path, errors.Unwrap(err))
		}
		return nil
	case info.IsDir():
		if inside := strings.HasPrefix(path, n.find.Workspace+string(filepath.Separator)); inside || likely && path != n.find.Workspace {
			n.note("%s: files in this directory", path)
		}
		return nil
	case !info.Mode().IsRegular():
		return nil
	}
	d, err := n.digest(ctx, path, info)
	if err == nil {
		n.files[path], n.found = d, true
	}
	return err
}

// emptyFile stands for the digest of a file of size 0. lashd does not read such a file, because it may
// be one that the kernel generates: those have size 0, but reading them can block.
const emptyFile = "empty"

// digest returns the digest of a file, or a constant for a file that is empty or too large to read.
func (n *naming) digest(ctx context.Context, path string, info fs.FileInfo) (protocol.Digest, error) {
	switch {
	case info.Size() == 0:
		return emptyFile, nil
	case info.Size() > MaxProgram:
		n.note("%s: it has more than %d bytes", path, MaxProgram)
		return "large", nil
	}
	return n.find.Digest(ctx, path)
}

// Same reports whether the file is as approved. It calls digest if the file has to be read.
func (f NamedFile) Same(ctx context.Context, digest func(context.Context, string) (protocol.Digest, error)) (bool, error) {
	n := &naming{find: Finder{Digest: digest}, uncovered: map[string]bool{}}
	info, err := os.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.Digest == "", nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular():
		return f.Digest == "" && info.IsDir(), nil
	}
	now, err := n.digest(ctx, f.Path, info)
	return err == nil && now == f.Digest, err
}

// wrappers are programs that start the program named by their arguments.
var wrappers = setOf("busybox", "chroot", "chrt", "doas", "env", "exec", "flock", "ionice", "nice", "nohup", "setsid", "stdbuf", "sudo",
	"systemd-run", "taskset", "time", "timeout", "unshare", "watch", "xargs")

// builders are programs that run commands found in files of their working directory.
var builders = setOf("ant", "bazel", "bun", "bundle", "bunx", "cargo", "cmake", "composer", "deno", "docker", "dotnet", "go", "gradle", "gradlew",
	"hatch", "just", "make", "meson", "mix", "mvn", "ninja", "nox", "npm", "npx", "pipx", "pnpm", "poetry", "pytest", "rake", "sbt", "task", "tox",
	"uv", "uvx", "yarn", "git", "pre-commit")

// setOf returns a set of names.
func setOf(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	return all
}

var (
	// interpreter matches the name of a program that runs code or a module.
	interpreter = lazy(`^(a|ba|da|k|z)?sh$|^(fish|python|pypy|node|nodejs|ruby|perl|php|lua|tclsh|Rscript|java|pwsh|osascript)[0-9.]*$`)
	// codeOption matches an option whose value is code or a module.
	codeOption = lazy(`^-[A-Za-z]*[cCeEmMrpIS]$|^--?(eval|require|import|loader|experimental-loader|print|cp|classpath|jar)(=|$)`)
	// computed matches shell code that builds file names at run time.
	computed = lazy("[$`*?~\\\\\\[]|\\b(cd|pushd|eval|source)\\b")
)

// openEnded returns the reasons why approval cannot cover everything that a command uses.
func openEnded(c command) (reasons []string) {
	for i, word := range c.argv {
		base := filepath.Base(word)
		if (i == 0 || wrappers[filepath.Base(c.argv[0])]) && builders[base] {
			reasons = append(reasons, base+" runs what files in its directory say")
		}
		if (i == 0 || wrappers[filepath.Base(c.argv[0])]) && matches(interpreter, base) {
			reasons = append(reasons, codeReasons(c.argv[i+1:])...)
		}
	}
	return reasons
}

// codeReasons returns one reason for each option that passes code to an interpreter. Shell code
// that builds no file names at run time is no reason, because its words have been examined.
func codeReasons(args []string) (reasons []string) {
	for i, arg := range args {
		if !matches(codeOption, arg) {
			continue
		}
		if arg == "-c" && i+1 < len(args) && !matches(computed, knownVariable().ReplaceAllString(args[i+1], "")) {
			continue
		}
		reasons = append(reasons, "its code or module ("+arg+") may use files whose names lashd cannot tell")
	}
	return reasons
}

func matches(expression func() *regexp.Regexp, text string) bool {
	return expression().MatchString(text)
}
