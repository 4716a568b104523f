package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lashd/test/fakemodel"
	"lashd/test/skip"
)

// codeBlocks returns the code blocks of a language on the page of an editor.
func codeBlocks(t *testing.T, page, language string) (all []string) {
	t.Helper()
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readText(t, "../../docs/editors/"+page+".md"), -1) {
		all = append(all, m[1])
	}
	return all
}

// paged creates a world whose PATH has lashd, with the data directory of the world in its variables.
func paged(t *testing.T, answers int) *world {
	t.Helper()
	w := newWorld(t, "allow", slices.Repeat([]fakemodel.Step{step(says("Hello."))}, answers)...)
	w.path = append(w.path, bin)
	w.env = append(w.env, "LASHD_HOME="+w.dir, "LASHD_SOCKET="+w.socket, "LASHD_LOG=error", "WORKSPACE="+w.work)
	return w
}

// TestEditorPages starts the agent with the settings on the page of each editor.
func TestEditorPages(t *testing.T) {
	for _, page := range []string{"zed", "jetbrains"} {
		t.Run("part13/8 the settings of the page start the agent: "+page, func(t *testing.T) {
			blocks := codeBlocks(t, page, "json")
			var settings struct {
				Servers map[string]struct {
					Command string            `json:"command"`
					Args    []string          `json:"args"`
					Env     map[string]string `json:"env"`
				} `json:"agent_servers"`
			}
			if len(blocks) != 1 || json.Unmarshal([]byte(blocks[0]), &settings) != nil || len(settings.Servers) != 1 {
				t.Fatalf("the page has the settings %q", blocks)
			}
			w := paged(t, 1)
			defer w.shutdown()
			agent := settings.Servers["lashd"]
			if page == "jetbrains" && !filepath.IsAbs(agent.Command) {
				t.Errorf("the path %s is not absolute", agent.Command)
			}
			e := w.npmWith(`{}`, filepath.Base(agent.Command), agent.Args...)
			e.open(w.work)
			if stop := e.prompt("hello")(); stop != "end_turn" {
				t.Errorf("the turn ends with %s", stop)
			}
		})
	}
	for _, c := range []struct {
		page, language string
		blocks         int
		editor         []string
	}{
		{"neovim", "lua", 2, []string{"nvim", "--headless", "-u", "NONE", "-S", "servers/acp.lua"}},
		{"emacs", "elisp", 1, []string{"emacs", "--batch", "-l", "servers/acp.el"}},
	} {
		t.Run("part13/8 the editor runs the settings of its page and a turn with the agent: "+c.page, func(t *testing.T) {
			_, err := exec.LookPath(c.editor[0])
			skip.Unless(t, strings.ToUpper(c.editor[0]), err == nil, c.editor[0]+" is not installed")
			blocks := codeBlocks(t, c.page, c.language)
			if len(blocks) != c.blocks {
				t.Fatalf("the page has %d blocks", len(blocks))
			}
			w := paged(t, len(blocks))
			defer w.shutdown()
			for _, block := range blocks {
				settings := filepath.Join(t.TempDir(), "settings")
				if err := os.WriteFile(settings, []byte(block), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), c.editor[0], c.editor[1:]...)
				cmd.Env = append(w.command("acp").Env, "SETTINGS="+settings)
				out, err := cmd.CombinedOutput()
				if err != nil || !strings.Contains(string(out), "Hello. end_turn") {
					t.Errorf("%v: the editor prints %s", err, out)
				}
			}
		})
	}
}
