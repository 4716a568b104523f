package cli

import (
	"os/exec"
	"strings"
	"testing"
)

// completed returns the candidates for the last word of a command line.
func (p *place) completed(line string) string {
	p.t.Helper()
	r := p.run(append([]string{"complete", "--"}, strings.Split(line, " ")...)...)
	if r.code != 0 || r.err != "" {
		p.t.Errorf("lash complete %s: exit code %d, stderr %q", line, r.code, r.err)
	}
	var names []string
	for candidate := range strings.Lines(r.out) {
		name, _, _ := strings.Cut(candidate, "\t")
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// completionPlace is a place with one of each thing that can be completed. Its session has two turns, the first of which changed a file.
func completionPlace(t *testing.T) (p *place, session string) {
	p = newPlace(t)
	p.write("config.toml", "model = \"qwen3:8b\"\nscript = \"script.json\"\n")
	p.plugin("guard", map[string]string{"plugin.json": `{"name":"guard","lashd":{"prompt":"Be careful."}}`})
	session = p.session()
	p.want(0, "", "", "run", "--session", session, "touch it")
	p.want(0, "", "", "trigger", "add", "morning", "--cron", "@daily", "--missed", "skip", "--wake", session, "--text", "x")
	p.want(0, "added", "", "rules", "add", "deny", "command", "git push")
	p.want(0, "", "", "call", "task/start", `{"sessionId":"`+session+`","taskId":"read:er","spec":{"kind":"command","label":"l","recovery":"ownerBound","command":{"script":"read x"}}}`)
	return p, session
}

func TestCompletionOfValues(t *testing.T) {
	p, id := completionPlace(t)
	turn := p.firstField("session", "points", "trn_")
	rule := p.firstField("rules", "list", "rul_")
	for line, want := range map[string]string{
		"session fork ses":                  id,
		"session rewind " + id + " --to ":   "1 2",
		"session fork " + id + " --at ":     "1 2",
		"session fork " + id + " ":          "",
		"session undo " + id + " ":          turn,
		"session undo " + id[:20] + " trn_": turn,
		"session delete " + id + " ses":     id,
		"rules add d":                       "deny",
		"rules add deny ":                   "command path host tool",
		"rules add deny tool shell c":       "command",
		"rules add deny path ":              "",
		"rules remove ":                     rule,
		"plugin show ":                      "guard",
		"plugin disable g":                  "guard",
		"plugin new ":                       "",
		"task cancel ":                      "read:er",
		"task signal reader st":             "stdin",
		"task output --session ":            id,
		"trigger disable ":                  "morning",
		"trigger add x --missed run":        "runOnce runAll",
		"trigger emit manual":               "manual.emitted",
		"model --js":                        "--json",
		"model use ":                        "scripted",
		"run --model ":                      "scripted",
		"run --model=scr":                   "--model=scripted",
		"run --session=ses":                 "--session=" + id,
		"login anth":                        "anthropic",
		"man sess":                          "session",
		"logs -n 5 --f":                     "--follow",
		"session list nothing ":             "",
	} {
		t.Run("issue/21-3 Tab completes: lash "+line, func(t *testing.T) {
			if got := p.completed(line); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
	p.want(0, "", "stopped", "stop")
	t.Run("issue/21-3 without a daemon, Tab starts none, and completes what needs none", func(t *testing.T) {
		for line, want := range map[string]string{"session fork ": "", "plugin show ": "", "rules add deny h": "host", "task signal x inter": "interrupt"} {
			if got := p.completed(line); got != want {
				t.Errorf("%q: got %q, want %q", line, got, want)
			}
		}
		if p.run("status").code == 0 {
			t.Error("the daemon runs")
		}
	})
}

// firstField returns the first cell of the output of a command that begins with a prefix.
func (p *place) firstField(command, sub, prefix string) string {
	p.t.Helper()
	for field := range strings.FieldsSeq(p.run(command, sub).out) {
		if strings.HasPrefix(field, prefix) {
			return field
		}
	}
	p.t.Fatalf("lash %s %s shows no %s", command, sub, prefix)
	return ""
}

func TestCompletionInShells(t *testing.T) {
	p, id := completionPlace(t)
	complete := map[string]func(line string) string{
		"bash": func(line string) string {
			return `source <(lash completion bash); COMP_LINE="` + line + `"; COMP_POINT=${#COMP_LINE}; COMP_TYPE=9; _lash; printf '%s\n' "${COMPREPLY[@]}"`
		},
		"fish": func(line string) string {
			return `lash completion fish | source; complete -C "` + line + `" | cut -f1`
		},
		"zsh": func(line string) string {
			return `autoload -U compinit; compinit -u -D; source <(lash completion zsh); compadd() { print -l -- "${names[@]}" }; words=(${(z):-"` + line + `"}); [[ "` + line + `" == *" " ]] && words+=(""); CURRENT=$#words; _lash`
		},
	}
	for shell, script := range complete {
		if _, err := exec.LookPath(shell); err != nil && shell != "bash" {
			t.Logf("there is no %s to try its script", shell)
			continue
		}
		for line, want := range map[string]string{
			"lash plugin tr":           "trust",
			"lash session fork ":       id,
			"lash rules add deny ho":   "host",
			"lash model use scr":       "scripted",
			"lash task cancel read:e":  "read:er",
			"lash plugin disable g":    "guard",
			"lash run --model=scr":     "--model=scripted",
			"lash trigger disable mor": "morning",
		} {
			if i := strings.LastIndexAny(want, ":="); shell == "bash" && i > 0 {
				want = want[i+1:] // readline keeps the part before the last separator
			}
			t.Run("issue/21-3 "+shell+" completes: "+line, func(t *testing.T) {
				cmd := exec.Command(shell, "-c", script(line))
				cmd.Dir, cmd.Env = p.work, p.environ
				if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
					t.Errorf("got %q, %v; want %q", out, err, want)
				}
			})
		}
	}
	t.Run("issue/21-3 bash lists the meanings of several candidates", func(t *testing.T) {
		cmd := exec.Command("bash", "-c", `source <(lash completion bash); COLUMNS=60; COMP_LINE="lash rules add deny "; COMP_POINT=${#COMP_LINE}; COMP_TYPE=63; _lash; printf '%s\n' "${COMPREPLY[@]}"`)
		cmd.Dir, cmd.Env = p.work, p.environ
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "path  (files, such as: path '**/.env')\n") {
			t.Errorf("got %q, %v", out, err)
		}
	})
}
