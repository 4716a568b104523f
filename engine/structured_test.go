package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/param"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// citySchema is the schema that the tests ask for.
const citySchema = `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`

// recited is a model that gives one reply after the other, whatever it is asked. After the last reply it stalls.
type recited struct {
	replies []scripted.Reply
	asked   []*provider.Request
}

func (r *recited) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	r.asked = append(r.asked, req)
	next := scripted.Reply{Stall: true}
	if len(r.replies) > 0 {
		next, r.replies = r.replies[0], r.replies[1:]
	}
	return scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: slices.Repeat([]scripted.Reply{next}, 9)}}).Stream(ctx, req)
}

// recites is a model that replies with texts, each for 10 input and 2 output tokens.
func recites(texts ...string) *recited {
	r := &recited{}
	for _, text := range texts {
		r.replies = append(r.replies, scripted.Reply{Text: text, Usage: &protocol.Usage{Input: 10, Output: 2}})
	}
	return r
}

// value starts a turn that must end with a city.
func (d *daemon) value(t testing.TB, id protocol.SessionID, input string) protocol.TurnID {
	t.Helper()
	return must[*protocol.TurnStartResult](t)(d.Turns.Start(t.Context(), &protocol.TurnStartParams{
		SessionID: id, Input: text(input), Schema: json.RawMessage(citySchema),
	})).TurnID
}

// conversation returns the messages of a session, each as role and text.
func (d *daemon) conversation(t *testing.T, id protocol.SessionID) (all []string) {
	t.Helper()
	for _, n := range d.graph(t, id).Data {
		if n.Message != nil {
			all = append(all, string(n.Message.Role)+": "+n.Message.Parts[0].Text)
		}
	}
	return all
}

const missingName = `The reply does not match the JSON Schema: validating root: required: missing properties: ["name"]. Reply again, with only the JSON value.`

