package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/cmd/internal/console"
)

func TestMCP(t *testing.T) {
	t.Run("part13/5 lash mcp adds, lists and removes servers of the user", func(t *testing.T) {
		p := newPlace(t)
		p.want(0, "No MCP servers.", "", "mcp")
		p.want(0, "Added files to ", "", "mcp", "add", "-e", "A=b=c,d", "-e", "T=${TOKEN}", "files", "npx", "-y", "server", "--flag")
		p.want(0, "Added docs to ", "", "mcp", "add", "-H", "Authorization: Bearer ${TOKEN}, x", "docs", "https://example.com/mcp")
		p.want(0, "docs   https://example.com/mcp\nfiles  npx -y server --flag", "", "mcp")
		config := p.want(0, "", "", "mcp", "list", "--json").out
		want := `{"mcpServers":{"docs":{"type":"http","url":"https://example.com/mcp","headers":{"Authorization":"Bearer ${TOKEN}, x"}},"files":{"command":"npx","args":["-y","server","--flag"],"env":{"A":"b=c,d","T":"${TOKEN}"}}}}` + "\n"
		if config != want {
			t.Errorf("the file has\n%s\nwant\n%s", config, want)
		}
		p.want(console.ExitFailed, "", "is not a valid name", "mcp", "add", "a b", "x")
		p.want(console.ExitUsage, "", "--header is for the URL of a server", "mcp", "add", "-H", "A: b", "x", "y")
		p.want(console.ExitUsage, "", "--client-id is for the URL of a server", "mcp", "add", "--client-id", "a", "x", "y")
		p.want(console.ExitUsage, "", "--client-secret needs --client-id", "mcp", "add", "--client-secret", "a", "x", "https://y")
		p.want(console.ExitUsage, "", "a URL has no arguments", "mcp", "add", "x", "https://y", "z")
		p.want(console.ExitFailed, "", "there is no server x", "mcp", "remove", "x")
		if got := p.want(0, "", "", "mcp", "list", "--json").out; got != want {
			t.Errorf("after mistakes the file has %s", got)
		}
		p.want(0, "Removed docs.", "", "mcp", "remove", "docs")
		p.want(0, "Added docs to ", "", "mcp", "add", "docs", "--", "./bin/docs")
		p.want(0, "docs   "+filepath.Join(p.work, "bin", "docs"), "", "mcp")
		p.want(0, "Removed docs.", "", "mcp", "remove", "docs")
		_, file, _ := strings.Cut(strings.TrimSpace(p.want(0, "", "", "mcp", "add", "docs", "x").out), " to ")
		file = strings.TrimSuffix(file, ".")
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s is %v: %v", file, info, err)
		}
		p.want(0, "", "", "mcp", "add", "--client-id", "id", "--client-secret", "${S}", "docs", "https://y")
		if got, part := p.want(0, "", "", "mcp", "list", "--json").out, `"docs":{"type":"http","url":"https://y","oauth":{"clientId":"id","clientSecret":"${S}"}}`; !strings.Contains(got, part) {
			t.Errorf("the file has %s, want %s", got, part)
		}
		p.want(0, "Removed docs.", "", "mcp", "remove", "docs")
		p.want(0, "Removed files.", "", "mcp", "remove", "files")
		if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the plugin is still there: %v", err)
		}
	})
}
