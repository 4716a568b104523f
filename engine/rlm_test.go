package engine_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"lashd/engine/builtin/batch"
	"lashd/engine/driver/rlm"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// calc is a code executor with a small language: one statement per line.
type calc struct {
	language string        // empty: calc
	waiting  chan struct{} // closed when a cell waits
	mu       sync.Mutex
	globals  map[string]string
}

func (x *calc) Describe(_ context.Context, tools []protocol.ToolManifest) (plugin.CodeDescription, error) {
	var guide strings.Builder
	guide.WriteString("calc has print, set, show, finish, fail and continue_as. Tools:")
	for _, m := range tools {
		guide.WriteString(" " + m.Name)
	}
	return plugin.CodeDescription{Language: cmp.Or(x.language, "calc"), Guide: guide.String()}, nil
}

func (x *calc) Globals(context.Context) (all []protocol.CodeGlobal, _ error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(x.globals)) {
		all = append(all, protocol.CodeGlobal{Name: name, Type: "text", Size: int64(len(x.globals[name]))})
	}
	return all, nil
}

// ReplaysCells lets a cell run again that waited when the daemon stopped.
func (x *calc) ReplaysCells() bool { return true }

func (x *calc) Execute(ctx context.Context, call *plugin.CodeCall, host plugin.CellHost) (r turn.CellReply, _ error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, line := range strings.Split(call.Source, "\n") {
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "":
		case "print":
			r.Printed += rest + "\n"
		case "tools":
			for _, m := range host.Tools() {
				r.Printed += m.Name + "\n"
			}
		case "wait":
			if x.language == "" {
				close(x.waiting)
				<-ctx.Done()
				return r, ctx.Err()
			}
		case "set":
			name, value, _ := strings.Cut(rest, " ")
			x.globals[name] = value
			r.Changed = append(r.Changed, name)
		case "show":
			r.Printed += x.globals[rest] + "\n"
		case "call": // one or more of NAME or NAME={"argument":1}
			if _, err := host.Call(ctx, requests(rest)); err != nil {
				return r, err
			}
		case "finish":
			r.Control = &protocol.ToolControl{Kind: protocol.ControlFinish, Value: json.RawMessage(rest)}
		case "submit_error":
			r.Control = &protocol.ToolControl{Kind: protocol.ControlFail, Value: json.RawMessage(rest)}
		case "continue_as":
			r.Control = switchTo("k"+rest, rest)
		default:
			r.Error, r.Position = "unknown word "+word, &protocol.CodePosition{Line: i + 1, Column: 1}
			return r, nil
		}
	}
	return r, nil
}

func (x *calc) Dirty() bool { return true }

func (x *calc) Snapshot(context.Context) (c plugin.ExecutionChange, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c.Changed = map[string][]byte{}
	for name, value := range x.globals {
		c.Changed[name] = []byte(value)
	}
	return c, nil
}

func (x *calc) Stored() {}

func (x *calc) Restore(_ context.Context, values map[string][]byte) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.globals = map[string]string{}
	for name, value := range values {
		x.globals[name] = string(value)
	}
	return nil
}

// calculating is a setup with the rlm driver and calc.
func calculating(model provider.Provider, more ...plugin.Factory) setup {
	return setup{model: model, driver: rlm.Factory{}, plugins: append(more, calcIn("", nil))}
}

// calcIn is the plugin of calc, with another name for its language unless that is empty.
func calcIn(language string, waiting chan struct{}) plugin.Factory {
	return plugin.Static("calc", func(r *plugin.Registrar) error {
		r.Execution().Executor(&calc{language: language, waiting: waiting, globals: map[string]string{}})
		return nil
	})
}

// calcCell is the text of a reply with a cell.
func calcCell(prose, source string) string { return prose + "<calc>\n" + source + "\n</calc>\n" }

// inOrder is a model that gives its replies one after the other.
func inOrder(texts ...string) provider.Provider {
	return modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
		text := texts[0]
		texts = texts[1:]
		_ = yield(provider.Chunk{Text: text}, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
	})
}

// partsOf returns the messages of a request, one line for each.
func partsOf(req *provider.Request) (all []string) {
	for _, m := range req.Messages {
		var line strings.Builder
		line.WriteString(string(m.Role))
		for _, p := range m.Parts {
			fmt.Fprintf(&line, " %s %q", p.Kind, p.Text)
		}
		all = append(all, line.String())
	}
	return all
}

