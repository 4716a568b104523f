package plan_test

import (
	"testing"

	"lashd/engine/builtin/plan"
	"lashd/engine/plugin"
	"lashd/engine/plugin/plugintest"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestContract(t *testing.T) {
	change := func(s *plugin.Session) {
		args := []byte(`{"steps":[{"text":"look","status":"pending"}]}`)
		_, _ = s.Sources()[0].Provider.Execute(t.Context(), tool.Invocation{Name: "update_plan", Args: args})
	}
	for name, options := range map[string]string{"": `{}`, " in plan mode": `{"mode":"plan"}`} {
		t.Run("contract"+name, func(t *testing.T) {
			plugintest.Run(t, plan.Factory{}, plugintest.Config{Change: change, Options: protocol.PluginOptions{plan.ID: []byte(options)}})
		})
	}
}
