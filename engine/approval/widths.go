package approval

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/publicsuffix"

	"lashd/engine/hostrule"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Widths returns the rules that an answer for more than one call can store, narrowest first. Each allows this call; the sentence of
// each says everything that it allows. There are none if only an answer for exactly this call is possible: for programs that exist to
// run others, for example. A person can still write a rule.
func (q *Request) Widths(v Verdict) []protocol.ApprovalWidth {
	if v.Mode != protocol.ApproveAsk || v.Once {
		return nil
	}
	var all []protocol.ApprovalWidth
	switch about := q.Call; {
	case !q.Ships:
		all = []protocol.ApprovalWidth{toolWidth(about.entry.Manifest.Name)}
	case q.asksAboutHosts():
		all = hostWidths(about.hosts())
	case len(about.all) > 0 && about.all[0].Command != "":
		all = commandWidths(about.all)
	case len(about.all) > 0:
		all = pathWidths(about.cwd, about.all)
	}
	return slices.DeleteFunc(all, func(w protocol.ApprovalWidth) bool { return !q.allowedBy(*w.Rule) })
}

// allowedBy reports whether a rule of the session would allow the call.
func (q *Request) allowedBy(r protocol.ApprovalRule) bool {
	return q.Judge(Answers{session: []Answer{{Rule: &r}}}).Mode == protocol.ApproveAllow
}

// WithRule adds to a refusal of the sandbox the rule that would allow the command outside, and removes an offer of hosts that a rule denies. A
// nil request knows neither.
func (q *Request) WithRule(r *protocol.SandboxRefusal) *protocol.SandboxRefusal {
	with := *r
	if q != nil && r.WithHosts != nil {
		again := *q
		again.Call = SubjectsOf(q.Call.cwd, q.Call.entry, r.WithHosts.Retry)
		if again.Judge(Answers{}).Mode == protocol.ApproveDeny {
			with.WithHosts = nil
		}
	}
	if q != nil && len(q.Call.all) > 0 && q.Call.all[0].Command != "" {
		for _, w := range commandWidths(q.Call.all[:1]) {
			with.Rule = w.Rule
		}
	}
	return &with
}

// asksAboutHosts reports whether the call would need no question if it wanted no hosts.
func (q *Request) asksAboutHosts() bool {
	if len(q.Call.hosts()) == 0 {
		return false
	}
	without, call := *q, *q.Call
	call.all = slices.DeleteFunc(slices.Clone(call.all), func(about parsedSubject) bool { return about.Host != "" })
	without.Call = &call
	return without.Judge(Answers{}).Mode == protocol.ApproveAllow
}

