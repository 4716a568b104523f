package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
	"lashd/test/skip"
)

// claudePlugin copies a plugin of testdata/claude into the user's plugin directory. These plugins follow the public documentation of
// Claude Code and know nothing of lashd.
func (h *home) claudePlugin(name string) {
	h.t.Helper()
	if err := os.CopyFS(filepath.Join(h.plugins(), name), os.DirFS(filepath.Join("testdata", "claude", name))); err != nil {
		h.t.Fatal(err)
	}
}

// bodies are the requests that the model got, as text.
func (w *world) bodies() (all []string) {
	for _, r := range w.model.Requests() {
		all = append(all, string(r.Body))
	}
	return all
}

// lash runs lash and returns its output.
func (w *world) lash(args ...string) string {
	w.t.Helper()
	cmd := w.command(append([]string{}, args...)...)
	cmd.Dir = w.work
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("lash %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// contains fails the test unless a text has all parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}

func TestClaudePlugins(t *testing.T) {
	t.Run("part13/5 commands of a plugin are slash commands with arguments", func(t *testing.T) {
		w := newWorld(t, "ask", step(says("Done.")), step(says("Done.")))
		w.claudePlugin("review-tools")
		d := w.serve()
		defer d.stop()
		p := w.dial("")
		id := p.session(w.home)
		list := ask[protocol.CommandListResult](p, "command/list", protocol.SessionParams{SessionID: id}).Data
		want := []protocol.CommandInfo{
			{Name: "review-tools:review-pr", Kind: "command", Description: "Review a pull request", Hint: "[pr-number] [priority]", Plugin: "review-tools"},
			{Name: "review-tools:summarize", Kind: "command", Description: "Summarize the newest commit for: $ARGUMENTS", Plugin: "review-tools"},
		}
		if len(list) != 2 || list[0] != want[0] || list[1] != want[1] {
			t.Errorf("the commands are %+v", list)
		}
		w.lash("run", `/review-tools:review-pr 456 "very high"`)
		contains(t, w.bodies()[0], `"/review-tools:review-pr 456 \"very high\""`,
			`Review pull request #456 with priority very high. See @README.md and $1. All: 456 \"very high\"`,
			"First run each of these commands", "- `git branch --show-current`")
		w.lash("run", "/etc/hosts is a file")
		if got := w.bodies()[1]; strings.Contains(got, "The text of the command") {
			t.Errorf("a path became a command: %s", got)
		}
	})
	t.Run("part13/5 skills are offered by description, read when needed, and their scripts run in the sandbox", func(t *testing.T) {
		skip.Unless(t, "SANDBOX", sandbox.Available() == nil, "there is no sandbox")
		w := newWorld(t, "ask")
		var dir string
		w.model.Think(func(c fakemodel.Chat) fakemodel.Step {
			last := string(c.Messages[len(c.Messages)-1].Content)
			switch _, at, found := strings.Cut(last, "Base directory of this skill: "); {
			case found && dir == "":
				dir, _, _ = strings.Cut(at, "\n")
				return step(uses("skill", map[string]string{"name": "pdf-skills:pdf-forms", "file": "reference.md"}))
			case strings.Contains(last, "surname") && !strings.Contains(last, "fields of"):
				return step(shell("sh " + dir + "/scripts/fields.sh tax.pdf"))
			case strings.Contains(last, "fields of"):
				return step(says("Done."))
			}
			return step(uses("skill", map[string]string{"name": "pdf-skills:pdf-forms"}))
		})
		w.claudePlugin("pdf-skills")
		d := w.serve()
		defer d.stop()
		out := w.lash("run", "--sandbox", "workspace", "--json", "fill in the form")
		all := w.bodies()
		contains(t, all[0], "- pdf-skills:pdf-forms: Fill in PDF forms. Use when: the user asks to fill in or read a form.")
		contains(t, all[1], "Run `sh "+dir+"/scripts/fields.sh FILE`")
		contains(t, all[len(all)-1], "fields of tax.pdf: surname, town")
		contains(t, out, "Done.")
	})
}
