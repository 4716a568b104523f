package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// moody is a plugin with an input "mood" that records where it sees it.
func moody(seen *notes, required bool) hooked {
	schema := `{"type":"object","properties":{"mood":{"enum":["calm","bold"]}},"required":["mood"],"additionalProperties":false}`
	return hooked{"mood/1", func(r *plugin.Registrar) {
		r.Turn().Input(plugin.TurnInput{Schema: json.RawMessage(schema), Required: required})
		r.Turn().Before(func(_ context.Context, c *plugin.TurnContext) ([]plugin.Directive, error) {
			seen.add("turn " + string(c.Inputs["mood/1"]))
			c.Inputs["mood/1"][0] = '!'
			return nil, nil
		})
		r.Prompt().Hook(func(_ context.Context, c *plugin.PromptContext) ([]plugin.Prompt, error) {
			seen.add("prompt " + string(c.Inputs["mood/1"]))
			return nil, nil
		})
		r.Operations().Command(protocol.OperationInfo{Name: "later"}, func(_ context.Context, call *plugin.OperationCall) (*plugin.OperationResult, error) {
			q := plugin.QueueTurn{Input: text("later")}
			err := json.Unmarshal(call.Args, &q.PluginInputs)
			return &plugin.OperationResult{Queue: []plugin.QueueTurn{q}}, err
		})
	}}
}

func mood(value string) protocol.PluginInputs {
	return protocol.PluginInputs{"mood/1": json.RawMessage(value)}
}

const (
	calm = `{"mood":"calm"}`
	bold = `{"mood":"bold"}`
)

func (d *daemon) inMood(t *testing.T, id protocol.SessionID, value string, busy protocol.WhenBusy) *protocol.TurnStartResult {
	t.Helper()
	p := &protocol.TurnStartParams{SessionID: id, Input: text("go"), PluginInputs: mood(value), WhenBusy: busy}
	return must[*protocol.TurnStartResult](t)(d.Turns.Start(t.Context(), p))
}

// stuck is a model that never answers.
var stuck = modelFunc(func(ctx context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
	<-ctx.Done()
	yield(provider.Chunk{}, ctx.Err())
})

