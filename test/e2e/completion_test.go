package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestCompletion(t *testing.T) {
	w := newWorld(t, "ask")
	w.serve()
	p := w.dial("")
	id := ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: w.work, Title: "a title"}).SessionID
	for _, c := range []struct{ words, want string }{
		{"plugin tr", "trust"}, {"stat", "status"}, {"session ren", "rename"}, {"run --stream", "--stream-json"}, {"plugin t", "trust"}, {"run --sess", "--session"}, {"--home x plugin list --j", "--json"}, {"nothing such", ""},
		{"tail s", string(id)}, {"chat " + string(id)[:8], string(id)}, {"run --session ", string(id)}, {"complet", "completion"}, {"run --model x", ""},
		{"plugin new --lang ", "python ts go command"}, {"completion z", "zsh"}, {"session delete s", string(id)}, {"call queue/l", "queue/list"}, {"--log w", "warn"}, {"plugin new --lang go --log ", "debug info warn error"},
	} {
		out, err := w.command(append([]string{"complete", "--"}, strings.Split(c.words, " ")...)...).Output()
		var names []string
		for line := range strings.Lines(string(out)) {
			name, _, _ := strings.Cut(line, "\t")
			names = append(names, name)
		}
		if got := strings.Join(names, " "); err != nil || got != c.want {
			t.Errorf("issue/6-4 %q is completed by %q, %v; want %q", c.words, got, err, c.want)
		}
	}
	scripts := map[string]string{
		"bash": `source <(lash completion bash); COMP_LINE="lash plugin tr"; COMP_POINT=${#COMP_LINE}; _lash; echo "${COMPREPLY[@]}"`,
		"fish": `lash completion fish | source; complete -C "lash plugin tr" | cut -f1`,
		"zsh":  `autoload -U compinit; compinit -u -D; source <(lash completion zsh); [ "$_comps[lash]" = _lash ] && lash complete -- plugin tr | cut -f1`,
	}
	for shell, script := range scripts {
		cmd := exec.Command(shell, "-c", script)
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "HOME="+t.TempDir(), "LASHD_HOME="+w.dir, "LASHD_SOCKET="+w.socket)
		if _, err := exec.LookPath(shell); err != nil && shell != "bash" {
			t.Logf("there is no %s to try its script", shell)
			continue
		}
		if out, err := cmd.CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != "trust" {
			t.Errorf("issue/6-4 %s completes %q, %v", shell, out, err)
		}
	}
}
