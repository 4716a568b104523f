package plugin_test

import (
	"context"
	"encoding/json"
	"testing"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func sessionRules(t *testing.T) {
	none, other := new(protocol.SessionID("")), new(protocol.SessionID("x"))
	host := newHost(t, queries(func(g plugin.OperationGroup) {
		for _, rule := range []protocol.SessionRule{"required", "optional", "forbidden"} {
			g.Query(info(string(rule), rule), echo)
		}
	}))
	for _, c := range []struct {
		own                           protocol.SessionID
		to                            plugin.Target
		required, optional, forbidden string
	}{
		{"s", plugin.Target{}, "missingSession", `"-"`, `"-"`},
		{"s", plugin.Target{Current: true}, `"s"`, `"s"`, "unexpectedSession"},
		{"s", plugin.Target{Explicit: other}, `"x"`, `"x"`, "unexpectedSession"},
		{"s", plugin.Target{Explicit: other, Current: true}, `"x"`, `"x"`, "unexpectedSession"},
		{"s", plugin.Target{Explicit: none}, "missingSession", `"-"`, `"-"`},
		{"s", plugin.Target{Explicit: none, Current: true}, "missingSession", `"-"`, `"-"`},
		{"", plugin.Target{Current: true}, "missingSession", `"-"`, `"-"`},
		{"", plugin.Target{Explicit: other, Current: true}, `"x"`, `"x"`, "unexpectedSession"},
	} {
		s, err := host.Open(t.Context(), "d", nil, plugin.BuildContext{SessionID: c.own})
		if err != nil {
			t.Fatal(err)
		}
		for rule, want := range map[string]string{"required": c.required, "optional": c.optional, "forbidden": c.forbidden} {
			out, err := s.Query(t.Context(), rule, &plugin.OperationCall{SessionID: "ignored"}, c.to)
			if got := string(out) + string(code(err)); got != want {
				t.Errorf("%s session for %+v of %q: %s, want %s", rule, c.to, c.own, got, want)
			}
		}
		_ = s.Close()
	}
}

func badResults(t *testing.T) {
	var result *plugin.OperationResult
	var output json.RawMessage
	s := open(t, queries(func(g plugin.OperationGroup) {
		g.Query(info("q", "forbidden"), func(context.Context, *plugin.OperationCall) (json.RawMessage, error) { return output, nil })
		g.Command(info("c", "forbidden"), func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) { return result, nil })
		g.Task(info("t", "forbidden"), func(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) { panic("clumsy") })
	}))
	for want, r := range map[string]*plugin.OperationResult{
		`operation "c": the operation returned no result`:       nil,
		`operation "c": the output is not valid JSON`:           {Output: raw(`{`)},
		`operation "c": event "e" needs a type and a JSON body`: {Events: []protocol.PluginNode{{Type: "e", Body: raw(`{`)}}},
		`operation "c": a queued turn has no input`:             {Queue: []plugin.QueueTurn{{}}},
	} {
		result = r
		if got, err := s.Command(t.Context(), "c", &plugin.OperationCall{}, plugin.Target{}); got != nil || err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", r, err, want)
		}
	}
	result = &plugin.OperationResult{Events: []protocol.PluginNode{{Type: "e", Body: raw(`1`)}}}
	if got, err := s.Command(t.Context(), "c", &plugin.OperationCall{}, plugin.Target{}); err != nil || string(got.Output) != "null" || len(got.Events) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Task(t.Context(), "t", &plugin.OperationCall{}, plugin.Target{}); err == nil || err.Error() != `operation "t": plugin p: task: panicked: clumsy` {
		t.Errorf("%v", err)
	}
	output = raw(`nonsense`)
	if out, err := s.Query(t.Context(), "q", &plugin.OperationCall{}, plugin.Target{}); code(err) != plugin.OperationFailed {
		t.Errorf("%s, %v", out, err)
	}
}

func TestTask(t *testing.T) {
	t.Run("plugin/OP-09 a cancelled task sees it, and its result still counts", func(t *testing.T) {
		started := make(chan struct{})
		s := open(t, queries(func(g plugin.OperationGroup) {
			g.Task(info("t", "forbidden"), func(ctx context.Context, call *plugin.OperationCall) (*plugin.OperationResult, error) {
				close(started)
				<-ctx.Done()
				return &plugin.OperationResult{Output: raw(`"` + call.Scope + `"`)}, nil
			})
		}))
		ctx, cancel := context.WithCancel(t.Context())
		answers := make(chan *plugin.OperationResult)
		go func() {
			got, _ := s.Task(ctx, "t", &plugin.OperationCall{Scope: "scope"}, plugin.Target{})
			answers <- got
		}()
		<-started
		cancel()
		if got := <-answers; got == nil || string(got.Output) != `"scope"` {
			t.Errorf("%+v", got)
		}
	})
}
