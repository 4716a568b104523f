package approval_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"lashd/engine/approval"
	"lashd/rpc/protocol"
)

// TestFilesOfLinkedPluginsAreProtected links plugins into a home and a workspace, and judges tools that change their files.
func TestFilesOfLinkedPluginsAreProtected(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home, work := filepath.Join(top, "home"), filepath.Join(top, "work")
	for _, dir := range []string{home + "/.agents/plugins", work + "/.agents/plugins", work + "/users", work + "/own/sub", work + "/other"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(
		os.Symlink(work+"/users", home+"/.agents/plugins/users"), os.Symlink("../../own", work+"/.agents/plugins/own"),
		os.Symlink("loop", home+"/.agents/plugins/loop"), os.Symlink(top+"/gone", home+"/.agents/plugins/gone"),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for _, c := range []struct {
		name, cwd, path string
		kind            protocol.ToolKind
		want            bool
	}{
		{"a plugin of the user", work, "users/main.py", protocol.ToolKindEdit, true},
		{"a plugin of the user, with a path outside of the workspace", work + "/other", "../users/main.py", protocol.ToolKindEdit, true},
		{"a plugin of the user in other letters", work, "USERS/main.py", protocol.ToolKindEdit, true},
		{"a plugin of the workspace", work, "own/plugin.json", protocol.ToolKindEdit, true},
		{"a plugin that is only read", work, "users/main.py", protocol.ToolKindRead, false},
		{"a directory with a similar name", work, "users2/main.py", protocol.ToolKindEdit, false},
		{"another directory", work, "other/main.py", protocol.ToolKindEdit, false},
		{"the plugin that is the workspace", work + "/users", "main.py", protocol.ToolKindEdit, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			args, err := json.Marshal(map[string]string{"path": c.path})
			if err != nil {
				t.Fatal(err)
			}
			q := &approval.Request{Call: approval.SubjectsOf(c.cwd, entry(t, "run", c.kind), args), Kind: c.kind}
			if got := q.Protected(); got != c.want {
				t.Errorf("%s in %s: protected %t, want %t", c.path, c.cwd, got, c.want)
			}
		})
	}
}
