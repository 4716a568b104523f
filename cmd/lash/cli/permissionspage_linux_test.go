package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"lashd/cmd/internal/console"
	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
	"lashd/test/skip"
	"lashd/test/wait"
)

// permissionsPage returns docs/permissions.md.
func permissionsPage(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// newSandboxedPlace is a place whose scripted model makes the call of a tool that a prompt names: a JSON object per prompt.
func newSandboxedPlace(t *testing.T, calls map[string]string) *place {
	t.Helper()
	err := sandbox.Available()
	skip.Unless(t, "NAMESPACES", err == nil, fmt.Sprint(err))
	p := newPlace(t)
	var turns []string
	for prompt, call := range calls {
		turns = append(turns, fmt.Sprintf(`{"match": {"lastUserContains": %q}, "replies": [{"toolCalls": [%s]}, {"text": "done"}]}`, prompt, call))
	}
	p.write("script.json", `{"turns": [`+strings.Join(turns, ",")+`], "otherwise": {"replies": [{"text": "hello"}]}}`)
	return p
}

// made reports whether a file exists, and removes it.
func made(t *testing.T, path string) bool {
	t.Helper()
	err := os.Remove(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// newestMode returns the sandbox mode of the newest session.
func (p *place) newestMode() protocol.SandboxMode {
	p.t.Helper()
	var all []protocol.Session
	if r := p.run("session", "--json"); json.Unmarshal([]byte(r.out), &all) != nil || len(all) == 0 {
		p.t.Fatalf("%+v", r)
	}
	return all[0].Config.Approval.Sandbox
}

// TestPermissionsPageModes tries each sentence of the table of modes.
func TestPermissionsPageModes(t *testing.T) {
	p := newSandboxedPlace(t, map[string]string{
		"temporary":  `{"name": "shell", "args": {"command": "echo x > /tmp/permissions-page"}}`,
		"in the dir": `{"name": "shell", "args": {"command": "echo x > made"}}`,
		"elsewhere":  `{"name": "shell", "args": {"command": "echo x > ../made"}}`,
		"a file":     `{"name": "write", "args": {"path": "made", "content": "x"}}`,
	})
	inside, above := filepath.Join(p.work, "made"), filepath.Join(filepath.Dir(p.work), "made")
	run := func(t *testing.T, mode, prompt string, code int, file string, want bool, flags ...string) {
		t.Helper()
		p.want(code, "done\n", "", append([]string{"run", "--sandbox", mode}, append(flags, prompt)...)...)
		if got := made(t, file); got != want {
			t.Errorf("after %q, %s exists: %v", prompt, file, got)
		}
	}
	sentences := map[string]func(t *testing.T, mode string){
		"run in a sandbox without a question": func(t *testing.T, mode string) {
			run(t, mode, "temporary", 0, "/tmp/permissions-page", false)
		},
		"They change nothing but temporary files": func(t *testing.T, mode string) { run(t, mode, "in the dir", 0, inside, false) },
		"They also change the workspace": func(t *testing.T, mode string) {
			run(t, mode, "in the dir", 0, inside, true)
			run(t, mode, "elsewhere", 0, above, false)
		},
		"run outside a sandbox, and lashd asks first (approvals)": func(t *testing.T, mode string) {
			run(t, mode, "elsewhere", console.ExitDenied, above, false)
			run(t, mode, "elsewhere", 0, above, true, "--allow")
		},
		"ask before they change a file": func(t *testing.T, mode string) {
			run(t, mode, "a file", console.ExitDenied, inside, false)
			run(t, mode, "a file", 0, inside, true, "--allow")
		},
		"change files of the workspace without a question": func(t *testing.T, mode string) { run(t, mode, "a file", 0, inside, true) },
	}
	rows := regexp.MustCompile("(?m)^\\| `(readOnly|workspace|fullAccess)` \\| (.*) \\| (.*) \\|$").FindAllStringSubmatch(permissionsPage(t), -1)
	if len(rows) != 3 {
		t.Fatalf("the page has the modes %q, want 3", rows)
	}
	links := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	for _, row := range rows {
		for sentence := range strings.SplitSeq(links.ReplaceAllString(row[2]+". "+row[3], "$1"), ". ") {
			t.Run("issue/20-1 in the mode "+row[1]+" this is true: "+sentence, func(t *testing.T) {
				if sentences[sentence] == nil {
					t.Fatal("the page has a sentence that no test tries")
				}
				sentences[sentence](t, row[1])
			})
		}
	}
}

// pageExamples are the examples of docs/permissions.md that are not commands, with what each must do when it is in config.toml.
var pageExamples = map[string]func(t *testing.T, p *place){
	`sandbox = "readOnly"`: func(t *testing.T, p *place) {
		p.want(0, "hello", "", "run", "hi")
		if got := p.newestMode(); got != protocol.SandboxReadOnly {
			t.Errorf("a new session has the mode %q", got)
		}
	},
	"[[rules]]\naction = \"deny\"\ncommand = \"terraform apply\"": func(t *testing.T, p *place) {
		p.want(0, "Reason:    The rule `deny command terraform apply` of the user decides.\n", "", "rules", "test", "terraform apply -auto-approve")
		p.want(0, "Decision:  allow\n", "", "rules", "test", "terraform plan")
	},
	"[[rules]]\nhost = \"registry.npmjs.org\"\naction = \"allow\"": func(t *testing.T, p *place) {
		p.want(0, "done\n", "", "run", "install")
		p.want(0, "Decision:  ask\n", "", "rules", "test", "--host", "example.com", "npm ci")
	},
	`sandbox_env = ["NPM_TOKEN"]`: func(t *testing.T, p *place) {
		p.want(0, "done\n", "", "run", "token")
		if got := readAll(t, filepath.Join(p.work, "token")); got != "sesame" {
			t.Errorf("with the setting, a command gets the variable %q", got)
		}
	},
}

// readAll returns the text of a file.
func readAll(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// settingsIn returns the indented and fenced blocks of a page that are neither commands nor sentences about refusals.
func settingsIn(page string) (blocks []string) {
	for _, block := range regexp.MustCompile("(?m)(?:^    .*\n)+|^```toml\n((?s:.*?))```\n").FindAllStringSubmatch(page, -1) {
		text := block[1]
		if text == "" {
			text = strings.ReplaceAll("\n"+block[0], "\n    ", "\n")
		}
		if text = strings.TrimSpace(text); !strings.HasPrefix(text, "it cannot ") && !strings.HasPrefix(text, "lash ") {
			blocks = append(blocks, text)
		}
	}
	return append(blocks, regexp.MustCompile(`sandbox_env = [^\x60]*`).FindAllString(page, -1)...)
}

// TestPermissionsPageRefusals has commands fail whose results have the sentences of the page.
func TestPermissionsPageRefusals(t *testing.T) {
	p := newSandboxedPlace(t, map[string]string{
		"hosts": `{"name": "shell", "args": {"command": "echo x >> /etc/hosts"}}`,
		"out":   `{"name": "shell", "args": {"command": "echo x > ./out"}}`,
	})
	sentences := regexp.MustCompile("(?m)^    it cannot .*$").FindAllString(permissionsPage(t), -1)
	if len(sentences) != 2 {
		t.Fatalf("the page has the sentences %q, the test knows 2", sentences)
	}
	for i, start := range [][]string{{"run", "hosts"}, {"run", "--sandbox", "readOnly", "out"}} {
		t.Run("issue/20-2 a command fails with this: "+strings.TrimSpace(sentences[i]), func(t *testing.T) {
			p.want(0, "done\n", strings.TrimSpace(sentences[i]), start...)
		})
	}
}

// TestPermissionsPageSettings writes each setting of the page to config.toml, and each rule also to the file of a workspace.
func TestPermissionsPageSettings(t *testing.T) {
	p := newSandboxedPlace(t, map[string]string{
		"install": `{"name": "shell", "args": {"command": "true", "hosts": ["registry.npmjs.org"]}}`,
		"token":   `{"name": "shell", "args": {"command": "printf %s \"${NPM_TOKEN-none}\" > token"}}`,
	})
	p.environ = append(p.environ, "NPM_TOKEN=sesame")
	page := permissionsPage(t)
	config := readAll(t, filepath.Join(p.home, "config.toml"))
	t.Run("issue/20-4 without the settings, a command has no token and lashd asks about a host", func(t *testing.T) {
		p.want(console.ExitDenied, "done\n", "", "run", "install")
		p.want(0, "done\n", "", "run", "token")
		if got := readAll(t, filepath.Join(p.work, "token")); got != "none" {
			t.Errorf("a command gets the variable %q", got)
		}
		if !strings.Contains(page, "argument `hosts`, such as `[\"registry.npmjs.org\"]`.") {
			t.Error("the page names another argument than the test")
		}
	})
	found := settingsIn(page)
	if len(found) != len(pageExamples) {
		t.Errorf("the page has %d settings, the test knows %d: %q", len(found), len(pageExamples), found)
	}
	for _, text := range found {
		t.Run("issue/20-1 this setting works: "+text, func(t *testing.T) {
			if pageExamples[text] == nil {
				t.Fatal("the page has a setting that no test tries")
			}
			p.stop()
			p.write("config.toml", config+text+"\n")
			pageExamples[text](t, p)
		})
	}
	p.write("config.toml", config)
	t.Run("issue/20-3 the rule of the page works in .agents/rules.toml, too", func(t *testing.T) {
		_, rule, _ := strings.Cut(page, "```toml\n")
		rule, _, _ = strings.Cut(rule, "```")
		if err := errors.Join(os.MkdirAll(p.work+"/.agents", 0o700), os.WriteFile(p.work+"/.agents/rules.toml", []byte(rule), 0o600)); err != nil {
			t.Fatal(err)
		}
		p.want(0, "The rule `deny command terraform apply` of the file .agents/rules.toml decides.", "", "rules", "test", "terraform apply")
	})
}

// TestPermissionsPageStarts runs the commands of the page that start a session in a mode.
func TestPermissionsPageStarts(t *testing.T) {
	p := newSandboxedPlace(t, map[string]string{"install the dependencies": `{"name": "shell", "args": {"command": "true"}}`})
	c, tried := newPTY(t), 0
	for _, m := range pageCommand.FindAllStringSubmatch(permissionsPage(t), -1) {
		words := shellWords(m[1])
		if words[0] == "rules" || words[0] == "audit" {
			continue
		}
		tried++
		t.Run("issue/20-1 this command works: lash "+m[1], func(t *testing.T) {
			switch m[1] {
			case "run --sandbox fullAccess 'install the dependencies'":
				p.want(console.ExitDenied, "done\n", "", words...)
				if got := p.newestMode(); got != protocol.SandboxFullAccess {
					t.Errorf("the session has the mode %q", got)
				}
			case "chat --sandbox readOnly":
				modes := c.chats(p, words, "/sandbox workspace", "Sandbox of commands: workspace")
				if want := []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspace}; !slices.Equal(modes, want) {
					t.Errorf("the session has the modes %q, want %q", modes, want)
				}
			default:
				t.Fatal("the page has a command that no test runs")
			}
		})
	}
	if tried != 2 {
		t.Errorf("the page has %d such commands, want 2", tried)
	}
}

// chats runs a chat on the terminal, enters a line and waits for its answer. It returns the modes of the session before and after.
func (c *pty) chats(p *place, words []string, line, answer string) (modes []protocol.SandboxMode) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(c.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan int)
	go func() { ended <- c.run(p, "", "", words...) }()
	wait.Until(p.t, "the chat starts", func() bool { return c.shows("idle") })
	modes = append(modes, p.newestMode())
	c.WriteString(line)
	wait.Until(p.t, "it shows the line", func() bool { return c.shows(line) })
	c.WriteString("\r")
	wait.Until(p.t, "it answers", func() bool { return c.shows(answer) })
	modes = append(modes, p.newestMode())
	c.WriteString("\x04")
	if code := <-ended; code != 0 {
		p.t.Errorf("the chat exits with %d", code)
	}
	return modes
}

// TestPermissionsPageHosts tries the patterns of hosts of the page.
func TestPermissionsPageHosts(t *testing.T) {
	type outcome struct{ allowed, denied map[string]string } // by host: the decision with a rule that allows, and with one that denies
	want := map[string]outcome{
		"example.com": {
			map[string]string{"example.com": "allow", "www.example.com": "ask", "example.com:8080": "ask", "example.com:443": "allow", "example.com:80": "allow"},
			map[string]string{"example.com": "deny", "www.example.com": "ask", "example.com:8080": "deny"},
		},
		"*.example.com": {
			map[string]string{"www.example.com": "allow", "a.b.example.com": "allow", "example.com": "ask", "notexample.com": "ask"},
			map[string]string{"www.example.com": "deny", "example.com": "ask"},
		},
		"*":                {map[string]string{"example.com": "allow", "192.168.1.7": "ask", "[2001:db8::7]": "ask"}, map[string]string{"example.com": "deny", "192.168.1.7": "deny"}},
		"192.168.1.7":      {map[string]string{"192.168.1.7": "allow", "192.168.1.8": "ask"}, map[string]string{"192.168.1.7": "deny"}},
		"[2001:db8::7]":    {map[string]string{"[2001:db8::7]": "allow", "[2001:db8::8]": "ask"}, map[string]string{"[2001:db8::7]": "deny"}},
		"example.com:8080": {map[string]string{"example.com:8080": "allow", "example.com": "ask", "example.com:443": "ask"}, map[string]string{"example.com:8080": "deny", "example.com:443": "ask"}},
	}
	p := newSandboxedPlace(t, nil)
	_, table, _ := strings.Cut(permissionsPage(t), "| Pattern | Hosts |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	tried := 0
	for row := range strings.SplitSeq(table, "\n") {
		patterns, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(patterns, -1) {
			tried++
			t.Run("issue/20-4 the pattern "+m[1]+" of the page covers these hosts", func(t *testing.T) {
				p.tryHosts(t, "allow", m[1], want[m[1]].allowed)
				p.tryHosts(t, "deny", m[1], want[m[1]].denied)
			})
		}
	}
	if tried != len(want) {
		t.Errorf("the page has %d patterns, the test %d", tried, len(want))
	}
}

// tryHosts adds a rule about hosts, asks lashd what it decides about commands with hosts, and removes the rule.
func (p *place) tryHosts(t *testing.T, action, pattern string, want map[string]string) {
	t.Helper()
	if len(want) == 0 {
		t.Error("the page has a pattern that no test tries")
	}
	p.want(0, "added", "", "rules", "add", action, "host", pattern)
	for host, decision := range want {
		if r := p.run("rules", "test", "--host", host, "true"); !strings.HasPrefix(r.out, "Decision:  "+decision+"\n") {
			t.Errorf("with the rule %s host %s, it says of %s %+v, want %s", action, pattern, host, r, decision)
		}
	}
	p.want(0, "removed", "", "rules", "remove", action, "host", pattern)
}
