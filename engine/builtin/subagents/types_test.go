package subagents_test

import (
	"slices"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/subagents"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// describing is a plugin that describes kinds of agents.
type describing struct {
	plugin.Factory
	types string
}

// Extensions implements plugin.Extender.
func (d describing) Extensions() []plugin.Extension {
	return []plugin.Extension{{ID: subagents.TypesID, Payload: []byte(d.types)}}
}

func TestTypes(t *testing.T) {
	t.Run("part13/5 a type of agent has its prompt and only those of its tools that the session has", func(t *testing.T) {
		types := describing{plugin.Static("types", func(*plugin.Registrar) error { return nil }), `[
			{"name":"p:reader","description":"Reads files","prompt":"You only read.","tools":["list_agents","shell"],"model":"none"},
			{"name":"p:all","tools":null,"without":["spawn_agent"]}, {"name":"p:none","tools":[]}]`}
		model := &builtintest.Recorder{Provider: scripted.New(&scripted.Script{Turns: []scripted.Turn{one, two, says("third job", text("three")),
			says("go", calls(call("spawn_agent", `{"task":"first job","name":"a","type":"p:reader","wait":true}`)), calls(call("spawn_agent", `{"task":"second job","name":"b","type":"p:all","wait":true}`)),
				calls(call("spawn_agent", `{"task":"third job","name":"c","type":"p:none","wait":true}`)), text("done"))}})}
		d := builtintest.Start(t, t.TempDir(), 0, model, subagents.Factory{Knows: func(string) bool { return false }}, types)
		id := d.Session(t, nil)
		r := d.Turn(t, id, "go")
		if got := model.Asked[0].System; !strings.Contains(got, "- p:reader: Reads files") {
			t.Errorf("the prompt has no list of types: %s", got)
		}
		tools := map[string][]string{}
		for _, asked := range model.Asked {
			for _, job := range []string{"first job", "second job", "third job"} {
				if asked.Messages[0].Text(protocol.PartText) != job {
					continue
				}
				for _, m := range asked.Tools {
					tools[job] = append(tools[job], m.Name)
				}
				if prompt := strings.Contains(asked.System, "You only read."); prompt != (job == "first job") {
					t.Errorf("%s: the prompt of the type is in it: %v", job, prompt)
				}
			}
		}
		if got := tools["first job"]; !slices.Equal(got, []string{"submit_error", "list_agents"}) && !slices.Equal(got, []string{"list_agents", "submit_error"}) {
			t.Errorf("the reader has the tools %q", got)
		}
		if got := tools["second job"]; slices.Contains(got, "spawn_agent") || !slices.Contains(got, "send_agent") {
			t.Errorf("the agent without spawn_agent has the tools %q", got)
		}
		if got := tools["third job"]; !slices.Equal(got, []string{"submit_error"}) {
			t.Errorf("the agent without tools has %q", got)
		}
		if s := decode[subagents.Status](t, outputs(r)[0]); s.Capability != "p:reader" || s.Result == nil || s.Result.Status != protocol.TaskCompleted {
			t.Errorf("its status is %+v", s)
		}
	})
}
