//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"lashd/rpc/protocol"
)

// speaker does the handshake of a plugin and then waits for the end of its stdin.
const speaker = `#!/bin/sh
read -r first
id=$(printf %s "$first" | sed -E 's/.*"id":([0-9]+).*/\1/')
said=$(printf %s "$first" | sed -E 's/.*"params":(\{.*\})\}$/\1/; s/"config":(null|\{[^}]*\}),//; s/"dataDir":"[^"]*",//')
printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$said"
cat > /dev/null
`

// decided is what is known about a person's decisions on a plugin: acknowledged ones, and those that
// may have been stored.
type decided struct {
	on, off  bool // possible values of the switch
	approved map[protocol.Digest]bool
	maybe    map[protocol.Digest]bool // approved or revoked, unknown which
	now      protocol.Digest          // digest of its directory; empty if unknown
	versions map[string]bool          // versions that were approved at any time, perhaps
}

type pluginCampaign struct {
	*home
	decided
	session protocol.SessionID
	written int
	acked   int
}

// TestSIGKILLWhilePluginsChange kills daemons while plugins are edited, approved, disabled and called,
// and checks what the next one knows. LASHD_LONG=1 repeats this 100 times.
func TestSIGKILLWhilePluginsChange(t *testing.T) {
	cycles := 8
	if os.Getenv("LASHD_LONG") != "" {
		cycles = 100
	}
	h := newHome(t, map[string]string{"config.toml": "base_url = 'http://127.0.0.1:1/v1'\n"}) // no model is called
	c := &pluginCampaign{home: h, decided: decided{on: true, approved: map[protocol.Digest]bool{}, maybe: map[protocol.Digest]bool{}, versions: map[string]bool{}}}
	c.put(filepath.Join(h.user, ".config", "lashd", "plugins", "eager"), "plugin.json",
		`{"name":"eager","lashd":{"process":{"command":["${PLUGIN_ROOT}/speak"],"startup":"eager"},"hooks":["compact"]}}`)
	c.put(filepath.Join(h.user, ".config", "lashd", "plugins", "eager"), "speak", speaker)
	c.put(c.dirOf(), "plugin.json", `{"name":"p","lashd":{"tools":[{"name":"say","description":"d","command":["${PLUGIN_ROOT}/say"]}]}}`)
	c.edit()
	for range cycles {
		c.cycle()
		if t.Failed() {
			return
		}
	}
	last := h.serve()
	c.look(h.dial(""))
	last.stop()
	for v := range strings.FieldsSeq(c.ran()) {
		if !c.versions[v] {
			t.Errorf("version %s ran without approval", v)
		}
	}
	if left := c.processes(); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	t.Logf("issue/4-5 issue/4-6 %d kills, %d acknowledged changes, %d versions, %d calls of %d approved ones", cycles, c.acked, c.written, len(strings.Fields(c.ran())), len(c.versions))
}

func (c *pluginCampaign) dirOf() string { return filepath.Join(c.work, ".agents", "plugins", "p") }

func (c *pluginCampaign) ran() string {
	text, _ := os.ReadFile(filepath.Join(c.work, "ran")) // missing if nothing ran
	return string(text)
}

// put replaces a file atomically.
func (c *pluginCampaign) put(dir, name, text string) {
	c.t.Helper()
	next := filepath.Join(c.work, "next")
	for _, err := range []error{os.MkdirAll(dir, 0o755), os.WriteFile(next, []byte(text), 0o755), os.Rename(next, filepath.Join(dir, name))} {
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *pluginCampaign) edit() {
	c.written++
	c.now = ""
	c.put(c.dirOf(), "say", fmt.Sprintf("#!/bin/sh\necho v%d >> %s/ran\necho v%d\n", c.written, c.work, c.written))
}

// cycle runs a daemon for a moment.
func (c *pluginCampaign) cycle() {
	d := c.serve()
	p := c.dial("")
	if c.session == "" {
		c.session = ask[protocol.SessionNewResult](p, "session/new", protocol.SessionNewParams{Cwd: c.work}).SessionID
	}
	c.look(p)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for c.change(p) == nil {
			c.acked++
		}
	}()
	time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
	d.kill()
	<-done
}

