package engine_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestScheduling(t *testing.T) {
	t.Run("plugin/TL-19 parallel calls run first, then serial calls in order; results keep the model's order", func(t *testing.T) {
		seen := &notes{}
		var both sync.WaitGroup
		both.Add(2)
		work := func(name string, serial bool) toolFunc {
			return toolFunc{name: name, contract: protocol.ToolContract{Serial: serial}, run: func(context.Context, tool.Invocation) (tool.Result, error) {
				seen.add("begin " + name)
				if !serial {
					both.Done()
					both.Wait() // for the other call to run too
				}
				seen.add("end " + name)
				return tool.Result{Output: protocol.Succeed(name)}, nil
			}}
		}
		d := start(t, setup{
			model: replies(calls("alone1", "beside1", "unknown", "alone2", "beside2"), scripted.Reply{Text: "done"}),
			tools: []tool.Provider{work("alone1", true), work("beside1", false), work("alone2", true), work("beside2", false)},
		})
		id := d.session(t)
		report := d.turn(t, id, "go")
		slices.Sort(seen.list[:2])
		slices.Sort(seen.list[2:4])
		want := []string{
			"begin beside1", "begin beside2", "end beside1", "end beside2", "begin alone1", "end alone1", "begin alone2", "end alone2",
		}
		if !slices.Equal(seen.list, want) {
			t.Errorf("ran as %q", seen.list)
		}
		var names []string
		for _, call := range report.ToolCalls {
			names = append(names, call.Name+" "+string(call.Output.Status))
		}
		if !slices.Equal(names, []string{"alone1 success", "beside1 success", "unknown failure", "alone2 success", "beside2 success"}) {
			t.Errorf("reported as %q", names)
		}
		if got := resultsOf(d.graph(t, id).Data); len(got) != 5 || got[0] != "alone1" || got[1] != "beside1" || got[3] != "alone2" || got[4] != "beside2" {
			t.Errorf("the model sees %q", got)
		}
	})
}

func TestDeliveries(t *testing.T) {
	t.Run("plugin/S-05 a message that the model will see continues the turn, and a dropped one does not", func(t *testing.T) {
		for _, c := range []struct {
			role   protocol.Role
			said   []string
			issues []string
		}{
			{protocol.RoleUser, []string{"go", "first", "wait", "ok"}, nil},
			{protocol.RoleSystem, []string{"go", "first", "wait", "second"}, nil},
			{protocol.RoleAssistant, []string{"go", "first"}, []string{"message_role_dropped"}},
			{protocol.RoleEvent, []string{"go", "first"}, []string{"message_role_dropped"}},
		} {
			once := false
			d := start(t, setup{model: replies(scripted.Reply{Text: "first"}, scripted.Reply{Text: "second"}), plugins: plugins(
				atCheckpoint("a", func(protocol.Boundary) ([]plugin.Directive, error) {
					if once {
						return nil, nil
					}
					once = true
					return []plugin.Directive{plugin.Enqueue(plugin.Message{Role: c.role, Content: "wait"})}, nil
				}))})
			id := d.session(t)
			report := d.turn(t, id, "go")
			var issues []string
			for _, issue := range report.Issues {
				issues = append(issues, issue.Code)
			}
			if got := said(d.graph(t, id).Data); report.State != protocol.TurnCompleted || !slices.Equal(issues, c.issues) || !slices.Equal(got, c.said) {
				t.Errorf("%s: %s, issues %q, history %q, want %q", c.role, report.State, issues, got, c.said)
			}
		}
	})
}

func TestViewOfHooks(t *testing.T) {
	t.Run("plugin/HC-01 hooks of a turn see the whole session: its title, its usage and its number of turns", func(t *testing.T) {
		var seen []protocol.Session
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok", Usage: &protocol.Usage{Input: 7}}), plugins: plugins(hooked{"a", func(r *plugin.Registrar) {
			r.Turn().Before(func(_ context.Context, c *plugin.TurnContext) ([]plugin.Directive, error) {
				seen = append(seen, c.View.Session)
				return nil, nil
			})
		}})})
		id := d.session(t)
		must[*protocol.SeqResult](t)(d.Sessions.SetTitle(t.Context(), &protocol.SessionSetTitleParams{SessionID: id, Title: "named"}))
		d.turn(t, id, "one")
		head := d.graph(t, id).Head
		d.turn(t, id, "two")
		s := seen[1]
		if s.ID != id || s.Title != "named" || s.Usage.Input != 7 || s.TurnIndex != 1 || s.Head != head || s.State != protocol.SessionRunning || s.CreatedAtMs == 0 {
			t.Errorf("seen %+v", s)
		}
	})
}
