package child

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/proc"
)

func TestConfinement(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) string { return filepath.Join(append([]string{base}, names...)...) }
	for _, dir := range []string{"home/work", "home/lashd/plugins/p", "home/lashd/data/p", "other"} {
		if err := os.MkdirAll(in(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(in("home"), in("way")), os.Symlink(in("home/lashd"), in("other/back"))); err != nil {
		t.Fatal(err)
	}
	limits := proc.Limits{OpenFiles: 100}
	root, data := in("home/lashd/plugins/p"), in("home/lashd/data/p")
	for _, c := range []struct {
		what, workspace string
		ask             *Sandbox
		want            *proc.Sandbox
		wrong           string
	}{
		{"nothing is asked for", in("home/work"), nil, nil, ""},
		{"a plugin has its own directories only", in("home/work"), &Sandbox{}, &proc.Sandbox{Read: []string{root}, Write: []string{data}}, ""},
		{"a workspace whose path has a link", in("way/work"), &Sandbox{Workspace: true}, nil, "contains a link now and leads to"},
		{"the workspace is read", in("home/work"), &Sandbox{Workspace: true}, &proc.Sandbox{Read: []string{in("home/work"), root}, Write: []string{data}}, ""},
		{"the workspace is written", in("home/work"), &Sandbox{Workspace: true, Write: true}, &proc.Sandbox{Read: []string{root}, Write: []string{in("home/work"), data}}, ""},
		{"other paths are as they are said", "", &Sandbox{ReadPaths: []string{in("other")}, WritePaths: []string{in("home/work")}, OpenNetwork: true},
			&proc.Sandbox{Read: []string{in("other"), root}, Write: []string{in("home/work"), data}, Network: true}, ""},
		{"a program of all workspaces has none", "", &Sandbox{Workspace: true}, nil, "serves all workspaces"},
		{"a workspace that is not there", in("gone"), &Sandbox{Workspace: true}, nil, "no such file"},
		{"a workspace with lashd's own files in it", in("home"), &Sandbox{Workspace: true}, nil, "lashd's own"},
		{"a path above lashd's own files", "", &Sandbox{ReadPaths: []string{in("home")}}, nil, "lashd's own"},
		{"a path above them by a link", "", &Sandbox{ReadPaths: []string{in("way")}}, nil, "lashd's own"},
		{"the whole system", "", &Sandbox{ReadPaths: []string{"/"}}, nil, "lashd's own"},
		{"a path to lashd's own files", "", &Sandbox{WritePaths: []string{in("home/lashd")}}, nil, "lashd's own"},
		{"a path in them", "", &Sandbox{WritePaths: []string{in("home/lashd/trust")}}, nil, "lashd's own"},
		{"a path to them by a link", "", &Sandbox{ReadPaths: []string{in("other/back")}}, nil, "lashd's own"},
		{"a path to them that goes up", "", &Sandbox{ReadPaths: []string{in("home/work") + "/../lashd"}}, nil, "lashd's own"},
	} {
		t.Run("reliability/T8 "+c.what, func(t *testing.T) {
			own := &Confinement{Limits: limits, Sandbox: c.ask, Root: root, Data: data, Hidden: []string{in("home/lashd")}}
			got, err := own.In(c.workspace)
			if c.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%+v, %v; want an error with %q", got, err, c.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&proc.Confinement{Limits: limits, Sandbox: c.want}, got.Confinement); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEnvironmentInASandbox(t *testing.T) {
	env := Environment{Daemon: []string{"PATH=/bin", "TMPDIR=/tmp", "TMP=/tmp"}, Set: map[string]string{"TMPDIR": "/mine"}, Root: "/r", Data: "/d", Temp: "/d/tmp"}
	got := strings.Join(env.List(), " ")
	if want := "PATH=/bin TMPDIR=/d/tmp PYTHONDONTWRITEBYTECODE=1 PLUGIN_ROOT=/r CLAUDE_PLUGIN_ROOT=/r PLUGIN_DATA=/d"; got != want {
		t.Errorf("environment %q, want %q", got, want)
	}
}
