package cli

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/test/wait"
)

func TestBrowserCommand(t *testing.T) {
	for _, c := range []struct {
		system string
		set    []string
		want   string
	}{
		{"linux", []string{"DISPLAY", "BROWSER=firefox"}, "firefox URL"},
		{"linux", []string{"SSH_TTY", "BROWSER=/opt/helper --open=%s x"}, "/opt/helper --open=URL x"}, // such as that of VS Code on a remote machine
		{"linux", []string{"DISPLAY", "BROWSER=/usr/bin/w3m: :firefox -new:chromium"}, "firefox -new URL"},
		{"linux", []string{"DISPLAY", "BROWSER=lynx"}, "xdg-open URL"},
		{"linux", []string{"BROWSER=lynx"}, ""},
		{"linux", []string{"DISPLAY"}, "xdg-open URL"},
		{"freebsd", []string{"WAYLAND_DISPLAY"}, "xdg-open URL"},
		{"linux", nil, ""},
		{"linux", []string{"SSH_CONNECTION"}, ""},
		{"linux", []string{"SSH_CONNECTION", "DISPLAY"}, "xdg-open URL"}, // forwarded to the person
		{"darwin", nil, "open URL"},
		{"darwin", []string{"SSH_TTY"}, ""},
		{"darwin", []string{"SSH_TTY", "DISPLAY"}, ""},
		{"windows", nil, "rundll32 url.dll,FileProtocolHandler URL"},
		{"windows", []string{"SSH_CLIENT"}, ""},
	} {
		got := browserCommand(c.system, func(name string) string {
			for _, set := range c.set {
				if own, value, ok := strings.Cut(set, "="); own == name {
					return cmp.Or(value, map[bool]string{false: "x"}[ok])
				}
			}
			return ""
		}, "URL")
		if strings.Join(got, " ") != c.want {
			t.Errorf("part13/6 on %s with %v the command is %q, want %q", c.system, c.set, got, c.want)
		}
	}
}

func TestMCPLoginOpensTheBrowser(t *testing.T) {
	browser := "#!/bin/sh\nprintf '%s\\n' \"$@\" >> \"$HOME/opened\"\n"
	for _, c := range []struct {
		name    string
		args    []string
		environ []string
		browser string
		foreign bool
		opens   bool
		says    string
		saysNot string
	}{
		{name: "on a desktop", environ: []string{"DISPLAY=:7"}, browser: browser, opens: true, says: "\n\nYour browser opens it now.\n"},
		{name: "with --no-browser", args: []string{"--no-browser"}, environ: []string{"DISPLAY=:7"}, browser: browser, saysNot: "rowser opens it now"},
		{name: "over SSH without a display", environ: []string{"SSH_CONNECTION=a 1 b 2"}, browser: browser, saysNot: "rowser opens it now"},
		{name: "with servers that need a look", environ: []string{"DISPLAY=:7"}, browser: browser, foreign: true, says: "Warning: ", saysNot: "rowser opens it now"},
		{name: "without xdg-open", environ: []string{"DISPLAY=:7"}, says: "lash could not open your browser ("},
	} {
		t.Run("part13/6 lash mcp login and the browser: "+c.name, func(t *testing.T) {
			g := newGuarded(t)
			if c.foreign {
				second := httptest.NewServer(g.Config.Handler)
				defer second.Close()
				g.issuer = second.URL
			}
			p := loginPlace(t, g)
			dir := t.TempDir()
			p.environ = append(p.environ, append(c.environ, "PATH="+dir)...)
			if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(c.browser), 0o700); err != nil || c.browser == "" && os.Remove(filepath.Join(dir, "xdg-open")) != nil {
				t.Fatal(err)
			}
			opened := filepath.Join(filepath.Dir(p.home), "user", "opened")
			address := ""
			r := p.mcpLogin(func(at string) string {
				if address = at; c.opens {
					wait.Until(t, "the browser opens", func() bool { _, err := os.Stat(opened); return err == nil })
				}
				if resp, err := http.Get(p.redirected(at)); err == nil {
					resp.Body.Close()
				}
				return ""
			}, append(c.args, "docs")...)
			got, _ := os.ReadFile(opened)
			if want := address + "\n"; (string(got) == want) != c.opens || len(got) > 0 && !c.opens || r.code != 0 {
				t.Errorf("the browser opened %q; the login %+v", got, r)
			}
			if !strings.Contains(r.err, c.says) || c.saysNot != "" && strings.Contains(r.err, c.saysNot) || strings.Index(r.err, "Login page:") > strings.Index(r.err, address) {
				t.Errorf("it says\n%s\nwant %q and not %q", r.err, c.says, c.saysNot)
			}
		})
	}
}

