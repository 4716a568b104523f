package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"lashd/cmd/internal/console"
	"lashd/test/wait"
)

// flags returns the local flags of a terminal.
func (c *pty) flags(t *testing.T) uint32 {
	t.Helper()
	termios, err := unix.IoctlGetTermios(int(c.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return termios.Lflag
}

// held returns what keys.json of the place holds; "" if there is none.
func (p *place) held() string {
	data, err := os.ReadFile(filepath.Join(p.home, "keys.json"))
	if err != nil && !os.IsNotExist(err) {
		p.t.Fatal(err)
	}
	return string(data)
}

func TestLoginOnATerminal(t *testing.T) {
	base := keyedServer(t)
	for name, typed := range map[string]string{
		"with Enter":                      secretKey + "\r",
		"with a line end of Windows":      secretKey + "\r\n",
		"with spaces around it":           "  " + secretKey + " \r",
		"with quotes":                     `"` + secretKey + "\"\r",
		"with the name of its variable":   "export ANTHROPIC_API_KEY='" + secretKey + "'\r",
		"after a correction":              "wrong\x15kez\x7fy-" + strings.TrimPrefix(secretKey, "key-") + "\r",
		"after Ctrl-D in the middle":      secretKey[:4] + "\x04" + secretKey[4:] + "\r",
		"of a person who presses too far": secretKey + "\r\r",
	} {
		t.Run("part9/keys login stores a key that a person pastes "+name+", and shows nothing of it", func(t *testing.T) {
			p, c := newUser(t, base, ""), newPTY(t)
			before := c.flags(t)
			if code := c.run(p, "API key of Anthropic: ", typed, "login", "anthropic"); code != 0 {
				t.Errorf("exit code %d", code)
			}
			wait.Until(t, "it says so", func() bool { return c.shows("stored the key of Anthropic in") })
			if !strings.Contains(p.held(), `"key": "`+secretKey+`"`) {
				t.Errorf("keys.json: %s", p.held())
			}
			if c.shows(secretKey) || c.shows(secretKey[4:]) || c.shows("wrong") {
				t.Errorf("the terminal shows the key: %q", c.text())
			}
			if got := c.flags(t); got != before {
				t.Errorf("the terminal has the flags %#x, before %#x", got, before)
			}
		})
	}
	for name, test := range map[string]struct {
		typed string
		code  int
		says  string
	}{
		"Ctrl-C":                       {"half\x03", console.ExitCancelled, "cancelled"},
		"Ctrl-D":                       {"\x04", console.ExitFailed, "no key was entered"},
		"Enter without a key":          {"\r", console.ExitFailed, "no key was entered"},
		"two words":                    {"two words\r", console.ExitFailed, "it must be one line without spaces"},
		"a letter of another alphabet": {"key-\u0441-abcdef\r", console.ExitFailed, "character 5 of it is not on a keyboard"},
	} {
		t.Run("part9/keys login restores the terminal and stores nothing after "+name, func(t *testing.T) {
			p, c := newUser(t, base, ""), newPTY(t)
			before := c.flags(t)
			if code := c.run(p, "API key of Anthropic: ", test.typed, "login", "anthropic"); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			wait.Until(t, "it says so", func() bool { return c.shows(test.says) })
			if c.shows("half") || c.shows("two words") || p.held() != "" || c.flags(t) != before {
				t.Errorf("the terminal shows %q, keys.json is %q, flags %#x, before %#x", c.text(), p.held(), c.flags(t), before)
			}
		})
	}
	t.Run("part9/keys login lists the providers, and a number chooses one", func(t *testing.T) {
		p, c := newUser(t, base, ""), newPTY(t)
		go func() {
			wait.Until(t, "it asks for the key", func() bool { return c.shows("API key of Anthropic: ") })
			c.WriteString(secretKey + "\r")
		}()
		if code := c.run(p, "lists more): ", "1\n", "login"); code != 0 || !strings.Contains(p.held(), secretKey) {
			t.Errorf("exit code %d, %q", code, c.text())
		}
	})
}

func TestSignalDuringLogin(t *testing.T) {
	for name, asks := range map[string]struct {
		args []string
		text string
	}{
		"while it asks for the key":      {[]string{"login", "anthropic"}, "API key of Anthropic: "},
		"while it asks for the provider": {[]string{"login"}, "lists more): "},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
			t.Run(fmt.Sprintf("part9/keys one %s ends login %s, and the terminal is as before", signal, name), func(t *testing.T) {
				p, c := newUser(t, "http://127.0.0.1:1/v1", ""), newPTY(t)
				before := c.flags(t)
				cmd := p.command(asks.args...)
				cmd.Stdin, cmd.Stdout, cmd.Stderr = c.tty, c.tty, c.tty
				cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				wait.Until(t, "it asks", func() bool { return c.shows(asks.text) })
				cmd.Process.Signal(signal)
				if code := exitCode(t, cmd.Wait()); code != console.ExitCancelled || p.held() != "" || c.flags(t) != before {
					t.Errorf("exit code %d, keys.json %q, flags %#x, before %#x", code, p.held(), c.flags(t), before)
				}
			})
		}
	}
}

func TestLoginFromAPipe(t *testing.T) {
	base := keyedServer(t)
	for name, in := range map[string]string{"a line": secretKey + "\n", "no line end": secretKey, "a mark of Windows": "\ufeff" + secretKey + "\r\n"} {
		t.Run("part9/keys login reads a key from a pipe: "+name, func(t *testing.T) {
			p := newUser(t, base, "")
			if r := p.give(in, "login", "anthropic"); r.code != 0 || !strings.Contains(p.held(), `"key": "`+secretKey+`"`) || strings.Contains(r.out+r.err, secretKey) {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("part9/keys login without any input says that no key was entered", func(t *testing.T) {
		p := newUser(t, base, "")
		if r := p.give("", "login", "anthropic"); r.code != console.ExitFailed || !strings.Contains(r.err, "no key was entered") {
			t.Errorf("%+v", r)
		}
	})
	for key, reason := range map[string]string{
		"sk-ant-api03-hunter22": "that looks like a key of Anthropic, not of OpenAI; choose Anthropic to store it",
		"sk-or-v1-hunter22":     "that looks like a key of OpenRouter, not of OpenAI",
		"AIzaSy-hunter22":       "that looks like a key of Google Gemini, not of OpenAI",
	} {
		t.Run("part9/keys a key of another provider is refused before it is sent: "+reason, func(t *testing.T) {
			p := newUser(t, base, "")
			if r := p.give(key, "login", "openai"); r.code != console.ExitFailed || !strings.Contains(r.err, reason) || strings.Contains(r.err, "hunter22") || p.held() != "" {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("part9/keys a key in the place of the provider is not repeated", func(t *testing.T) {
		p := newUser(t, base, "")
		if r := p.give("", "login", "sk-ant-api03-hunter22"); r.code != console.ExitUsage || !strings.Contains(r.err, "that looks like an API key") || strings.Contains(r.err, "hunter22") {
			t.Errorf("%+v", r)
		}
	})
}
