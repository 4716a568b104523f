package plugin_test

import (
	"context"
	"encoding/json"
	"fmt"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Weather provides a read-only tool.
type Weather struct{}

func (Weather) Tools() []tool.Tool {
	return []tool.Tool{{
		Manifest: protocol.ToolManifest{
			Name: "weather", Description: "Reports the weather in a town.", Kind: protocol.ToolKindRead,
			Input: json.RawMessage(`{"type":"object","properties":{"town":{"type":"string"}},"required":["town"]}`),
		},
		Contract: protocol.ToolContract{Replay: protocol.ReplaySafe, TimeoutMs: 5000},
	}}
}

func (Weather) Execute(_ context.Context, call tool.Invocation) (tool.Result, error) {
	var args struct{ Town string }
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err
	}
	if args.Town != "Bern" {
		failed := protocol.Fail(protocol.FailExecution, "no_such_town", "unknown town "+args.Town, protocol.FromTool)
		return tool.Result{Output: failed}, nil
	}
	return tool.Result{Output: protocol.Succeed("It rains.")}, nil
}

// weather is the plugin. It keeps no state, so all sessions share it.
var weather = plugin.Static("weather", func(r *plugin.Registrar) error {
	r.Tools().Add(Weather{})
	return nil
})

func Example_tool() {
	host, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{weather})
	check(err)
	s, err := host.Open(context.Background(), standard.ID, nil, plugin.BuildContext{SessionID: "ses_1", Cwd: "/project"})
	check(err)
	defer s.Close()
	for _, town := range []string{"Bern", "Oz"} {
		args, err := json.Marshal(map[string]string{"town": town})
		check(err)
		for _, source := range s.Sources() {
			result, err := source.Provider.Execute(context.Background(), tool.Invocation{Name: "weather", Args: args})
			check(err)
			fmt.Println(result.Output.Status, result.Output.Text)
		}
	}
	// Output:
	// success It rains.
	// failure unknown town Oz
}
