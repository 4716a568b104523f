//go:build unix

package pluginloader_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/proc"
	"lashd/pluginloader"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

func TestDefaultLimits(t *testing.T) {
	for _, argv := range [][]string{{"python3", "-c", "print(1)"}, {"node", "-e", "console.log(1)"}, {"go", "env", "GOOS"}, {"java", "-version"}} {
		t.Run("reliability/T9 "+argv[0]+" starts with the limits that all programs have", func(t *testing.T) {
			_, err := exec.LookPath(argv[0])
			skip.Unless(t, strings.ToUpper(argv[0]), err == nil, "it is not installed")
			var said bytes.Buffer
			p := must(proc.Start(t.Context(), proc.Command{
				Argv: argv, Env: os.Environ(), Stdout: &said, Stderr: &said, Confine: &proc.Confinement{Limits: pluginloader.DefaultLimits},
			})).of(t)
			if exit := must(p.Wait()).of(t); exit.Code != 0 || said.Len() == 0 {
				t.Errorf("it ends with %+v: %s", exit, &said)
			}
		})
	}
}

func TestSandboxModes(t *testing.T) {
	skip.Unless(t, "LANDLOCK", proc.Confines().Sandbox > 0, proc.Confines().String())
	for mode, want := range map[pluginloader.SandboxMode]string{"": "landlock abi", pluginloader.SandboxRequired: "landlock abi", pluginloader.SandboxOff: "none: disabled in config.toml"} {
		t.Run("issue/4-7 reliability/T10 a plugin's sandbox, where it is "+string(mode), func(t *testing.T) {
			w := newWorld(t)
			w.sandbox, w.limits = mode, proc.Limits{OpenFiles: 77}
			secret := filepath.Join(t.TempDir(), "secret")
			if err := os.WriteFile(secret, []byte("word\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.write("g/plugin.json", `{"name":"g","lashd":{"sandbox":{},"tools":[{"name":"look","description":"x","command":["sh","-c","cat `+secret+`; ulimit -n"]}]}}`)
			w.write("plain/plugin.json", `{"name":"plain","lashd":{"prompt":[{"slot":"guidance","content":"x"}]}}`)
			w.start()
			if info := w.status("", "g", protocol.PluginLoaded); !strings.HasPrefix(info.Sandbox, want) {
				t.Errorf("it is shown with %q", info.Sandbox)
			}
			if info := w.status("", "plain", protocol.PluginLoaded); info.Sandbox != "" {
				t.Errorf("one without programs is shown with %q", info.Sandbox)
			}
			r := must(w.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: w.session(""), Name: "look", Args: []byte(`{}`)})).of(t)
			if got := strings.Contains(r.Output.Text, "word"); got != (mode == pluginloader.SandboxOff) || !strings.Contains(r.Output.Text, "77") {
				t.Errorf("it says %q", r.Output.Text)
			}
		})
	}
}

func TestCondition(t *testing.T) {
	t.Run("issue/4-7 reliability/P5.7 unhealthy plugins and the way roots are watched are reported", func(t *testing.T) {
		w := newWorld(t)
		w.write("good/plugin.json", `{"name":"good","lashd":{"prompt":[{"slot":"guidance","content":"x"}]}}`)
		w.write("bad/plugin.json", `{"name":3}`)
		w.start()
		w.status("", "good", protocol.PluginLoaded)
		w.until("its directory is watched", func() bool { _, roots, _ := w.Loader.Condition(); return len(roots) == 1 && roots[0].Watch != "" })
		sandbox, roots, unhealthyPlugins := w.Loader.Condition()
		if !strings.HasPrefix(sandbox, "on: ") || len(roots) != 1 || roots[0].Dir != w.user || roots[0].Watch == "" {
			t.Errorf("sandbox %q, roots %+v", sandbox, roots)
		}
		if all := must(w.List(t.Context(), &protocol.PluginListParams{})).of(t); all.UserDir != w.user {
			t.Errorf("plugins of the user belong into %q, want %q", all.UserDir, w.user)
		}
		if len(unhealthyPlugins) != 1 || unhealthyPlugins[0].Name != "bad" || unhealthyPlugins[0].Status != protocol.PluginFailed || len(unhealthyPlugins[0].Problems) == 0 {
			t.Errorf("not as they should be: %+v", unhealthyPlugins)
		}
	})
	t.Run("issue/4-7 a plugin that is being loaded does not count as unhealthy", func(t *testing.T) {
		w := newWorld(t)
		began := filepath.Join(t.TempDir(), "began")
		w.write("slow/plugin.json", `{"name":"slow","lashd":{"process":{"command":["sh","-c","echo x > '`+began+`'; exec sleep 60"]}}}`)
		w.start()
		w.until("its program has started", func() bool { _, err := os.Stat(began); return err == nil })
		if _, _, unhealthyPlugins := w.Loader.Condition(); len(unhealthyPlugins) != 0 {
			t.Errorf("not as they should be: %+v", unhealthyPlugins)
		}
	})
}
