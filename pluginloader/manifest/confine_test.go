package manifest_test

import (
	"strings"
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

func TestHostsOfServers(t *testing.T) {
	t.Run("part11/network hosts of a server are read, shown to the person who trusts the plugin, and checked", func(t *testing.T) {
		all, problems := manifest.ParseServers(".mcp.json", []byte(`{"mcpServers":{"x":{"command":"npx","hosts":["registry.npmjs.org","*.example.com:8080","[::1]:80","*"]}}}`))
		if got := all["x"].ServerSandbox.String(); len(problems) > 0 || got != "[hosts registry.npmjs.org *.example.com:8080 [::1]:80 *]" {
			t.Errorf("%q, %v", got, problems)
		}
		for server, want := range map[string]string{
			`{"command":"npx","hosts":["https://example.com"]}`:      `"https://example.com" must be a host without https://, such as example.com, *.example.com or example.com:8080`,
			`{"url":"https://x.test/mcp","hosts":["a.example.com"]}`: `"hosts" is only for a server with a "command"`,
		} {
			if _, problems := manifest.ParseServers(".mcp.json", []byte(`{"mcpServers":{"x":`+server+`}}`)); len(problems) != 1 || !strings.HasSuffix(problems[0].Message, want) {
				t.Errorf("%s: %v", server, problems)
			}
		}
	})
}
