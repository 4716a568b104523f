//go:build unix

package pluginloader_test

import (
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestWhyAPluginDoesNotStart(t *testing.T) {
	t.Run("outside/26 the reason for a failed start includes the last lines of output", func(t *testing.T) {
		w := newWorld(t)
		w.write("p/main.py", "import sys\nprint('hello', file=sys.stderr)\nimport no_such_module\n")
		w.write("p/plugin.json", `{"name":"p","lashd":{"process":{"command":["python3","${PLUGIN_ROOT}/main.py"]},"tools":[{"name":"x","description":"d"}]}}`)
		w.start()
		info := w.status("", "p", protocol.PluginFailed)
		var text strings.Builder
		for _, p := range info.Problems {
			text.WriteString(p.Message + "\n")
		}
		if !strings.Contains(text.String(), "its last lines were:") || !strings.Contains(text.String(), "No module named 'no_such_module'") {
			t.Errorf("it says %q", text.String())
		}
	})
}
