package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Environment variables that turn the test binary into a plugin: how it misbehaves when its tool is
// called, and the file that must exist for that.
const (
	mannerVariable = "BENCH_PLUGIN"
	whileVariable  = "BENCH_WHILE"
)

// bully is a plugin without the SDK. It answers every request correctly until its tool is called while
// the file exists.
type bully struct {
	manner, while string
	out           *os.File
}

// manners are the ways to misbehave. Those that do not end the process go on while the file exists.
var manners = map[string]func(*bully){
	"behaves": func(*bully) {},
	"crashes": func(*bully) { os.Exit(4) },
	"hangs":   func(b *bully) { b.on(func() { time.Sleep(10 * time.Millisecond) }) },
	"notifies": func(b *bully) {
		b.floods(b.out, `{"jsonrpc":"2.0","method":"log","params":{"level":"INFO","message":"x"}}`)
	},
	"babbles":  func(b *bully) { b.floods(b.out, "la la la") },
	"grumbles": func(b *bully) { b.floods(os.Stderr, "no no no") },
	"talks": func(b *bully) { // as many notifications as are allowed
		line := []byte(strings.Repeat(`{"jsonrpc":"2.0","method":"log","params":{"level":"INFO","message":"x"}}`+"\n", 10))
		b.on(func() {
			_, _ = b.out.Write(line)
			time.Sleep(time.Second * 10 / mayTell)
		})
	},
	"boasts": func(b *bully) { // few, but long notifications
		line := []byte(`{"jsonrpc":"2.0","method":"log","params":{"level":"INFO","message":"` + strings.Repeat("x", 1<<20) + `"}}` + "\n")
		b.on(func() { _, _ = b.out.Write(line) })
	},
	"asks": func(b *bully) {
		b.floods(b.out, `{"jsonrpc":"2.0","id":"x","method":"host/toolState","params":{"grant":"guessed"}}`)
	},
	"rambles": func(b *bully) { // an endless message
		_, _ = b.out.WriteString(`{"jsonrpc":"2.0","id":"`)
		more := []byte(strings.Repeat("9", 1<<20))
		b.on(func() { _, _ = b.out.Write(more) })
	},
}

// mayTell is slightly less than the allowed number of notifications per second.
const mayTell = 4_800

func (b *bully) on(do func()) {
	for {
		if _, err := os.Stat(b.while); err != nil {
			return
		}
		do()
	}
}

func (b *bully) floods(to *os.File, line string) {
	all := []byte(strings.Repeat(line+"\n", 1+(64<<10)/len(line)))
	b.on(func() { _, _ = to.Write(all) })
}

// serve runs the plugin.
func (b *bully) serve() {
	for in := bufio.NewReader(os.Stdin); ; {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params map[string]any  `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil || m.Method == "" {
			continue
		}
		var result any = map[string]any{}
		switch m.Method {
		case "initialize":
			delete(m.Params, "config")
			delete(m.Params, "dataDir")
			result = m.Params
		case "tool/execute":
			if _, err := os.Stat(b.while); err == nil {
				manners[b.manner](b)
			}
			result = map[string]any{"output": map[string]any{"status": "success", "text": "done"}}
		}
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
		if err != nil {
			panic(err)
		}
		_, _ = b.out.Write(append(body, '\n'))
	}
}

// plugins installs a well-behaved plugin with a hook before each turn, and a misbehaving one with a
// tool.
func plugins(tb testing.TB, cfg *Config, manner, while string) {
	tb.Helper()
	dir := filepath.Join(cfg.Dir, ".config", "lashd", "plugins")
	cfg.Env = append(cfg.Env, "XDG_CONFIG_HOME="+filepath.Join(cfg.Dir, ".config"))
	self, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	for name, contributes := range map[string]string{
		"good": `"hooks":["beforeTurn"]`, "bad": `"tools":[{"name":"bad_now","description":"d","timeoutMs":1000}]`,
	} {
		text := fmt.Sprintf(`{"name":%q,"lashd":{"process":{"command":[%q],"env":{%q:%q,%q:%q,"GORACE":"atexit_sleep_ms=0"}},%s}}`,
			name, self, mannerVariable, manner, whileVariable, while, contributes)
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "plugin.json"), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}
