package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// shellWords splits a command of the page, which quotes words only with '.
func shellWords(command string) (words []string) {
	for _, m := range regexp.MustCompile(`'([^']*)'|(\S+)`).FindAllStringSubmatch(command, -1) {
		words = append(words, m[1]+m[2])
	}
	return words
}

// TestPermissionsPage runs the commands of docs/permissions.md about rules, in order, and compares what they print with the comments
// behind them.
func TestPermissionsPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	tried := 0
	for _, m := range regexp.MustCompile(`(?m)^    lash (rules [^#\n]*)(?:# (.*))?$`).FindAllStringSubmatch(string(page), -1) {
		command, want := strings.TrimSpace(m[1]), m[2]
		t.Run("issue/20-3 this command works: lash "+command, func(t *testing.T) {
			r := p.run(shellWords(command)...)
			if r.code != 0 {
				t.Fatalf("%+v", r)
			}
			out := r.out
			decision, reason, _ := strings.Cut(want, ": ")
			if want != "" && !(strings.Contains(out, "Decision:  "+decision+"\n") && strings.Contains(out, "Reason:    "+reason+"\n")) {
				t.Errorf("it prints\n%s\nwant %s", out, want)
			}
			if want != "" {
				tried++
			}
			if line := "Command:   git push\n"; strings.Contains(command, "&&") != strings.Contains(out, line) {
				t.Errorf("it prints\n%s\nwant of several commands %s", out, line)
			}
		})
	}
	if tried < 5 {
		t.Errorf("%d examples of lash rules test", tried)
	}
}

func TestRulesInFiles(t *testing.T) {
	p := newPlace(t)
	test := func(t *testing.T, want string, command ...string) {
		t.Helper()
		if r := p.run(append([]string{"rules", "test"}, command...)...); !strings.Contains(r.out, want) {
			t.Errorf("%q: %+v, want %q", command, r, want)
		}
	}
	const before = "script = \"script.json\" # mine\n\n# about rules\n[[rules]]\naction = \"deny\"\ncommand = \"git push\"\n# about undo\n[undo]\nbudget_mib = 9\n"
	t.Run("issue/20-3 rules of config.toml apply at once, and a rule is added and removed without a loss", func(t *testing.T) {
		test(t, "Decision:  a", "git push") // allow or ask
		p.write("config.toml", before)
		test(t, "Reason:    The rule `deny command git push` of the user decides.\n", "git push")
		p.want(0, "added: ask path it's", "", "rules", "add", "--user", "ask", "path", "it's")
		text, err := os.ReadFile(p.home + "/config.toml")
		if want := before + "\n[[rules]]\naction = 'ask'\npath = \"it's\"\n"; err != nil || string(text) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, text, want)
		}
		p.want(0, "removed: deny command git push", "", "rules", "remove", "deny", "command", "git", "push")
		text, err = os.ReadFile(p.home + "/config.toml")
		want := "script = \"script.json\" # mine\n\n# about rules\n# about undo\n[undo]\nbudget_mib = 9\n\n[[rules]]\naction = 'ask'\npath = \"it's\"\n"
		if err != nil || string(text) != want {
			t.Errorf("%v\n%s\nwant\n%s", err, text, want)
		}
		test(t, "Decision:  a", "git push")
	})
	t.Run("issue/20-3 of a line with several commands, each that decides is named with its rule", func(t *testing.T) {
		for _, words := range []string{"allow command one", "allow command two", "deny command three", "deny command four"} {
			p.want(0, "added", "", append([]string{"rules", "add"}, strings.Fields(words)...)...)
		}
		test(t, "Decision:  a", "one a && two") // allow or ask
		const denied = "Reason:    The rule `deny command three` of the workspace decides.\nRule:      deny command three (workspace)\n" +
			"Command:   three\nCommand:   four (The rule `deny command four` of the workspace decides.)\n"
		test(t, denied, "one; three; four")
	})
	t.Run("issue/20-3 an error in config.toml keeps the rules, and the list says so", func(t *testing.T) {
		p.write("config.toml", before)
		test(t, "Decision:  deny", "git push")
		p.write("config.toml", "no\n")
		test(t, "Decision:  deny", "git push")
		if r := p.run("rules", "list"); !strings.Contains(r.err, "The rules from before the error apply.") {
			t.Errorf("%+v", r)
		}
		p.want(1, "", "was not changed", "rules", "add", "--user", "deny", "command", "x")
		p.write("config.toml", before)
	})
	t.Run("issue/20-3 the file of a workspace only tightens", func(t *testing.T) {
		if err := os.MkdirAll(p.work+"/.agents", 0o700); err != nil {
			t.Fatal(err)
		}
		write := func(text string) {
			if err := os.WriteFile(p.work+"/.agents/rules.toml", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write("[[rules]]\naction = 'allow'\ncommand = 'ls'\n[[rules]]\naction = 'deny'\nhost = 'example.com'\n")
		test(t, "Decision:  ask\nReason:    The rule `ask command ls` of the file .agents/rules.toml decides.\n", "ls")
		test(t, "Decision:  deny\nReason:    The rule `deny host example.com` of the file .agents/rules.toml decides.\n", "ls", "--host", "example.com")
		if r := p.run("rules", "list"); !strings.Contains(r.err, "is treated as ask") {
			t.Errorf("%+v", r)
		}
		write("[[rules\n")
		test(t, "Decision:  ask\nReason:    The rule `ask tool *` of the file .agents/rules.toml, which has an error, decides.\n", "true")
		if r := p.run("rules", "list"); !strings.Contains(r.err, "line 1 is not valid") {
			t.Errorf("%+v", r)
		}
	})
}