// toolWidth is the width of a tool that does not ship with lashd: what it does with its arguments is unknown.
func toolWidth(name string) protocol.ApprovalWidth {
	return protocol.ApprovalWidth{Text: "all calls of the tool " + name + ", with any arguments", Rule: &protocol.ApprovalRule{Tool: quoteMeta(name, `*?[\`), Action: protocol.ApproveAllow}}
}

// commandWidths returns the width for a command line whose simple commands all begin with the same words of the table jobs.
func commandWidths(all []parsedSubject) []protocol.ApprovalWidth {
	if len(all) != 1 {
		return nil
	}
	commands, ok := all[0].line.Words()
	if !ok {
		return nil
	}
	words := job(commands[0])
	if len(words) == 0 || slices.ContainsFunc(commands, func(c []string) bool { return len(c) < len(words) || !slices.Equal(c[:len(words)], words) }) {
		return nil
	}
	text := strings.Join(words, " ")
	return []protocol.ApprovalWidth{{
		Text: fmt.Sprintf("commands that begin with %s, also outside the sandbox", text), Rule: &protocol.ApprovalRule{Command: text, Action: protocol.ApproveAllow},
	}}
}

// jobs are the beginnings of commands that a width may have: programs that do one job, with a subcommand where the program has some. A
// star is any one word that is not an option. Programs that exist to run others or any code have none: python, sh, sudo, env, xargs,
// find, make, docker, npx. Neither have subcommands that publish something or run a program that the next word names.
var jobs = map[string][]string{
	"go":        {"build", "doc", "fmt", "list", "test", "version", "vet", "mod download", "mod tidy", "mod verify"},
	"git":       {"add", "branch", "checkout", "cherry-pick", "commit", "diff", "fetch", "log", "merge", "mv", "pull", "restore", "revert", "rm", "show", "stash", "status", "switch", "tag"},
	"npm":       {"ci", "run *", "run-script *", "test"},
	"pnpm":      {"run *", "test"},
	"yarn":      {"run *", "test"},
	"bun":       {"run *", "test"},
	"cargo":     {"bench", "build", "check", "clippy", "doc", "fmt", "test", "tree"},
	"dotnet":    {"build", "format", "test"},
	"deno":      {"check", "fmt", "lint"},
	"kubectl":   {"describe", "get", "logs"},
	"ruff":      {"check", "format"},
	"terraform": {"fmt", "plan", "validate"},
	"black":     {""}, "eslint": {""}, "gofmt": {""}, "jest": {""}, "mypy": {""}, "prettier": {""}, "pytest": {""}, "rustfmt": {""}, "tsc": {""}, "vitest": {""},
}

// job returns the words of the command that its width has; none if there is none.
func job(words []string) []string {
	for _, sub := range jobs[words[0]] {
		want := strings.Fields(sub)
		if len(words) <= len(want) {
			continue
		}
		if slices.EqualFunc(want, words[1:1+len(want)], func(want, got string) bool { return want == got || want == "*" && plainWord(got) }) {
			return words[:1+len(want)]
		}
	}
	return nil
}

// plainWord reports whether a word is a plain name, which needs no quotes in a rule.
func plainWord(text string) bool {
	return text != "" && text[0] != '-' && strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:._-") == ""
}

// pathWidths returns the widths for the paths of a call: the file, if it is one, and its directory.
func pathWidths(cwd string, all []parsedSubject) []protocol.ApprovalWidth {
	if slices.ContainsFunc(all, func(about parsedSubject) bool { return about.Command != "" || about.Host != "" || len(about.at) == 0 }) {
		return nil
	}
	first := all[0].at[len(all[0].at)-1]
	same := !slices.ContainsFunc(all, func(about parsedSubject) bool { return about.at[len(about.at)-1] != first })
	dir := filepath.Dir(first)
	within := !slices.ContainsFunc(all, func(about parsedSubject) bool { return filepath.Dir(about.at[len(about.at)-1]) != dir })
	var widths []protocol.ApprovalWidth
	if name, ok := relative(cwd, first); same {
		widths = append(widths, pathWidth("the file "+name, name))
		within = within && ok
	}
	if name, ok := relative(cwd, dir); within && ok {
		text := "all files in " + name
		if name == "." {
			text = "all files of the workspace"
		}
		widths = append(widths, pathWidth(text, name))
	}
	return widths
}

// pathWidth returns the width for a path.
func pathWidth(what, name string) protocol.ApprovalWidth {
	return protocol.ApprovalWidth{
		Text: "reading and changing " + what + " with the file tools", Rule: &protocol.ApprovalRule{Path: quoteMeta(name, wildcards+`\`), Action: protocol.ApproveAllow},
	}
}

// relative returns a path relative to the workspace. ok is false if it is outside; then it stays absolute.
func relative(cwd, at string) (name string, ok bool) {
	for _, top := range pathresolve.Of("", cwd) {
		if way, ok := pathresolve.Relative(at, top); ok {
			if way == "" {
				way = "."
			}
			return way, true
		}
	}
	return at, false
}

// quoteMeta escapes characters that have a meaning in a pattern.
func quoteMeta(text, meta string) string {
	var out strings.Builder
	for _, c := range []byte(text) {
		if strings.IndexByte(meta, c) >= 0 {
			out.WriteByte('\\')
		}
		out.WriteByte(c)
	}
	return out.String()
}

// hostWidths returns the widths for the hosts of a call: the host, if it is one, and the registrable domain that they share.
func hostWidths(all []hostrule.Pattern) []protocol.ApprovalWidth {
	var widths []protocol.ApprovalWidth
	if len(all) == 1 {
		widths = append(widths, hostWidth(all[0].String()))
	}
	shared := ""
	for _, h := range all {
		name, port, _ := strings.Cut(h.String(), ":")
		if port != "" {
			port = ":" + port
		}
		domain, err := publicsuffix.EffectiveTLDPlusOne(name)
		if _, is := h.Address(); err != nil || is || domain == name {
			return widths
		}
		if next := "*." + domain + port; shared != "" && shared != next {
			return widths
		} else {
			shared = next
		}
	}
	return append(widths, hostWidth(shared))
}

// hostWidth returns the width for a host, with or without a port.
func hostWidth(host string) protocol.ApprovalWidth {
	what := "connections to " + host
	if domain, ok := strings.CutPrefix(host, "*."); ok {
		what = "connections to every host below " + domain
	}
	if !strings.Contains(host, ":") {
		what += ", on ports 80 and 443"
	}
	return protocol.ApprovalWidth{Text: what, Rule: &protocol.ApprovalRule{Host: host, Action: protocol.ApproveAllow}}
}
