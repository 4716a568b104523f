package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// answerer is a plugin in shell that returns nothing from any hook.
const answerer = `#!/bin/sh
# edit %d
read -r first
id=$(printf %%s "$first" | sed -E 's/.*"id":([0-9]+).*/\1/')
said=$(printf %%s "$first" | sed -E 's/.*"params":(\{.*\})\}$/\1/; s/"config":(null|\{[^}]*\}),//; s/"dataDir":"[^"]*",//')
printf '{"jsonrpc":"2.0","id":%%s,"result":%%s}\n' "$id" "$said"
while read -r line; do
	case $line in *'"id":'*)
		id=${line#*'"id":'}
		printf '{"jsonrpc":"2.0","id":%%s,"result":{}}\n' "${id%%%%[,\}]*}";;
	esac
done
`

// edit writes the next version of the plugin. Every fifth version cannot be loaded.
func (s *soak) edit() {
	s.t.Helper()
	dir := filepath.Join(s.user, ".config", "lashd", "plugins", "pulse")
	manifest := fmt.Sprintf(`{"name":"pulse","version":"1.0.%d","lashd":{"process":{"command":["${PLUGIN_ROOT}/answer"],"startup":"eager"},"hooks":["beforeTurn","afterToolCall"]}}`, s.edits)
	if s.edits%5 == 4 {
		manifest = manifest[1:]
	}
	for name, text := range map[string]string{"answer": fmt.Sprintf(answerer, s.edits), "plugin.json": manifest} {
		next := filepath.Join(s.work, "next")
		for _, err := range []error{os.MkdirAll(dir, 0o755), os.WriteFile(next, []byte(text), 0o755), os.Rename(next, filepath.Join(dir, name))} {
			if err != nil {
				s.t.Error(err)
			}
		}
	}
	s.edits++
}

// editing edits the plugin from time to time.
func (s *soak) editing(ctx context.Context) {
	tick := time.NewTicker(2 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.edit()
		}
	}
}