// change makes one change as a user. It fails once the daemon is dead.
func (c *pluginCampaign) change(p *peer) error {
	name := protocol.PluginReadParams{Name: "p", Cwd: c.work}
	switch rand.IntN(6) {
	case 0:
		c.edit()
		return nil
	case 1:
		_, err := try[protocol.PluginReloadResult](p, "plugin/reload", protocol.PluginReloadParams{Cwd: c.work})
		return err
	case 2, 3:
		return c.approve(p, name)
	case 4:
		for d := range c.approved {
			c.maybe[d] = true
		}
		clear(c.approved)
		if _, err := try[protocol.PluginResult](p, "plugin/untrust", protocol.PluginUntrustParams{Name: "p", Cwd: c.work}); err != nil {
			return err
		}
		clear(c.maybe)
		return nil
	}
	on := rand.IntN(3) > 0
	c.on, c.off = c.on || on, c.off || !on
	if _, err := try[protocol.PluginResult](p, "plugin/setEnabled", protocol.PluginEnableParams{Name: "p", Cwd: c.work, Enabled: on}); err != nil {
		return err
	}
	c.on, c.off = on, !on
	_, err := try[protocol.ToolCallResult](p, "tool/call", protocol.ToolCallParams{SessionID: c.session, Name: "say", Args: []byte(`{}`)})
	if err != nil && strings.Contains(err.Error(), "no such tool") {
		err = nil
	}
	return err
}

// approve approves the contents of the directory.
func (c *pluginCampaign) approve(p *peer, name protocol.PluginReadParams) error {
	if _, err := try[protocol.PluginReloadResult](p, "plugin/reload", protocol.PluginReloadParams{Cwd: c.work}); err != nil {
		return err
	}
	seen, err := try[protocol.PluginReadResult](p, "plugin/read", name)
	if err != nil {
		return err
	}
	c.now = seen.Plugin.Found
	if c.now == "" {
		c.now = seen.Plugin.Digest
	}
	c.versions[fmt.Sprintf("v%d", c.written)] = true
	c.maybe[c.now] = c.maybe[c.now] || !c.approved[c.now]
	r, err := try[protocol.PluginResult](p, "plugin/trust", protocol.PluginTrustParams{Name: "p", Cwd: c.work, Digest: c.now})
	if err != nil {
		return err
	}
	delete(c.maybe, c.now)
	c.approved[c.now] = true
	if c.on && !c.off && (r.Plugin.Status != protocol.PluginLoaded || r.Plugin.Digest != c.now) {
		c.t.Errorf("approved: %+v", r.Plugin)
	}
	return nil
}

// look compares what a daemon reports about the plugin with the decisions.
func (c *pluginCampaign) look(p *peer) {
	c.t.Helper()
	list := ask[protocol.PluginListResult](p, "plugin/list", protocol.PluginListParams{Cwd: c.work})
	var is protocol.PluginInfo
	eager := false
	for _, info := range list.Data {
		switch info.Name {
		case "p":
			is = info
		case "eager":
			eager = true
			if info.Status != protocol.PluginLoaded || info.Process == nil {
				c.t.Errorf("the plugin that starts with the daemon: %+v", info)
			}
		}
	}
	switch {
	case !eager:
		c.t.Error("the plugin that starts with the daemon is missing")
	case is.Digest != "" && !c.on:
		c.t.Errorf("it is disabled but runs: %+v", is)
	case is.Digest != "" && !c.approved[is.Digest] && !c.maybe[is.Digest]:
		c.t.Errorf("it is not approved but runs: %+v", is)
	case !c.off && c.approved[c.now] && (is.Status != protocol.PluginLoaded || is.Digest != c.now):
		c.t.Errorf("it is approved but does not run: %+v", is)
	case c.off && !c.on && is.Status != protocol.PluginDisabled:
		c.t.Errorf("it is disabled: %+v", is)
	}
}

// processes returns the processes that run a program of the data directory.
func (c *pluginCampaign) processes() (left []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		if line, err := os.ReadFile(file); err == nil && strings.Contains(string(line), c.dir+"/plugins") {
			left = append(left, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return left
}
