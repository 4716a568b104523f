package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
	"lashd/test/wait"
)

func TestRunQueuedBehindATurn(t *testing.T) {
	p := newPlace(t)
	id := p.session()
	first, out, _ := p.start("run", "--session", id, "story")
	if _, err := io.ReadFull(out, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	r := p.want(0, "", "[queued: another turn is running]\n", "run", "--session", id, "hi")
	if r.out != "hello\n" {
		t.Errorf("the answer is %q, want only the turn's own", r.out)
	}
	io.Copy(io.Discard, out)
	if code := exitCode(t, first.Wait()); code != 0 {
		t.Errorf("the first turn has exit code %d", code)
	}
}

func TestRunQueuedBehindADecision(t *testing.T) {
	p := newPlace(t)
	id := p.session()
	p.want(0, "", "", "call", "session/configure", `{"sessionId":"`+id+`","approval":{"sandbox":"fullAccess"}}`)
	p.want(0, "", "", "call", "turn/start", `{"idempotencyKey":"touch","sessionId":"`+id+`","input":[{"type":"text","text":"touch it"}]}`)
	wait.Until(t, "it asks", func() bool { return strings.Contains(p.run("session").out, "waiting for you") })
	cmd := p.command("run", "--session", id, "hi")
	errs, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(errs).ReadString('\n'); line != "[queued: the session is waiting for an answer]\n" {
		t.Errorf("stderr is %q, %v", line, err)
	}
	cmd.Process.Signal(os.Interrupt)
	io.Copy(io.Discard, errs)
	if code := exitCode(t, cmd.Wait()); code != console.ExitCancelled {
		t.Errorf("exit code %d after Ctrl-C, want %d", code, console.ExitCancelled)
	}
}

func TestOversizedInputs(t *testing.T) {
	p := newPlace(t)
	for _, test := range []struct {
		code int
		err  string
		size int
		args []string
	}{
		{console.ExitUsage, "the prompt has 5242880 bytes, the limit is 4194304; put the text in a file", 5 << 20, []string{"run", "-"}},
		{console.ExitUsage, "the prompt has 9437184 bytes, the limit is 4194304; put the text in a file", 9 << 20, []string{"run", "-"}},
		{console.ExitFailed, "the params of ping have 9437192 bytes, but a message has at most 8388608", 9 << 20, []string{"call", "ping", "-"}},
	} {
		text := strings.Repeat("x", test.size)
		if test.args[0] == "call" {
			text = `{"a":"` + text + `"}`
		}
		cmd, errs := p.command(test.args...), new(strings.Builder)
		cmd.Stdin, cmd.Stderr = strings.NewReader(text), errs
		code := exitCode(t, cmd.Run())
		if code != test.code || !strings.Contains(errs.String(), test.err) || strings.Contains(errs.String(), "connection to the daemon lost") {
			t.Errorf("lashd %v with %d bytes: exit code %d, stderr %.300q; want %d, %q", test.args, test.size, code, errs, test.code, test.err)
		}
	}
	if r := p.want(0, "", "", "session", "--json"); r.out != "[]\n" {
		t.Errorf("rejected prompts created sessions: %s", r.out)
	}
}

func TestPromptFromStdin(t *testing.T) {
	p := newPlace(t)
	for _, test := range []struct {
		name   string
		args   []string
		prompt string
	}{
		{"without words, stdin is the prompt", []string{"run"}, "of stdin"},
		{"so it is with -", []string{"run", "-"}, "of stdin"},
		{"with - after words, stdin follows them", []string{"run", "review", "this", "-"}, "review this\\n\\nof stdin"},
		{"words alone are the prompt", []string{"run", "review", "this"}, "review this"},
	} {
		t.Run("issue/21-3 "+test.name, func(t *testing.T) {
			cmd := p.command(test.args...)
			cmd.Stdin = strings.NewReader("of stdin")
			if out, err := cmd.Output(); err != nil || string(out) != "hello\n" {
				t.Fatalf("%q, %v", out, err)
			}
			p.want(0, `"text":"`+test.prompt+`"`, "", "session", "show", "--json")
		})
	}
	t.Run("issue/21-5 an empty prompt is a usage error", func(t *testing.T) {
		p.want(console.ExitUsage, "", "the prompt is empty", "run")
	})
}

func TestManualPage(t *testing.T) {
	p := newPlace(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "man"), []byte("#!/bin/sh\ncat \"$1\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := p.environ
	p.environ = append(p.environ, "PATH="+dir+":"+programs+":"+os.Getenv("PATH"))
	t.Run("issue/21-3 lash man shows the page of a command", func(t *testing.T) {
		p.want(0, "lash", "", "man")
		p.want(0, "Copy a session, up to a turn", "", "man", "session")
		p.want(console.ExitUsage, "", "there is no command nothing", "man", "nothing")
	})
	t.Run("issue/21-5 without the program man, lash man names the help", func(t *testing.T) {
		p.environ = append(before, "PATH="+programs)
		p.want(console.ExitFailed, "", "the program man is not installed; the same text: lash session --help", "man", "session")
	})
}

func TestDenialsOfPlugins(t *testing.T) {
	for _, test := range []struct{ name, hook, err string }{
		{"with a reason", `"command":"echo 'no commands are left' >&2; exit 2"`, "no commands are left"},
		{"no answer in time", `"command":"sleep 60","timeout":1,"onError":"deny"`, "a plugin denied a call of the tool shell"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPlace(t)
			p.plugin("guard", map[string]string{
				"plugin.json":      `{"name":"guard"}`,
				"hooks/hooks.json": `{"hooks":{"PreToolUse":[{"hooks":[{"type":"command",` + test.hook + `}]}]}}`,
			})
			p.want(console.ExitDenied, "tried\n", test.err, "run", "--allow", "touch it")
		})
	}
}

// plugin writes a plugin of the user.
func (p *place) plugin(name string, files map[string]string) {
	p.t.Helper()
	for file, text := range files {
		path := filepath.Join(filepath.Dir(p.home), "user", ".config", "lashd", "plugins", name, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			p.t.Fatal(err)
		}
	}
}
