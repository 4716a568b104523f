package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestTurnEnvironment(t *testing.T) {
	t.Run("runtime/T04 each iteration of a turn builds the prompt once and has the current tools", func(t *testing.T) {
		script := replies(calls("open"), calls("late"), scripted.Reply{Text: "done"})
		var offered [][]string
		var system []string
		model := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
			var names []string
			for _, m := range req.Tools {
				names = append(names, m.Name)
			}
			slices.Sort(names)
			offered, system = append(offered, names), append(system, req.System)
			for chunk, err := range script.Stream(ctx, req) {
				if !yield(chunk, err) {
					return
				}
			}
		})
		open := toolFunc{name: "open", run: func(ctx context.Context, c tool.Invocation) (tool.Result, error) {
			_, err := plugin.ForTool(c).State.SetMembership(ctx, "", []string{"late"}, true)
			return tool.Result{Output: protocol.Succeed("opened")}, err
		}}
		asked := 0
		counts := hooked{"counts", func(r *plugin.Registrar) {
			r.Prompt().Hook(func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) {
				asked++
				return []plugin.Prompt{{Slot: plugin.SlotGuidance, Content: fmt.Sprintf("asked %d times", asked)}}, nil
			})
		}}
		d := start(t, setup{model: model, tools: []tool.Provider{open, says("late", "ran")}, plugins: plugins(counts)})
		id := d.session(t)
		must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"late": false}}))
		before := asked
		if report := d.turn(t, id, "go"); report.Outcome.Text != "done" {
			t.Fatalf("the turn is %+v", report)
		}
		want := [][]string{{"open"}, {"late", "open"}, {"late", "open"}}
		if fmt.Sprint(offered) != fmt.Sprint(want) {
			t.Errorf("the model was offered %v, want %v", offered, want)
		}
		if asked-before != 3 {
			t.Errorf("the prompt was asked for %d times in 3 iterations", asked-before)
		}
		if len(system) != 3 || system[0] == system[1] || system[1] == system[2] {
			t.Errorf("the model was given the prompts %q", system)
		}
	})
}