func TestStructuredOutput(t *testing.T) {
	t.Run("part9/structured a turn ends with the value, after a reply that is repaired and shown", func(t *testing.T) {
		model := recites(`{}`, "```json\n{ \"name\": \"Bern\" }\n```")
		keep, read := traced(t)
		d := start(t, setup{model: model, config: keep})
		id := d.session(t)
		o := d.observe(t, id)
		r := d.wait(t, d.value(t, id, "the capital?"))
		want := protocol.TurnOutcome{Kind: protocol.OutcomeFinalValue, Text: "```json\n{ \"name\": \"Bern\" }\n```", Value: json.RawMessage(`{"name":"Bern"}`)}
		if diff := cmp.Diff(&want, r.Outcome); diff != "" || r.State != protocol.TurnCompleted {
			t.Errorf("the turn is %s: %s", r.State, diff)
		}
		if ended := o.over(r.TurnID); string(ended.Outcome.Value) != `{"name":"Bern"}` {
			t.Errorf("the last event has the outcome %+v", ended.Outcome)
		}
		if diff := cmp.Diff([]string{"user: the capital?", `assistant: {}`, "event: " + missingName, "assistant: " + want.Text}, d.conversation(t, id)); diff != "" {
			t.Errorf("the conversation: %s", diff)
		}
		if !slices.ContainsFunc(o.all, func(e protocol.Event) bool {
			return e.Type == protocol.EventItemCompleted && e.Item.Kind == protocol.ItemNotice && e.Item.Text == missingName && e.Seq > 0
		}) {
			t.Error("no notice shows the repair")
		}
		if len(r.Calls) != 2 || r.Usage.Input != 20 || len(r.Issues) != 1 || r.Issues[0].Code != "invalid_value" {
			t.Errorf("%d calls, usage %+v, issues %+v", len(r.Calls), r.Usage, r.Issues)
		}
		for i, req := range model.asked {
			if string(req.Output.Schema) != citySchema || !req.Output.JSON || !strings.HasSuffix(req.System, citySchema) {
				t.Errorf("request %d: output %+v, system prompt %q", i, req.Output, req.System)
			}
		}
		if _, data := read(); !strings.Contains(string(data), "invalid_value") {
			t.Error("the trace does not have the problem")
		}
	})

	t.Run("part9/structured the turn fails with the kind invalidValue after two repairs", func(t *testing.T) {
		model := recites("one", "two", "three", "four")
		d := start(t, setup{model: model})
		id := d.session(t)
		r := d.wait(t, d.value(t, id, "go"))
		if r.State != protocol.TurnFailed || r.Outcome.Kind != protocol.OutcomeInvalidValue || r.Outcome.Value != nil || len(model.asked) != 3 {
			t.Errorf("the turn is %s after %d calls: %+v", r.State, len(model.asked), r.Outcome)
		}
		if got := d.conversation(t, id); len(got) != 6 || got[5] != "assistant: three" {
			t.Errorf("the conversation is %q", got)
		}
		if next := d.turn(t, id, "and now?"); next.Outcome.Kind != protocol.OutcomeAssistantMessage || next.Outcome.Text != "four" {
			t.Errorf("the next turn has the outcome %+v", next.Outcome)
		}
		if last := model.asked[3]; last.Output.Schema != nil || strings.Contains(last.System, "JSON Schema") {
			t.Errorf("the next turn asks for %+v", last.Output)
		}
	})

	t.Run("part9/structured a daemon that stops during a repair neither repeats nor loses the reply before it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := recites("no city")
			d := start(t, setup{model: model})
			id := d.session(t)
			turn := d.value(t, id, "go")
			synctest.Wait() // the second call stalls
			if len(model.asked) != 2 {
				t.Fatalf("%d calls before the restart", len(model.asked))
			}
			again := recites(`{"name":"Bern"}`)
			d = d.restart(t, func(s *setup) { s.model = again })
			r := d.wait(t, turn)
			if string(r.Outcome.Value) != `{"name":"Bern"}` || len(again.asked) != 1 || len(r.Calls) != 2 || r.Usage.Input != 20 {
				t.Errorf("outcome %+v after %d more calls, calls %+v, usage %+v", r.Outcome, len(again.asked), r.Calls, r.Usage)
			}
			if diff := cmp.Diff(model.asked[1].System, again.asked[0].System); diff != "" || len(again.asked[0].Messages) != 3 {
				t.Errorf("the resumed turn asks with %d messages, another prompt: %s", len(again.asked[0].Messages), diff)
			}
			if got := d.conversation(t, id); len(got) != 4 || got[1] != "assistant: no city" {
				t.Errorf("the conversation is %q", got)
			}
		})
	})

	t.Run("part9/structured an interrupt during a repair cancels the turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: recites("no city")})
			turn := d.value(t, d.session(t), "go")
			synctest.Wait()
			d.interrupt(t, turn)
			if r := d.wait(t, turn); r.State != protocol.TurnCancelled || r.Outcome.Value != nil || len(r.Calls) != 2 {
				t.Errorf("the turn is %s: %+v, %d calls", r.State, r.Outcome, len(r.Calls))
			}
		})
	})

	t.Run("part9/structured replies that were cut off or filtered keep their own outcome", func(t *testing.T) {
		for stop, want := range map[protocol.StopReason]protocol.OutcomeKind{
			protocol.StopOutputLimit: protocol.OutcomeIncomplete, protocol.StopContentFilter: protocol.OutcomeProviderError,
		} {
			model := recites(`{"name":"Be`)
			model.replies[0].Stop = stop
			d := start(t, setup{model: model})
			if r := d.wait(t, d.value(t, d.session(t), "go")); r.Outcome.Kind != want || len(model.asked) != 1 {
				t.Errorf("after %s the outcome is %+v, %d calls", stop, r.Outcome, len(model.asked))
			}
		}
	})

	t.Run("part9/structured a queued input keeps its schema over a restart, and another input has none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: recites()})
			id := d.session(t)
			d.begin(t, id, "first")
			wanted, plain := d.value(t, id, "second"), d.begin(t, id, "third").TurnID
			synctest.Wait()
			model := recites("first is done", `{"name":"Bern"}`, "third is done")
			d = d.restart(t, func(s *setup) { s.model = model })
			if r := d.wait(t, wanted); string(r.Outcome.Value) != `{"name":"Bern"}` {
				t.Errorf("the queued turn has the outcome %+v", r.Outcome)
			}
			if r := d.wait(t, plain); r.Outcome.Kind != protocol.OutcomeAssistantMessage || r.Outcome.Text != "third is done" {
				t.Errorf("the turn after it has the outcome %+v", r.Outcome)
			}
		})
	})

	t.Run("part9/structured a turn that continues in another frame still ends with the value", func(t *testing.T) {
		l := &leaver{asks: func(n int) (*protocol.FrameSwitch, error) {
			if n == 1 {
				return leave("k", "go on"), nil
			}
			return nil, nil
		}}
		model := recites(`{"name":"Bern"}`)
		d := start(t, setup{model: model, driver: scheme{callbacks: l.callbacks}})
		r := d.follow(t, d.value(t, d.session(t), "go"))
		if string(r.Outcome.Value) != `{"name":"Bern"}` || len(model.asked) != 1 {
			t.Errorf("the last turn has the outcome %+v", r.Outcome)
		}
	})

	t.Run("part9/structured a wrong schema is rejected, with what is wrong, and so is one for a running turn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: recites()})
			id := d.session(t)
			for schema, want := range map[string]string{
				`{"type":"city"}`: "/schema: is not a valid JSON Schema: ", `[]`: "/schema: must be a JSON Schema, which is an object",
				`{"title":"` + strings.Repeat("x", 64<<10) + `"}`: "/schema: has more than 65536 bytes",
			} {
				_, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: id, Input: text("go"), Schema: json.RawMessage(schema)})
				if bad, ok := errors.AsType[*param.Error](err); !ok || bad.Pointer != "/schema" || !strings.HasPrefix(err.Error(), want) {
					t.Errorf("%.20s: %v", schema, err)
				}
			}
			if turns := d.allTurns(t, id); len(turns) != 0 {
				t.Errorf("%d turns were stored", len(turns))
			}
			d.begin(t, id, "go")
			synctest.Wait()
			_, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{
				SessionID: id, Input: text("more"), Schema: json.RawMessage(citySchema), WhenBusy: protocol.BusySteer,
			})
			if bad, ok := errors.AsType[*param.Error](err); !ok || bad.Pointer != "/schema" {
				t.Errorf("steering with a schema: %v", err)
			}
		})
	})

	t.Run("part9/structured a steered input does not change what the turn ends with", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			model := recites()
			d := start(t, setup{model: model})
			id := d.session(t)
			turn := d.value(t, id, "go")
			synctest.Wait()
			must[*protocol.TurnSteerResult](t)(d.Turns.Steer(t.Context(), &protocol.TurnSteerParams{TurnID: turn, Input: text("in Switzerland")}))
			again := recites(`{"name":"Paris"}`, `{"name":"Bern"}`)
			d = d.restart(t, func(s *setup) { s.model = again })
			if r := d.wait(t, turn); string(r.Outcome.Value) != `{"name":"Bern"}` || len(again.asked) != 2 {
				t.Errorf("outcome %+v after %d calls", r.Outcome, len(again.asked))
			}
		})
	})
}
