package cli

import (
	"os/exec"
	"strings"
	"testing"
)

func TestNodeForTypeScript(t *testing.T) {
	there := func(string) (string, error) { return "/bin/node", nil }
	for version, want := range map[string]string{
		"v20.19.2\n": "/bin/node is v20.19.2; install Node", "v22.17.9": "is v22.17.9", "v23.5.0": "is v23.5.0", "bun 1": `reports version "bun 1"`,
		"v22.18.0\n": "", "v23.6.0": "", "v24.0.1": "",
	} {
		t.Run("outside/26 plugin new --lang ts with "+strings.TrimSpace(version), func(t *testing.T) {
			err := checkNode(there, func(string) (string, error) { return version, nil })
			switch {
			case want == "" && err != nil:
				t.Error(err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "needs Node 22.18 or newer")):
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
	t.Run("outside/26 plugin new --lang ts without Node", func(t *testing.T) {
		err := checkNode(func(string) (string, error) { return "", exec.ErrNotFound }, nil)
		if err == nil || !strings.Contains(err.Error(), "node is not in PATH") {
			t.Error(err)
		}
	})
}
