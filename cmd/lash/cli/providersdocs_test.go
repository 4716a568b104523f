package cli

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/providers"
	"lashd/test/fakemodel"
)

// providersPages are patterns of the pages whose commands and files TestProvidersPages runs.
var providersPages = []string{"../../../docs/providers.md", "../../../docs/providers/*.md"}

var (
	pageCommand  = regexp.MustCompile(`(?m)^    lash ([^#\n]*)`)
	pageFile     = regexp.MustCompile("(?s)```toml\n(.*?)```")
	pageProvider = regexp.MustCompile(`(?m)^\[providers\.(\w+)\]\n`)
	pageAddress  = regexp.MustCompile(`(?m)^base_url = .*\n`)
)

// section is a section of a page. page is the file's name, such as "openai.md".
type section struct {
	page, title     string
	files, commands []string
}

// sections reads the pages.
func sections(t *testing.T) (all []section) {
	t.Helper()
	for _, pattern := range providersPages {
		found, err := filepath.Glob(filepath.FromSlash(pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		for _, page := range found {
			all = append(all, sectionsOf(t, page)...)
		}
	}
	return all
}

// sectionsOf reads a page.
func sectionsOf(t *testing.T, file string) (all []section) {
	t.Helper()
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(string(page), "\n## ") {
		s := section{page: filepath.Base(file), title: strings.SplitN(text, "\n", 2)[0]}
		for _, file := range pageFile.FindAllStringSubmatch(text, -1) {
			s.files = append(s.files, file[1])
		}
		if n := strings.Count(text, "```"); n != 2*len(s.files) {
			t.Errorf("%s, %s has %d fences and %d files; write commands as indented lines, so that this test runs them", s.page, s.title, n, len(s.files))
		}
		for _, command := range pageCommand.FindAllStringSubmatch(text, -1) {
			s.commands = append(s.commands, strings.TrimSpace(command[1]))
		}
		all = append(all, s)
	}
	return all
}

// anyKey serves a model of all APIs to requests that have secretKey in one of their headers, or to all if open is set.
func anyKey(t *testing.T, open bool) (root string) {
	t.Helper()
	model := fakemodel.New()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range r.Header {
			if open || strings.TrimPrefix(value[0], "Bearer ") == secretKey && name != "User-Agent" {
				model.ServeHTTP(w, r)
				return
			}
		}
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// addresses are the addresses on loopback of all providers, for the APIs that they speak.
func addresses(root string, login string) map[string]string {
	at := map[string]string{}
	for _, name := range providers.Presets() {
		preset, _ := providers.PresetOf(name)
		switch at[name] = root + "/v1"; {
		case preset.API == providers.Gemini:
			at[name] = root + "/v1beta"
		case preset.Login != "":
			at[name] = login + "/backend-api/codex"
		}
	}
	at["work"] = root + "/v1"
	return at
}

// moved returns a file of the page whose providers are at addresses on loopback. Providers that the file does not have are added.
func moved(file string, at map[string]string, issuer string) string {
	file = pageAddress.ReplaceAllString(file, "")
	for name, address := range at {
		head, lines := "[providers."+name+"]\n", "base_url = '"+address+"'\n"
		if name == "chatgpt" {
			lines += "login = '" + issuer + "'\n"
		}
		if strings.Contains(file, head) {
			file = strings.Replace(file, head, head+lines, 1)
		} else {
			file += head + lines
		}
	}
	return file
}

// newReader returns the place of a person who follows a section of the page, with a file of it in config.toml.
func newReader(t *testing.T, s section, file string) (*place, *fakemodel.Login) {
	t.Helper()
	login := &fakemodel.Login{Mark: accountMark}
	issuer, account := httptest.NewServer(login), httptest.NewServer(login.Guard(fakemodel.New()))
	t.Cleanup(issuer.Close)
	t.Cleanup(account.Close)
	p := newUser(t, "", "")
	p.write("config.toml", moved(file, addresses(anyKey(t, s.page == "local.md"), account.URL), issuer.URL))
	p.write("work.key", secretKey+"\n")
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "gcloud"), []byte("#!/bin/sh\n[ \"$*\" = 'auth print-access-token' ] && echo "+secretKey+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.environ = append(p.environ, "PATH="+strings.Join([]string{bin, programs, os.Getenv("PATH")}, string(os.PathListSeparator)))
	return p, login
}

// follow runs a command of the page as a person does who has a key, a browser and another device.
func (p *place) follow(command string, login *fakemodel.Login) result {
	p.t.Helper()
	if command == "login chatgpt" {
		return p.browserLogin(func(address string) string { return address })
	}
	login.Enter()
	return p.give(secretKey+"\n", strings.Fields(command)...)
}

func TestProvidersPages(t *testing.T) {
	files, commands, pages := 0, 0, map[string]bool{}
	for _, s := range sections(t) {
		files, commands = files+len(s.files), commands+len(s.commands)
		pages[s.page] = pages[s.page] || len(s.files)+len(s.commands) > 0
		if len(s.files) == 0 {
			s.files = []string{""}
		}
		for _, file := range s.files {
			p, login := newReader(t, s, file)
			if file != "" {
				t.Run("issue/18 this config.toml is valid: "+strings.TrimSpace(file), func(t *testing.T) { wantProblems(t, file) })
			}
			for _, command := range s.commands {
				t.Run("issue/18 this command works: lash "+command, func(t *testing.T) {
					if r := p.follow(command, login); r.code != 0 {
						t.Errorf("%+v", r)
					}
				})
			}
			for _, name := range pageProvider.FindAllStringSubmatch(file, -1) {
				t.Run("issue/18 a model of this config.toml replies: "+strings.TrimSpace(file), func(t *testing.T) {
					p.want(0, "replied in", "", "model", "test", name[1]+"/m")
					if strings.HasPrefix(file, "model = ") {
						p.want(0, "ok\n", "", "run", "hi")
					}
				})
			}
		}
	}
	if files < 11 || commands < 20 {
		t.Errorf("the pages have %d files and %d commands, want at least 11 and 20", files, commands)
	}
	for page, runs := range pages {
		if !runs {
			t.Errorf("%s has no file and no command", page)
		}
	}
}

// wantProblems compares the problems of a config.toml with parts of their messages.
func wantProblems(t *testing.T, text string, want ...string) {
	t.Helper()
	problems := config.Problems(t.TempDir(), []byte(text))
	if len(problems) != len(want) {
		t.Fatalf("problems %v, want %q", problems, want)
	}
	for i, p := range problems {
		if !strings.Contains(p.Error(), want[i]) {
			t.Errorf("problem %q, want %q", p.Error(), want[i])
		}
	}
}