func TestMCPLoginWithABrowserThatFails(t *testing.T) {
	t.Run("part13/6 lash mcp login says on a terminal that the browser did not open, and waits", func(t *testing.T) {
		p := loginPlace(t, newGuarded(t))
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\nexit 3\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		p.environ = append(p.environ, "DISPLAY=:7", "PATH="+dir)
		if code := newPTY(t).run(p, "Your browser did not open (xdg-open: exit status 3)", "\x03", "mcp", "login", "docs"); code == 0 {
			t.Error("the login succeeded")
		}
	})
}

func TestLoginOpensTheBrowser(t *testing.T) {
	for _, c := range []struct {
		name    string
		args    []string
		environ []string
		script  string
		opens   bool
		says    string
		saysNot string
	}{
		{name: "on a desktop", environ: []string{"DISPLAY=:7"}, script: "printf '%s\\n' \"$@\" >> \"$HOME/opened\"", opens: true, says: "\n\nYour browser opens it now.\nThe browser then opens a page at "},
		{name: "of the variable BROWSER, over SSH", environ: []string{"SSH_TTY=x", "BROWSER=true:none"}, says: "Your browser opens it now."},
		{name: "with --no-browser", args: []string{"--no-browser"}, environ: []string{"DISPLAY=:7"}, script: "echo >> \"$HOME/opened\"", saysNot: "rowser opens it now"},
		{name: "without a desktop", script: "echo >> \"$HOME/opened\"", saysNot: "rowser opens it now"},
		{name: "without xdg-open", environ: []string{"DISPLAY=:7"}, says: "lash could not open your browser ("},
	} {
		t.Run("part13/6 lash login chatgpt and the browser: "+c.name, func(t *testing.T) {
			p, _ := newAccountPlace(t, nil)
			dir := t.TempDir()
			p.environ = append(p.environ, append(c.environ, "PATH="+dir+":/bin:/usr/bin", "LASHD_KEYRING=off")...)
			if strings.Contains(c.name, "xdg-open") {
				p.environ = append(p.environ, "PATH="+dir)
			} else if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			opened := filepath.Join(filepath.Dir(p.home), "user", "opened")
			r := p.browserLogin(func(address string) string {
				if c.opens {
					wait.Until(t, "the browser opens", func() bool { _, err := os.Stat(opened); return err == nil })
				}
				return address
			}, c.args...)
			got, _ := os.ReadFile(opened)
			if want := pageToOpen.FindString(r.err) + "\n"; (string(got) == want) != c.opens || len(got) > 0 && !c.opens || r.code != 0 {
				t.Errorf("the browser opened %q; the login %+v", got, r)
			}
			if !strings.Contains(r.err, c.says) || c.saysNot != "" && strings.Contains(r.err, c.saysNot) {
				t.Errorf("it says\n%s\nwant %q and not %q", r.err, c.says, c.saysNot)
			}
		})
	}
	t.Run("part13/6 lash login chatgpt says on a terminal that the browser did not open, and waits", func(t *testing.T) {
		p, _ := newAccountPlace(t, nil)
		p.environ = append(p.environ, "BROWSER=/bin/false")
		if code := newPTY(t).run(p, "Your browser did not open (/bin/false: exit status 1). Open the address above yourself.", "\x03", "login", "chatgpt"); code == 0 {
			t.Error("the login succeeded")
		}
	})
}