func TestCodeDriver(t *testing.T) {
	t.Run("runtime/R02 requests have history in emission format, no tools, and globals at the end only", func(t *testing.T) {
		model := &remembering{Provider: scripted.New(&scripted.Script{Turns: []scripted.Turn{
			{Replies: []scripted.Reply{{Text: calcCell("Look:\n", "set a xyz\nprint hello")}, {Text: "done"}}},
			{Replies: []scripted.Reply{{Text: "yes"}}},
		}})}
		s := calculating(model)
		s.tools = append(s.tools, says("look", "x"))
		d := start(t, s)
		id := d.session(t)
		if report := d.turn(t, id, "go"); report.State != protocol.TurnCompleted || report.Outcome.Text != "done" || !report.HadCode {
			t.Errorf("the turn ended as %+v %+v", report.Outcome, report.Issues)
		}
		d.turn(t, id, "and?")
		want := []string{
			`user text "go"`, `assistant prose "Look:\n" code "<calc>\nset a xyz\nprint hello\n</calc>"`, `user output "hello"`, `assistant prose "done"`,
			`user text "and?"`, `user text "Globals from earlier cells: a (text, 3 bytes)."`,
		}
		if got := partsOf(model.asked[2]); !slices.Equal(got, want) {
			t.Errorf("the request has\n%s", strings.Join(got, "\n"))
		}
		if first := partsOf(model.asked[0]); !slices.Equal(first, want[:1]) {
			t.Errorf("the first request has\n%s", strings.Join(first, "\n"))
		}
		for _, req := range model.asked {
			if len(req.Tools) != 0 || req.Choice != provider.ToolsNone || !strings.Contains(req.System, "<calc>\n") || !strings.Contains(req.System, "Tools: look") {
				t.Errorf("%d tools, choice %s, system prompt %s", len(req.Tools), req.Choice, req.System)
			}
		}
		if system := model.asked[0].System; system != model.asked[2].System {
			t.Error("the system prompt has changed")
		}
	})
	t.Run("runtime/R02 prose and code are different items while they arrive, and the same as in history", func(t *testing.T) {
		for size := range 4 {
			synctest.Test(t, func(t *testing.T) {
				text := calcCell("Look: fünf\n\n", "print a\n\nprint b") + "Output: a"
				d := start(t, calculating(replies(scripted.Reply{Reasoning: "hm", Text: text, ChunkSize: size}, scripted.Reply{Text: "b"})))
				id := d.session(t)
				o := d.observe(t, id)
				report := d.turn(t, id, "go")
				agrees(t, d, o, report)
				shown := map[protocol.ItemID]string{}
				for _, e := range o.of(protocol.EventItemDelta) {
					shown[e.ItemID] += e.Text
				}
				var items []string
				for _, e := range o.of(protocol.EventItemCompleted) {
					items = append(items, fmt.Sprintf("%s %s %q", e.Item.Kind, e.Item.Language, e.Item.Text))
					if seen, ok := shown[e.Item.ID]; ok && seen != e.Item.Text {
						t.Errorf("people saw %q, history has %q", seen, e.Item.Text)
					}
				}
				want := []string{`userMessage  "go"`, `reasoning  "hm"`, `agentMessage  "Look: fünf\n\n"`, `codeCell calc "print a\n\nprint b"`, `agentMessage  "b"`}
				if !slices.Equal(items, want) {
					t.Errorf("cut after %d characters, the items are %q", size, items)
				}
			})
		}
	})
	t.Run("runtime/R02 a cell is one item, which starts when the code runs and ends with the result", func(t *testing.T) {
		d := start(t, calculating(replies(scripted.Reply{Text: calcCell("", "set a 1\nprint a")}, scripted.Reply{Text: calcCell("", "set b 2\noops")}, scripted.Reply{Text: "<calc>\nprint"}, scripted.Reply{Text: "done"})))
		id := d.session(t)
		o := d.observe(t, id)
		agrees(t, d, o, d.turn(t, id, "go"))
		var got []string
		for _, e := range o.all {
			if e.Item == nil || e.Item.Kind != protocol.ItemCodeCell || e.Seq == 0 {
				continue
			}
			line := fmt.Sprintf("%s %s %q", e.Type, e.Item.Status, e.Item.Text)
			if c := e.Item.Cell; c != nil {
				line += fmt.Sprintf(" %q %q %v", c.Printed, c.Error, c.Changed)
			}
			got = append(got, line)
		}
		want := []string{
			`item/started inProgress "set a 1\nprint a"`, `item/completed completed "set a 1\nprint a" "a\n" "" [a]`,
			`item/started inProgress "set b 2\noops"`, `item/completed failed "set b 2\noops" "" "unknown word oops" [b]`,
			`item/completed failed "print"`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("the events are\n%s", strings.Join(got, "\n"))
		}
	})
	t.Run("runtime/R02 the stream is stopped at the closing tag, and the usage that follows is kept", func(t *testing.T) {
		usage, read := &protocol.Usage{Input: 3, Output: 2}, 0
		model := modelFunc(func(_ context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
			if req.Messages[len(req.Messages)-1].Parts[0].Kind == protocol.PartOutput {
				_ = yield(provider.Chunk{Text: "done"}, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
				return
			}
			for _, text := range []string{"<calc>\n", "print a\n", "</calc>\n", "Out", "put: a", "</calc>"} {
				if !yield(provider.Chunk{Text: text}, nil) {
					return
				}
			}
			if yield(provider.Chunk{Usage: usage}, nil) {
				read++
			}
		})
		d := start(t, calculating(model))
		report := d.turn(t, d.session(t), "go")
		call := report.Calls[0]
		if report.Outcome.Text != "done" || call.Usage == nil || *call.Usage != *usage || len(call.Attempts) != 1 || call.Attempts[0].Outcome != protocol.AttemptAborted {
			t.Errorf("outcome %+v, call %+v", report.Outcome, call)
		}
		if read != 0 {
			t.Error("the stream was read after the usage")
		}
	})
	t.Run("runtime/R02 a reply that fails keeps text that could have become a tag", func(t *testing.T) {
		model := modelFunc(func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			_ = yield(provider.Chunk{Text: "Look:\n<ca"}, nil) && yield(provider.Chunk{}, &provider.Error{Kind: provider.KindStream, Code: "cut"})
		})
		d := start(t, calculating(model))
		id := d.session(t)
		o := d.observe(t, id)
		agrees(t, d, o, d.turn(t, id, "go"))
		if all := d.history(t, id); !slices.Equal(all, []string{"userMessage: go", "agentMessage: Look:\n<ca"}) {
			t.Errorf("history has %q", all)
		}
	})
	t.Run("runtime/R02 plugins that filter text see the code, too", func(t *testing.T) {
		text, seen := calcCell("Look:\n", "print a"), ""
		hears := streams("hears", func(c plugin.StreamChunk) (plugin.StreamChunk, error) {
			seen += c.Text
			c.Text = strings.ReplaceAll(c.Text, "print a", "print b")
			return c, nil
		})
		d := start(t, calculating(replies(scripted.Reply{Text: text}, scripted.Reply{Text: "done"}), hears))
		id := d.session(t)
		report := d.turn(t, id, "go")
		if all := d.history(t, id); seen != text+"done" || !slices.Contains(all, "codeCell: print b") || report.Outcome.Text != "done" {
			t.Errorf("the plugin saw %q, history has %q", seen, all)
		}
	})
	t.Run("runtime/R02 a reply that a plugin replaces is read again", func(t *testing.T) {
		replaces := responds("replaces", func(r plugin.Response) (plugin.Response, error) {
			if r.Parts[0].Text == "no cell" {
				r.Parts[0].Text = calcCell("Now:\n", "print a")
			}
			return r, nil
		})
		d := start(t, calculating(replies(scripted.Reply{Text: "no cell"}, scripted.Reply{Text: "done"}), replaces))
		id := d.session(t)
		d.turn(t, id, "go")
		if all := d.history(t, id); !slices.Equal(all, []string{"userMessage: go", "agentMessage: Now:\n", "codeCell: print a", "agentMessage: done"}) {
			t.Errorf("history has %q", all)
		}
	})
	t.Run("runtime/R03 a repaired reply stays in history, and observers get the decision", func(t *testing.T) {
		d := start(t, calculating(replies(scripted.Reply{Text: "<calc>\nprint a"}, scripted.Reply{Text: "done"})))
		id := d.session(t)
		o := d.observe(t, id)
		report := d.turn(t, id, "go")
		agrees(t, d, o, report)
		var made []string
		for _, e := range o.of(protocol.EventPluginCustom) {
			var body struct{ Decision string }
			if err := json.Unmarshal(e.Body, &body); err != nil {
				t.Fatal(err)
			}
			made = append(made, e.Name+" "+body.Decision)
		}
		if !slices.Equal(made, []string{"rlm.decision unclosedCell", "rlm.decision finish"}) || len(report.Issues) != 1 || report.Issues[0].Code != "unclosed_cell" {
			t.Errorf("decisions %q, issues %+v", made, report.Issues)
		}
	})
	t.Run("runtime/R12 an error of the code has its line, for the model and for people", func(t *testing.T) {
		d := start(t, calculating(replies(scripted.Reply{Text: calcCell("", "print a\noops")}, scripted.Reply{Text: "done"})))
		id := d.session(t)
		d.turn(t, id, "go")
		all := d.graph(t, id).Data
		part := all[len(all)-2].Message.Parts[0]
		if part.Text != "a\nError in line 2, column 1: unknown word oops" || part.Cell.Position.Line != 2 || part.Cell.Printed != "a\n" {
			t.Errorf("the model reads %q, people get %+v", part.Text, part.Cell)
		}
	})
}

