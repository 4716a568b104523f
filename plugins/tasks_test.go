//go:build unix

package plugins_test

import (
	"encoding/json"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/plugin"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// background has a plugin do what outlives a call, with what it may ask of tasks and monitors.
func background(t *testing.T, f plugin.Factory) {
	d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), f)
	id := d.Session(t, nil)
	for _, c := range []struct{ method, params, want string }{
		{"taskStart", `{"taskId":"tsk_a","spec":{"kind":"other","recovery":"rerunnable","handler":"build","payload":{"what":"all"},"events":[{"name":"seen"}]}}`, `"state":"running"`},
		{"taskAwait", `{"taskIds":["tsk_a"],"timeoutMs":20000}`, `"value":{"attempt":1,"payload":{"what":"all"}}`},
		{"taskStart", `{"taskId":"tsk_a","spec":{"kind":"other","recovery":"external"}}`, "refused"},
		{"taskList", `{}`, `"taskId":"tsk_a"`},
		{"taskStart", `{"taskId":"tsk_b","spec":{"kind":"command","recovery":"ownerBound","command":{"script":"sleep 600"}}}`, `"state":"running"`},
		{"taskCancel", `{"taskId":"tsk_b","reason":"enough"}`, `"state":"cancelRequested"`},
		{"taskAwait", `{"taskIds":["tsk_b"],"timeoutMs":20000}`, `"state":"cancelled"`},
		{"monitorStart", `{"spec":{"monitorId":"m","command":"echo line; sleep 600","wake":"notify"}}`, `"state":"running"`},
		{"monitorSnapshot", `{}`, `"monitorId":"m"`},
		{"monitorStop", `{"monitorId":"m"}`, `"state":"stopped"`},
	} {
		args := `{"mode":"host","text":"` + c.method + `","params":` + c.params + `}`
		out := builtintest.Must(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "note", Args: json.RawMessage(args)}))(t).Output
		if !strings.Contains(strings.ReplaceAll(out.Text, " ", ""), c.want) { // Python puts them in
			t.Errorf("%s %s: %s %+v; want %s", c.method, c.params, out.Text, out.Failure, c.want)
		}
	}
	events := builtintest.Must(d.Tasks.Read(t.Context(), &protocol.TaskReadParams{TaskParams: protocol.TaskParams{SessionID: id, TaskID: "tsk_a"}}))(t).Events
	told := 0
	for _, e := range events {
		if e.Kind == protocol.TaskTold && e.Name == "seen" && e.Key == "once" {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the event with a key is stored %d times", told)
	}
}

func TestBackground(t *testing.T) {
	t.Run("plugin/HC-13 plugin/MN-01 a compiled-in plugin has tasks and monitors", func(t *testing.T) { background(t, compiled{}) })
	each(t, "plugin/HC-13 plugin/MN-01 a process has tasks and monitors", func(t *testing.T, c process.Config) {
		c.Uses = []process.Capability{process.UsesTasks, process.UsesMonitors}
		background(t, begin(t, c))
	})
}