func TestPluginInputs(t *testing.T) {
	t.Run("plugin/HK-31 beforeTurn and prompt hooks see the plugin inputs of the turn", func(t *testing.T) {
		seen := &notes{}
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(moody(seen, true))})
		id := d.session(t)
		d.wait(t, d.inMood(t, id, calm, "").TurnID)
		if !slices.Equal(seen.list, []string{"turn " + calm, "prompt " + calm}) {
			t.Errorf("seen %q", seen.list)
		}
	})
	t.Run("plugin/HK-31 a missing or invalid plugin input is rejected before the turn exists", func(t *testing.T) {
		seen := &notes{}
		d := start(t, setup{model: replies(), plugins: plugins(moody(seen, true))})
		id := d.session(t)
		for pointer, inputs := range map[string][]protocol.PluginInputs{
			"/pluginInputs/mood~11": {nil, mood(`{"mood":"odd"}`), mood(`"calm"`), mood(`{"mood":"calm","more":1}`)},
			"/pluginInputs/none":    {{"mood/1": json.RawMessage(calm), "none": json.RawMessage(`1`)}},
		} {
			for _, in := range inputs {
				for _, busy := range []protocol.WhenBusy{protocol.BusyQueue, protocol.BusySteer} {
					_, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: text("go"), PluginInputs: in, WhenBusy: busy})
					if p, ok := errors.AsType[*param.Error](err); !ok || p.Pointer != pointer {
						t.Errorf("%s: %v, want an error at %s", in, err, pointer)
					}
				}
			}
		}
		turns := must[*protocol.TurnListResult](t)(d.Turns.List(t.Context(), &protocol.TurnListParams{SessionID: id}))
		queue := must[*protocol.QueueListResult](t)(d.Queue.List(t.Context(), &protocol.QueueListParams{SessionID: id, All: true}))
		if len(turns.Data)+len(queue.Data)+len(seen.list) != 0 {
			t.Errorf("turns %+v, queue %+v, hooks saw %q", turns.Data, queue.Data, seen.list)
		}
	})
	t.Run("plugin/HK-31 plugin inputs survive the queue and a restart", func(t *testing.T) {
		seen := &notes{}
		d := start(t, setup{model: stuck, plugins: plugins(moody(seen, true))})
		id := d.session(t)
		first, second := d.inMood(t, id, calm, ""), d.inMood(t, id, bold, "")
		again := &notes{}
		d = d.restart(t, func(s *setup) { s.model, s.plugins = replies(scripted.Reply{Text: "ok"}), plugins(moody(again, true)) })
		d.wait(t, first.TurnID)
		d.wait(t, second.TurnID)
		if got := again.list; len(got) < 3 || !slices.Equal(got[len(got)-3:], []string{"prompt " + calm, "turn " + bold, "prompt " + bold}) {
			t.Errorf("seen after the restart: %q", got)
		}
	})
	t.Run("plugin/HK-31 a steered input that gets its own turn keeps its plugin inputs", func(t *testing.T) {
		seen, asked, answers := &notes{}, make(chan struct{}), replies(scripted.Reply{Text: "ok"})
		var calls atomic.Int64
		model := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
			if calls.Add(1) == 1 {
				close(asked)
				stuck(ctx, req, yield)
				return
			}
			answers.Stream(ctx, req)(yield)
		})
		d := start(t, setup{model: model, plugins: plugins(moody(seen, true))})
		id := d.session(t)
		first := d.inMood(t, id, calm, "")
		<-asked
		d.inMood(t, id, bold, protocol.BusySteer)
		d.interrupt(t, first.TurnID)
		d.wait(t, first.TurnID)
		must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: id}))
		if !slices.Equal(seen.list, []string{"turn " + calm, "prompt " + calm, "turn " + bold, "prompt " + bold}) {
			t.Errorf("seen %q", seen.list)
		}
	})
	t.Run("plugin/HK-31 plugin/OP-07 an operation that queues a turn must set its plugin inputs", func(t *testing.T) {
		seen := &notes{}
		d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(moody(seen, true))})
		id := d.session(t)
		_, err := d.Operations.Command(t.Context(), &protocol.OperationParams{SessionID: id, Name: "later"})
		if e, ok := errors.AsType[*plugin.OperationError](err); !ok || e.Code != plugin.OperationFailed {
			t.Errorf("without: %v", err)
		}
		args := json.RawMessage(`{"mood/1":` + bold + `}`)
		must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), &protocol.OperationParams{SessionID: id, Name: "later", Args: args}))
		must[*protocol.SessionWaitResult](t)(d.Sessions.Wait(t.Context(), &protocol.SessionWaitParams{SessionID: id}))
		if !slices.Equal(seen.list, []string{"turn " + bold, "prompt " + bold}) {
			t.Errorf("seen %q", seen.list)
		}
	})
	t.Run("plugin/HK-31 clients can list plugin inputs, and a plugin declares one at most", func(t *testing.T) {
		d := start(t, setup{model: replies(), plugins: plugins(moody(&notes{}, true))})
		all := must[*protocol.OperationListResult](t)(d.Operations.List(t.Context(), &protocol.OperationListParams{})).TurnInputs
		if len(all) != 1 || all[0].Plugin != "mood/1" || !all[0].Required || len(all[0].Schema) == 0 {
			t.Errorf("told of %+v", all)
		}
		twice := hooked{"twice", func(r *plugin.Registrar) {
			r.Turn().Input(plugin.TurnInput{})
			r.Turn().Input(plugin.TurnInput{})
		}}
		_, err := start(t, setup{model: replies(), plugins: plugins(twice)}).grant(t, protocol.Authority{})
		if e, ok := errors.AsType[*plugin.BuildError](err); !ok || e.Plugin != "twice" {
			t.Errorf("twice: %v", err)
		}
	})
	t.Run("plugin/HK-31 plugin/PR-06 a turn that continues in another frame keeps the plugin inputs", func(t *testing.T) {
		seen := &notes{}
		l := &leaver{asks: func(n int) (*protocol.FrameSwitch, error) {
			if n == 1 {
				return leave("next", "go on"), nil
			}
			return nil, nil
		}}
		d := start(t, setup{
			model: replies(scripted.Reply{Text: "ok"}), driver: scheme{callbacks: l.callbacks}, plugins: plugins(moody(seen, true)),
		})
		first := d.inMood(t, d.session(t), bold, "").TurnID
		if last := d.follow(t, first); last.TurnID == first || last.State != protocol.TurnCompleted {
			t.Errorf("followed to %+v", last)
		}
		if got, want := seen.all(), []string{"turn " + bold, "prompt " + bold, "turn " + bold, "prompt " + bold}; !slices.Equal(got, want) {
			t.Errorf("seen %q, want %q", got, want)
		}
	})
}