func TestCodeTermination(t *testing.T) {
	t.Run("runtime/R04 a turn that must finish asks for it and ends with the value", func(t *testing.T) {
		model := &remembering{Provider: replies(scripted.Reply{Text: calcCell("", `finish "a"`)}, scripted.Reply{Text: calcCell("Now:\n", `finish 3`)})}
		d := start(t, calculating(model))
		id := d.session(t)
		options := turnOptions(`{"termination":{"kind":"finish","schema":{"type":"integer"}}}`)
		p := &protocol.TurnStartParams{SessionID: id, Input: text("go"), TurnOptions: &options}
		report := d.wait(t, must[*protocol.TurnStartResult](t)(d.Turns.Start(t.Context(), p)).TurnID)
		if o := report.Outcome; o.Kind != protocol.OutcomeFinalValue || string(o.Value) != "3" || o.Text != "```json\n3\n```" {
			t.Errorf("outcome %+v %+v", o, report.Issues)
		}
		if out := report.Output; out.Safe != "```json\n3\n```" || out.State != protocol.OutputUsable {
			t.Errorf("output %+v", out)
		}
		if last := partsOf(model.asked[0]); last[len(last)-1] != `user text "This turn ends only when a code cell calls finish(value). The value must match this JSON Schema: {\"type\":\"integer\"}"` {
			t.Errorf("the request ends with %s", last[len(last)-1])
		}
	})
	t.Run("runtime/R04 part9/structured a turn with a schema must finish with a value that matches it", func(t *testing.T) {
		model := &remembering{Provider: inOrder("3", calcCell("", `finish "a"`), calcCell("", `finish 3`))}
		d := start(t, calculating(model))
		p := &protocol.TurnStartParams{SessionID: d.session(t), Input: text("go"), Schema: json.RawMessage(`{"type":"integer"}`)}
		report := d.wait(t, must[*protocol.TurnStartResult](t)(d.Turns.Start(t.Context(), p)).TurnID)
		if o := report.Outcome; o.Kind != protocol.OutcomeFinalValue || string(o.Value) != "3" {
			t.Errorf("outcome %+v", o)
		}
		var codes []string
		for _, issue := range report.Issues {
			codes = append(codes, issue.Code)
		}
		if !slices.Equal(codes, []string{"finish_required", "wrong_value"}) {
			t.Errorf("issues %+v", report.Issues)
		}
		if req := model.asked[0]; req.Output.Schema != nil || strings.Contains(req.System, "integer") {
			t.Errorf("the request asks for %+v, with the prompt %s", req.Output, req.System)
		}
	})
	t.Run("runtime/R04 wrong turn options are rejected before the turn", func(t *testing.T) {
		d := start(t, calculating(replies()))
		for _, payload := range []string{`{"termination":{"kind":"maybe"}}`, `{"terminate":true}`} {
			options := turnOptions(payload)
			_, err := d.Turns.Start(t.Context(), &protocol.TurnStartParams{SessionID: d.session(t), Input: text("go"), TurnOptions: &options})
			if !errors.As(err, new(*plugin.OptionsError)) {
				t.Errorf("%s: %v", payload, err)
			}
		}
	})
	t.Run("runtime/R04 submit_error fails the turn with a value", func(t *testing.T) {
		d := start(t, calculating(replies(scripted.Reply{Text: calcCell("", `submit_error {"why":"no"}`)})))
		report := d.turn(t, d.session(t), "go")
		if o := report.Outcome; report.State != protocol.TurnFailed || o.Kind != protocol.OutcomeSubmittedError || string(o.Value) != `{"why":"no"}` {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("runtime/R05 continue_as goes on in a new frame with its task and without the globals", func(t *testing.T) {
		model := &remembering{Provider: scripted.New(&scripted.Script{Turns: []scripted.Turn{
			{Match: &scripted.Match{LastUserContains: "go"}, Replies: []scripted.Reply{{Text: calcCell("", "set a 1\ncontinue_as the rest")}}},
			{Match: &scripted.Match{LastUserContains: "the rest"}, Replies: []scripted.Reply{{Text: "done"}}},
		}})}
		d := start(t, calculating(model))
		id := d.session(t)
		report := d.turn(t, id, "go")
		if report.Outcome.Kind != protocol.OutcomeFrameSwitch || report.FollowedBy == "" {
			t.Fatalf("outcome %+v %+v", report.Outcome, report.Issues)
		}
		if next := d.wait(t, report.FollowedBy); next.Outcome.Text != "done" {
			t.Errorf("outcome %+v %+v", next.Outcome, next.Issues)
		}
		if got := partsOf(model.asked[1]); !slices.Equal(got, []string{`user text "the rest"`}) {
			t.Errorf("the second request has %q", got)
		}
	})
}

func TestCodeResume(t *testing.T) {
	t.Run("plugin/PR-07 a turn that is resumed after cells finds the globals of its requests in the journal", func(t *testing.T) {
		held, asked := make(chan struct{}), make(chan []string, 10)
		script := replies(scripted.Reply{Text: calcCell("", "set a 1")}, scripted.Reply{Text: calcCell("", "set b 2")}, scripted.Reply{Text: "done"})
		model := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
			asked <- partsOf(req)
			if len(req.Messages) > 5 {
				select {
				case <-held:
				case <-ctx.Done():
					return
				}
			}
			for chunk, err := range script.Stream(ctx, req) {
				if !yield(chunk, err) {
					return
				}
			}
		})
		d := start(t, calculating(model))
		turn := d.begin(t, d.session(t), "go").TurnID
		for _, want := range []string{`user text "go"`, `user text "Globals from earlier cells: a (text, 1 bytes)."`, `user text "Globals from earlier cells: a (text, 1 bytes), b (text, 1 bytes)."`} {
			if got := <-asked; got[len(got)-1] != want {
				t.Errorf("the model reads %q", got)
			}
		}
		d = d.restart(t, nil)
		close(held)
		if report := d.wait(t, turn); report.State != protocol.TurnCompleted || report.Outcome.Text != "done" {
			t.Errorf("the turn ended as %+v %+v", report.Outcome, report.Issues)
		}
	})
}

func TestCodeRewind(t *testing.T) {
	t.Run("runtime/R07 a rewind leaves the globals as they are, and the model is reminded of them", func(t *testing.T) {
		model := &remembering{Provider: inOrder(calcCell("", "set a 1"), "done", calcCell("", "show a"), "done")}
		d := start(t, calculating(model))
		id := d.session(t)
		base := d.state(t, id).Head.Leaf
		d.turn(t, id, "go")
		must[*protocol.SessionRewindResult](t)(d.History.Rewind(t.Context(), &protocol.SessionRewindParams{SessionID: id, ToNode: base}))
		d = d.restart(t, nil)
		d.turn(t, id, "anew")
		want := []string{`user text "anew"`, `user text "Globals from earlier cells: a (text, 1 bytes)."`}
		if got := partsOf(model.asked[2]); !slices.Equal(got, want) {
			t.Errorf("the model reads %q", got)
		}
		if got := partsOf(model.asked[3]); got[2] != `user output "1"` {
			t.Errorf("after the cell the model reads %q", got)
		}
	})
}

func TestToolsOfCode(t *testing.T) {
	t.Run("runtime/R09 a cell is not offered a tool that calls tools", func(t *testing.T) {
		model := &remembering{Provider: inOrder(calcCell("", "tools"), "done")}
		s := calculating(model, batch.Factory{})
		s.tools = append(s.tools, says("look", "x"))
		d := start(t, s)
		d.turn(t, d.session(t), "go")
		if got := partsOf(model.asked[1]); got[2] != `user output "look"` {
			t.Errorf("the cell can call %s", got[2])
		}
		if system := model.asked[0].System; !strings.Contains(system, "Tools: look") || strings.Contains(system, "batch") {
			t.Errorf("the model is told %s", system)
		}
	})
	t.Run("runtime/R09 a model that calls tools itself is offered a tool that calls tools", func(t *testing.T) {
		model := &remembering{Provider: replies(scripted.Reply{Text: "done"})}
		d := start(t, setup{model: model, plugins: []plugin.Factory{batch.Factory{}}})
		d.turn(t, d.session(t), "go")
		if tools := model.asked[0].Tools; len(tools) != 1 || tools[0].Name != "batch" {
			t.Errorf("the model is offered %+v", tools)
		}
	})
}
