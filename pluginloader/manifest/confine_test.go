package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/proc"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
)

func TestConfinement(t *testing.T) {
	otherwise := proc.Limits{Memory: 1, Processes: 2, OpenFiles: 3, FileSize: 4}
	for _, c := range []struct {
		section string
		want    child.Confinement
	}{
		{`{}`, child.Confinement{Limits: otherwise}},
		{`{"limits":{"memoryMiB":16,"processes":9}}`, child.Confinement{Limits: proc.Limits{Memory: 16 << 20, Processes: 9, OpenFiles: 3, FileSize: 4}}},
		{`{"limits":{"openFiles":99,"fileMiB":2}}`, child.Confinement{Limits: proc.Limits{Memory: 1, Processes: 2, OpenFiles: 99, FileSize: 2 << 20}}},
		{`{"sandbox":{}}`, child.Confinement{Limits: otherwise, Sandbox: &child.Sandbox{}}},
		{`{"sandbox":{"workspace":"read","read":["/a"],"write":["/b"],"network":true}}`, child.Confinement{
			Limits: otherwise, Sandbox: &child.Sandbox{Workspace: true, ReadPaths: []string{"/a"}, WritePaths: []string{"/b"}, OpenNetwork: true}}},
		{`{"sandbox":{"workspace":"write"}}`, child.Confinement{Limits: otherwise, Sandbox: &child.Sandbox{Workspace: true, Write: true}}},
		{`{"sandbox":{"workspace":"none"}}`, child.Confinement{Limits: otherwise, Sandbox: &child.Sandbox{}}},
	} {
		t.Run("issue/4-7 "+c.section, func(t *testing.T) {
			f, problems := manifest.Parse("plugin.json", []byte(inLashd(c.section)))
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(c.want, f.Lashd.Confinement(otherwise)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
