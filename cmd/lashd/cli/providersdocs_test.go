package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// providersPage is the page whose commands and files TestProvidersPage tries.
const providersPage = "../../../docs/providers.md"

var (
	pageCommand = regexp.MustCompile(`(?m)^    lashd ([^#\n]*)`)
	pageFile    = regexp.MustCompile("(?s)```toml\n(.*?)```")
)

func TestProvidersPage(t *testing.T) {
	page, err := os.ReadFile(filepath.FromSlash(providersPage))
	if err != nil {
		t.Fatal(err)
	}
	files := pageFile.FindAllStringSubmatch(string(page), -1)
	if len(files) < 5 {
		t.Errorf("the page has %d files, want at least 5", len(files))
	}
	for _, file := range files {
		t.Run("issue/18 this config.toml is valid: "+strings.TrimSpace(file[1]), func(t *testing.T) { checkProblems(t, file[1], nil) })
	}
	base, text := keyedServer(t), ""
	for _, name := range []string{"openai", "google", "openrouter", "azure", "bedrock"} {
		text += "[providers." + name + "]\napi = 'chat'\nkey_header = 'Authorization'\nbase_url = '" + base + "'\n"
	}
	p := newUser(t, base, text)
	commands := pageCommand.FindAllStringSubmatch(string(page), -1)
	if len(commands) < 10 {
		t.Errorf("the page has %d commands, want at least 10", len(commands))
	}
	for _, command := range commands {
		t.Run("issue/18 this command works: lashd "+command[1], func(t *testing.T) {
			if r := p.give(secretKey+"\n", strings.Fields(command[1])...); r.code != 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}
