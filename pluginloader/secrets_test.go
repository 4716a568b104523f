//go:build unix

package pluginloader_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// Values that programs print and that must not appear anywhere else.
var leaked = map[string]string{
	"a variable that is passed": "passed-from-lashd",
	"a variable of its own":     "own-of-manifest",
	"an option":                 "told-in-options",
	"an argument":               "told-as-argument",
	"an address":                "told-in-address",
}

func TestSecretsAreNotInLogs(t *testing.T) {
	t.Setenv("DEPLOY", leaked["a variable that is passed"])
	w := newWorld(t)
	w.options = map[string]json.RawMessage{"leak": json.RawMessage(`{"apiKey":"told-in-options","mode":"verbose-mode"}`)}
	program := func(more string) string {
		return `"command":"sh",` + more + `"passEnv":["DEPLOY"],"env":{"API_TOKEN":"own-of-manifest","URL":"https://me:told-in-address@example.org/x","MODE":"plain-mode"}`
	}
	const script = `echo WHO $DEPLOY $API_TOKEN $URL $MODE $2 told-in-options \"$DEPLOY\" >&2; exit 1`
	args := func(who string) string {
		all, _ := json.Marshal([]string{"-c", strings.Replace(script, "WHO", who, 1), "x", "--password", "told-as-argument"})
		return string(all)
	}
	process := strings.Replace(program(""), `"command":"sh"`, `"command":["sh",`+args("process")[1:], 1)
	w.write("leak/plugin.json", `{"name":"leak","lashd":{"process":{`+process+`},"config":{"type":"object"},"tools":[{"name":"x","description":"d"}]}}`)
	w.write("serves/plugin.json", `{"name":"serves","lashd":{"mcpServers":{"s":{`+program(`"args":`+args("server")+`,`)+`}}}}`)
	w.start()
	w.status("", "leak", protocol.PluginFailed)
	w.session("")
	for plugin, who := range map[string]string{"leak": "process", "serves": "server"} {
		t.Run("outside/9 what a "+who+" prints", func(t *testing.T) { w.leaks(t, plugin, who) })
	}
}

// leaks expects that a plugin printed a line, and that no secret is in its log.
func (w *world) leaks(t *testing.T, name, who string) {
	text := ""
	w.until(name+" printed its line", func() bool {
		text = ""
		for _, line := range must(w.Logs(t.Context(), &protocol.PluginLogsParams{Name: name})).of(t).Data {
			text += line.Text + "\n"
		}
		return strings.Contains(text, who)
	})
	for what, secret := range leaked {
		if strings.Contains(text, secret) && (who == "process" || what != "an option") {
			t.Errorf("%s is in the log: %s", what, text)
		}
	}
	if !strings.Contains(text, "plain-mode") || !strings.Contains(text, "${DEPLOY}") {
		t.Errorf("the log has %q", text)
	}
}
