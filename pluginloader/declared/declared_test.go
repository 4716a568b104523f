package declared_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/declared"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// others are tools of another plugin.
type others struct{ names []string }

func (o others) Tools() []tool.Tool {
	var list []tool.Tool
	for _, name := range o.names {
		list = append(list, tool.Tool{Manifest: protocol.ToolManifest{Name: name, Description: "d"}})
	}
	return list
}

func (others) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{Output: protocol.Succeed("done")}, nil
}

func having(id string, names ...string) plugin.Factory {
	return plugin.Static(id, func(r *plugin.Registrar) error {
		r.Tools().Add(others{names})
		return nil
	})
}

// read returns the part that a manifest describes.
func read(t *testing.T, lashd string) plugin.Spec {
	t.Helper()
	f, problems := manifest.Parse("plugin.json", []byte(`{"name":"a","lashd":`+lashd+`}`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return declared.Spec(f.Lashd.Prompt, f.Lashd.ToolSwitches)
}

func TestPrompts(t *testing.T) {
	t.Run("issue/4-2 texts of a manifest enter the system prompt by slot and priority, and only with their tools", func(t *testing.T) {
		model := &builtintest.Recorder{Provider: builtintest.Calling()}
		d := builtintest.Start(t, t.TempDir(), 0, model, having("x", "one"), plugin.Static("a", read(t, `{"prompt":[
			{"slot":"guidance","priority":20,"content":"second"},
			{"slot":"guidance","priority":10,"title":"Head","content":"first"},
			{"slot":"guidance","tools":["one"],"content":"with one"},
			{"slot":"guidance","tools":["two"],"content":"with two"},
			{"slot":"intro","content":"last"}]}`)))
		d.Turn(t, d.Session(t, nil), "hello")
		got := model.Last(t).System
		if !strings.HasSuffix(got, "with one\n\n# Head\n\nfirst\n\nsecond\n\nlast") || strings.Contains(got, "with two") {
			t.Errorf("the prompt is %q", got)
		}
	})
}

func told(t *testing.T, model *builtintest.Recorder) []string {
	t.Helper()
	var names []string
	for _, m := range model.Last(t).Tools {
		names = append(names, m.Name)
	}
	return names
}

func set(t *testing.T, d *builtintest.Daemon, id protocol.SessionID, name string, member bool) {
	t.Helper()
	builtintest.Must(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{name: member}}))(t)
}

func TestSwitches(t *testing.T) {
	t.Run("issue/4-2 a tool that is off is hidden from the model until a person switches it on, which survives a restart", func(t *testing.T) {
		dir, model := t.TempDir(), &builtintest.Recorder{Provider: builtintest.Calling()}
		plugins := []plugin.Factory{
			plugin.Static("a", read(t, `{"toolSwitches":{"off":["two","three","unknown"]}}`)), having("x", "one", "two", "three"),
			plugin.Static("b", read(t, `{"toolSwitches":{"on":["three"]}}`)),
		}
		d := builtintest.Start(t, dir, 0, model, plugins...)
		id, other := d.Session(t, nil), d.Session(t, nil)
		d.Turn(t, id, "hello")
		if got := told(t, model); !slices.Equal(got, []string{"one", "three"}) {
			t.Errorf("the model has %q", got)
		}
		set(t, d, id, "two", true)
		d.Turn(t, id, "hello")
		if got := told(t, model); !slices.Equal(got, []string{"one", "three", "two"}) {
			t.Errorf("after a person switched it on the model has %q", got)
		}
		d.Stop()
		d = builtintest.Start(t, dir, 0, model, plugins...)
		d.Turn(t, id, "hello")
		if got := told(t, model); !slices.Equal(got, []string{"one", "three", "two"}) {
			t.Errorf("after a restart the model has %q", got)
		}
		d.Turn(t, other, "hello")
		if got := told(t, model); !slices.Equal(got, []string{"one", "three"}) {
			t.Errorf("in another session the model has %q", got)
		}
	})
}

func TestMonitors(t *testing.T) {
	t.Run("plugin/MN-01 every session has the monitors of a manifest, which know the plugin's directory", func(t *testing.T) {
		f, problems := manifest.Parse("plugin.json", []byte(`{"name":"a","lashd":{"monitors":[
			{"monitorId":"m","command":"echo in $PLUGIN_ROOT; exec sleep 600","armOn":"sessionStart","wake":"notify","restartOnRestore":true},
			{"monitorId":"n","command":"true"}]}}`))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), plugin.Static("a", declared.Monitors(f.Lashd.Monitors, "/its/place")))
		id := d.Session(t, nil)
		got := builtintest.Must(d.Monitors.Status(t.Context(), &protocol.SessionParams{SessionID: id}))(t).Data
		if len(got) != 2 || got[0].Spec.ID != "a:m" || !got[0].Armed || !got[0].Spec.Restart || got[0].Spec.Wake != protocol.WakeNotify || got[1].Armed {
			t.Errorf("there are %+v", got)
		}
		var told []protocol.MonitorUpdate
		for len(told) == 0 {
			told = builtintest.Must(d.Monitors.Updates(t.Context(), &protocol.SessionParams{SessionID: id}))(t).Events
		}
		if told[0].Message != "in /its/place" {
			t.Errorf("it says %q", told[0].Message)
		}
	})
}
