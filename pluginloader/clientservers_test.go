//go:build unix

package pluginloader_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// guestVariable makes a plugin of the test binary.
const guestVariable = "PLUGINLOADER_TEST_GUEST"

// guest is a plugin that says which version of it runs, and denies what is forbidden. Its files are read once, when it starts.
func guest() {
	version, _ := os.ReadFile(filepath.Join(os.Getenv("PLUGIN_ROOT"), "version"))
	if edition, ok := os.LookupEnv("EDITION"); strings.HasPrefix(string(version), "broken") || ok && edition != string(version) {
		fmt.Fprintln(os.Stderr, "cannot start")
		os.Exit(3)
	}
	if strings.HasPrefix(string(version), "hangs") {
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	kept := map[string]int{}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Instance, PluginID, Nonce string
				ProtocolVersion           int
				Contributes               json.RawMessage
				Name                      string
				Context                   struct{ Args json.RawMessage }
				Meta                      struct{ State int }
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil {
			os.Exit(4)
		}
		answer := "{}"
		p := &m.Params
		switch m.Method {
		case "initialize":
			answer = fmt.Sprintf(`{"protocolVersion":%d,"pluginId":%q,"nonce":%q,"contributes":%s}`, p.ProtocolVersion, p.PluginID, p.Nonce, p.Contributes)
		case "hook/beforeToolCall":
			if strings.Contains(string(p.Context.Args), "forbidden") {
				answer = `{"directives":[{"kind":"abort_turn","code":"forbidden","message":"it is"}]}`
			}
		case "tool/execute":
			text := strings.TrimSpace(string(version))
			switch p.Name {
			case "pid":
				text = fmt.Sprint(os.Getpid())
			case "die":
				os.Exit(5)
			case "count":
				kept[p.Instance]++
				text = fmt.Sprint(kept[p.Instance])
				fmt.Printf(`{"jsonrpc":"2.0","method":"snapshot/changed","params":{"instance":%q,"revision":%d}}`+"\n", p.Instance, kept[p.Instance])
			}
			answer = fmt.Sprintf(`{"output":{"status":"success","text":%q}}`, text)
		case "snapshot/write":
			answer = fmt.Sprintf(`{"revision":%d,"state":%d}`, kept[p.Instance], kept[p.Instance])
		case "snapshot/restore":
			kept[p.Instance] = p.Meta.State
		}
		if len(m.ID) > 0 {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, answer)
		}
	}
}
