package commandrule

import "strings"

// option is an option with which a program that usually does one job runs another program, loads code, or writes a file of its choice.
type option struct {
	name string // with its dashes
	// after is the subcommand that has the option; empty: any.
	after string
}

// options are such options by program. A rule that allows the program covers a command with one of them only if the rule names the
// option, too: a person who allows go test does not think of -exec.
var options = map[string][]option{
	"go":     {{name: "-exec"}, {name: "-toolexec"}, {name: "-vettool"}, {name: "-ldflags"}, {name: "-overlay"}, {name: "-o"}},
	"git":    {{name: "--upload-pack"}, {name: "--receive-pack"}, {name: "--exec"}, {name: "-x", after: "rebase"}, {name: "--ext-diff"}, {name: "--output"}, {name: "--template"}, {name: "--open-files-in-pager"}, {name: "-O", after: "grep"}},
	"npm":    script,
	"pnpm":   script,
	"yarn":   script,
	"bun":    append(script, option{name: "--preload"}, option{name: "-r"}),
	"cargo":  {{name: "--config"}, {name: "-Z"}},
	"eslint": code, "jest": code, "vitest": code, "prettier": code,
	"pytest": {{name: "-p"}, {name: "-c"}, {name: "-o"}, {name: "--override-ini"}, {name: "--pdbcls"}, {name: "--confcutdir"}},
	"tsc":    {{name: "--outDir"}, {name: "--outFile"}, {name: "--declarationDir"}},
}

var (
	script = []option{{name: "--script-shell"}, {name: "--shell"}, {name: "--node-options"}, {name: "--prefix"}, {name: "--dir"}, {name: "--cwd"}, {name: "-C"}}
	code   = []option{{name: "--config"}, {name: "-c"}, {name: "--rulesdir"}, {name: "--plugin"}, {name: "--resolve-plugins-relative-to"}, {name: "--parser"}, {name: "--format"}, {name: "-f"}, {name: "--globalSetup"}, {name: "--output-file"}, {name: "-o"}, {name: "--transform"}}
)

// optionReach returns the number of words that a rule must have to cover a command with such an option; 0 without one.
func optionReach(words []word) (reach int) {
	for i, w := range words[1:] {
		if w.text == "--" {
			break
		}
		for _, o := range options[base(words[0].text)] {
			if o.is(w.text) && (o.after == "" || len(words) > 1 && words[1].text == o.after) {
				reach = i + 3 // with its value
			}
		}
	}
	return min(reach, max(len(words), reach-1))
}

// is reports whether a word is the option, perhaps with its value or abbreviated. Go and some others accept one dash for two.
func (o option) is(text string) bool {
	short := len(o.name) == 2
	name, _, _ := strings.Cut(text, "=")
	switch {
	case short:
		return strings.HasPrefix(text, o.name) && !strings.HasPrefix(text, "--")
	case strings.HasPrefix(o.name, "--"):
		return len(name) > 3 && strings.HasPrefix(o.name, name)
	}
	return name == o.name || name == "-"+o.name
}
