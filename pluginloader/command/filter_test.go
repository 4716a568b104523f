//go:build unix

package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/provider/scripted"
	"lashd/pluginloader/manifest"
)

// recorder returns the settings of a plugin whose only hook notes each call and refuses it.
func recorder(t *testing.T, matcher, permission string) Config {
	t.Helper()
	text, err := json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": []any{map[string]any{"matcher": matcher, "hooks": []any{map[string]any{
		"type": "command", "command": `in=$(cat); printf '%s\n' "$in" >> "$CLAUDE_PLUGIN_DATA/seen"; echo refused >&2; exit 2`, "if": permission,
	}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	hooks, problems := manifest.ParseHooks("hooks/hooks.json", text)
	for _, p := range problems {
		if !p.Warning {
			t.Fatal(problems)
		}
	}
	c := config(t)
	c.ID, c.Hooks = "kit", hooks
	return c
}

// seen returns the ids of the calls that the hook of recorder got.
func (r *rig) seen(t *testing.T) (ids []string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(r.part.config.Data, "seen"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var in struct {
			ID string `json:"tool_use_id"`
		}
		if err := json.Unmarshal([]byte(line), &in); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, in.ID)
	}
	return ids
}

func TestFilterOfAHook(t *testing.T) {
	calls := []scripted.Call{
		{ID: "list", Name: "shell", Args: json.RawMessage(`{"command":"ls"}`)},
		{ID: "words", Name: "shell", Args: json.RawMessage(`{"command":"echo rm"}`)},
		{ID: "remove", Name: "shell", Args: json.RawMessage(`{"command":"rm x"}`)},
		{ID: "second", Name: "shell", Args: json.RawMessage(`{"command":"true && rm x"}`)},
		{ID: "inner", Name: "shell", Args: json.RawMessage(`{"command":"sh -c 'rm x'"}`)},
		{ID: "variable", Name: "shell", Args: json.RawMessage(`{"command":"A=1 rm x"}`)},
		{ID: "unknown", Name: "shell", Args: json.RawMessage(`{"command":"$PROGRAM x"}`)},
		{ID: "status", Name: "shell", Args: json.RawMessage(`{"command":"git status"}`)},
		{ID: "push", Name: "shell", Args: json.RawMessage(`{"command":"git -C . push"}`)},
		{ID: "typed", Name: "write", Args: json.RawMessage(`{"path":"a.ts","content":""}`)},
		{ID: "below", Name: "write", Args: json.RawMessage(`{"path":"src/a.go","content":""}`)},
		{ID: "patched", Name: "patch", Args: json.RawMessage(`{"patch":"*** Begin Patch\n*** Add File: b.txt\n+x\n*** Add File: src/b.ts\n+x\n*** End Patch"}`)},
	}
	all := "list words remove second inner variable unknown status push typed below patched patched"
	for _, c := range []struct{ name, matcher, permission, want string }{
		{"a command of the line is enough, and so is one that cannot be known", "", "Bash(rm *)", "remove second inner variable unknown"},
		{"words of a command", "Bash", "Bash(git push:*)", "push"},
		{"a tool without a limit", "", "Bash", "list words remove second inner variable unknown status push"},
		{"a file by its name", "", "Edit(*.ts)", "typed patched"},
		{"a directory", "Write|Edit", "Edit(/src/**)", "below patched"},
		{"the matcher still counts", "Write", "Edit(*.ts)", "typed patched"}, // a new file of a patch is a Write
		{"no tool of the calls", "", "mcp__db__query", ""},
		{"not a permission", "", "rm *", all},
		{"a permission that does not end", "", "Bash(rm *", all},
		{"a tool that lashd does not have", "", "NotebookEdit(*.ipynb)", all},
	} {
		t.Run("part13/5 if restricts a hook: "+c.name, func(t *testing.T) {
			r := run(t, recorder(t, c.matcher, c.permission), calls...)
			r.turn(t, "go")
			if d := cmp.Diff(strings.Fields(c.want), r.seen(t)); d != "" && len(c.want)+len(r.seen(t)) > 0 {
				t.Error(d)
			}
		})
	}
	t.Run("part13/5 if compares the arguments that another hook has set", func(t *testing.T) {
		c := recorder(t, "Bash", "Bash(rm *)")
		changes, problems := manifest.ParseHooks("more.json", []byte(`{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","if":"Bash(ls)",
			"command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"updatedInput\":{\"command\":\"rm x\"}}}'"}]}]}}`))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		c.Hooks = append(c.Hooks, changes...)
		r := run(t, c, calls[:2]...)
		r.turn(t, "go")
		if d := cmp.Diff([]string{"list"}, r.seen(t)); d != "" {
			t.Error(d)
		}
	})
}
