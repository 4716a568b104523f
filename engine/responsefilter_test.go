package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

var errBoom = errors.New("boom")

func streams(id string, hook func(plugin.StreamChunk) (plugin.StreamChunk, error)) plugin.Factory {
	return hooked{id, func(r *plugin.Registrar) {
		r.Output().Stream(func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) { return hook(c) })
	}}
}

func responds(id string, hook func(plugin.Response) (plugin.Response, error)) plugin.Factory {
	return hooked{id, func(r *plugin.Registrar) {
		r.Output().Response(func(_ context.Context, x plugin.Response) (plugin.Response, error) { return hook(x) })
	}}
}

// ends is a plugin that records why streams ended.
func ends(into *[]plugin.StreamEnd) plugin.Factory {
	return hooked{"ends", func(r *plugin.Registrar) {
		r.Output().Finished(func(_ context.Context, end plugin.StreamEnd) error {
			*into = append(*into, end)
			return errBoom
		})
	}}
}

const secret = "hunter2"

func mask(c plugin.StreamChunk) (plugin.StreamChunk, error) {
	c.Text = strings.ReplaceAll(c.Text, secret, "***")
	return c, nil
}

// chunks is a model that sends these pieces; the last one ends the reply, unless the caller has gone.
func chunks(all ...provider.Chunk) modelFunc {
	return func(_ context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
		for _, c := range all {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// agrees checks that a subscriber that watched a turn ends up with the same items as history.
func agrees(t *testing.T, d *daemon, o *observer, report *protocol.TurnReport) {
	t.Helper()
	o.over(report.TurnID)
	id := report.SessionID
	if shown, kept := shownItems(o.all), d.itemIDs(t, id); !slices.Equal(shown, kept) {
		t.Errorf("an observer is left with items %v, history has %v", shown, kept)
	}
	var told []string
	for _, e := range o.of(protocol.EventItemCompleted) {
		told = append(told, string(e.Item.Kind)+": "+e.Item.Text)
	}
	if kept := d.history(t, id); !slices.Equal(told, kept) {
		t.Errorf("a subscriber received\n%q, history has\n%q", told, kept)
	}
}

// holds reports whether any file of the data directory contains a text.
func holds(t *testing.T, dir, text string) bool {
	t.Helper()
	found := false
	for _, path := range must[[]string](t)(filepath.Glob(filepath.Join(dir, "lashd.db*"))) {
		found = found || bytes.Contains(must[[]byte](t)(os.ReadFile(path)), []byte(text))
	}
	return found
}

func TestStreamHooks(t *testing.T) {
	t.Run("plugin/HK-21 text that plugins mask is not shown, reported or stored", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			part := &protocol.Part{Kind: protocol.PartProse, Text: " or " + secret}
			d := start(t, setup{plugins: []plugin.Factory{streams("mask", mask)}, model: chunks(
				provider.Chunk{Commentary: "looking for " + secret}, provider.Chunk{Text: "it is "}, provider.Chunk{Text: secret},
				provider.Chunk{Part: part, Stop: protocol.StopEnd})})
			id := d.session(t)
			o := d.observe(t, id)
			report := d.turn(t, id, "what is it?")
			agrees(t, d, o, report)
			want := []string{"userMessage: what is it?", "agentMessage: looking for ***", "agentMessage: it is ***", "agentMessage:  or ***"}
			if got := d.history(t, id); !slices.Equal(got, want) || part.Text != " or "+secret {
				t.Errorf("history %q", got)
			}
			d.stop()
			if bytes.Contains(bytes.Join(o.raw, nil), []byte(secret)) || strings.Contains(report.Output.Safe, secret) || holds(t, d.store.Dir(), secret) || !holds(t, d.store.Dir(), "it is ***") {
				t.Error("the secret is not kept")
			}
		})
	})
	t.Run("plugin/HK-21 the hook does not get reasoning, and its own reasoning and events are shown", func(t *testing.T) {
		var seen []string
		d := start(t, setup{model: replies(scripted.Reply{Reasoning: "hm", Text: "yes"}), plugins: []plugin.Factory{
			streams("think", func(c plugin.StreamChunk) (plugin.StreamChunk, error) {
				seen = append(seen, c.Text)
				c.Reasoning = []string{" and", " so"}
				c.Events = []plugin.RuntimeEvent{{Kind: "status", Key: "k", Label: "busy"}, {Kind: "custom", Name: "n", Payload: json.RawMessage(`{"a":1}`)}}
				return c, nil
			}),
		}})
		id := d.session(t)
		o := d.observe(t, id)
		agrees(t, d, o, d.turn(t, id, "go"))
		if got := d.history(t, id); !slices.Equal(seen, []string{"yes"}) || !slices.Equal(got, []string{"userMessage: go", "reasoning: hm and so", "agentMessage: yes"}) {
			t.Errorf("hooks saw %q, history %q", seen, got)
		}
		status, custom := o.of(protocol.EventPluginStatus), o.of(protocol.EventPluginCustom)
		if len(status) != 1 || status[0].Plugin != "think" || status[0].Text != "busy" {
			t.Errorf("status %+v", status)
		}
		if len(custom) != 1 || custom[0].Seq == 0 || custom[0].Plugin != "think" || string(custom[0].Body) != `{"a":1}` {
			t.Errorf("custom %+v", custom)
		}
		o.gapless(0)
	})
	t.Run("plugin/HK-21 a failed hook fails the call, whose usage is recorded", func(t *testing.T) {
		d := start(t, setup{plugins: []plugin.Factory{streams("fails", func(c plugin.StreamChunk) (plugin.StreamChunk, error) {
			if c.Text == "bad" {
				return c, errBoom
			}
			return c, nil
		})}, model: chunks(provider.Chunk{Text: "good", Usage: &protocol.Usage{Input: 7}}, provider.Chunk{Text: "bad"}, provider.Chunk{Stop: protocol.StopEnd})})
		id := d.session(t)
		o := d.observe(t, id)
		report := d.turn(t, id, "go")
		agrees(t, d, o, report)
		want := protocol.Issue{Kind: "plugin", Code: "plugin_assistant_stream", Message: "plugin fails: assistant_stream: boom"}
		if report.Outcome.Kind != protocol.OutcomeProviderError || !slices.Equal(report.Issues, []protocol.Issue{want}) {
			t.Errorf("outcome %+v, issues %+v", report.Outcome, report.Issues)
		}
		if len(report.Calls) != 1 || report.Usage.Input != 7 || report.Output.Safe != "good" {
			t.Errorf("calls %+v, usage %+v, output %+v", report.Calls, report.Usage, report.Output)
		}
	})
}

// stops is a plugin that aborts the reply when a text arrives.
func stops(at string) plugin.Factory {
	return streams("stops", func(c plugin.StreamChunk) (plugin.StreamChunk, error) {
		c.Abort = c.Text == at
		return c, nil
	})
}

func TestStreamAbort(t *testing.T) {
	usage := &protocol.Usage{Input: 3, Output: 2}
	for name, c := range map[string]struct {
		model modelFunc
		took  time.Duration
		want  *protocol.Usage
	}{
		"its usage is read and nothing after it": {func(ctx context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			_ = yield(provider.Chunk{Text: "this"}, nil) && yield(provider.Chunk{Text: " stop"}, nil) && yield(provider.Chunk{Text: " more"}, nil) &&
				yield(provider.Chunk{Usage: usage}, nil) && yield(provider.Chunk{Usage: &protocol.Usage{Input: 99}}, nil)
		}, 0, usage},
		"the provider is cancelled after two seconds": {func(ctx context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			_ = yield(provider.Chunk{Text: "this"}, nil) && yield(provider.Chunk{Text: " stop"}, nil)
			<-ctx.Done()
			yield(provider.Chunk{}, ctx.Err())
		}, 2 * time.Second, nil},
		"lashd does not wait for another attempt": {func(ctx context.Context, _ *provider.Request, yield func(provider.Chunk, error) bool) {
			_ = yield(provider.Chunk{Text: "this"}, nil) && yield(provider.Chunk{Text: " stop"}, nil) &&
				yield(provider.Chunk{Retry: &protocol.RetryStatus{}}, nil) && yield(provider.Chunk{Usage: &protocol.Usage{Input: 99}}, nil)
		}, 0, nil},
	} {
		t.Run("plugin/HK-21 a plugin stops the reply, and the text so far is kept: "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var why []plugin.StreamEnd
				var given plugin.Response
				look := responds("look", func(r plugin.Response) (plugin.Response, error) {
					given = r
					return r, nil
				})
				d := start(t, setup{model: c.model, plugins: []plugin.Factory{stops(" stop"), look, ends(&why)}})
				id := d.session(t)
				o := d.observe(t, id)
				began := time.Now()
				report := d.turn(t, id, "go")
				took := time.Since(began)
				agrees(t, d, o, report)
				if took != c.took || report.State != protocol.TurnCompleted || report.Output.Safe != "this stop" || report.Calls[0].Stop != protocol.StopEnd {
					t.Errorf("after %v %s, output %+v, record %+v", took, report.State, report.Output, report.Calls[0])
				}
				if given.Stop != protocol.StopEnd || len(given.Parts) != 1 || given.Parts[0].Text != "this stop" || !slices.Equal(why, []plugin.StreamEnd{plugin.StreamAborted}) {
					t.Errorf("response hooks saw %+v, the stream ended as %q", given, why)
				}
				if got := report.Calls[0].Usage; (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
					t.Errorf("usage %+v, want %+v", got, c.want)
				}
			})
		})
	}
}

func TestStreamEnds(t *testing.T) {
	for want, c := range map[plugin.StreamEnd]struct {
		script scripted.Reply
		more   []plugin.Factory
	}{
		plugin.StreamComplete:      {scripted.Reply{Text: "done"}, nil},
		plugin.StreamAborted:       {scripted.Reply{Text: "stop"}, []plugin.Factory{stops("stop")}},
		plugin.StreamCancelled:     {scripted.Reply{Text: "so far", Stall: true}, nil},
		plugin.StreamProviderError: {scripted.Reply{Error: &scripted.Failure{Kind: "http", Code: "teapot"}}, nil},
	} {
		t.Run("plugin/HK-23 "+string(want), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var why []plugin.StreamEnd
				d := start(t, setup{model: replies(c.script), plugins: append(c.more, ends(&why))})
				turn := d.begin(t, d.session(t), "go").TurnID
				synctest.Wait()
				if c.script.Stall {
					d.interrupt(t, turn)
				}
				if d.wait(t, turn); !slices.Equal(why, []plugin.StreamEnd{want}) {
					t.Errorf("%q", why)
				}
			})
		})
	}
	t.Run("plugin/HK-23 attemptReset, before the next attempt's text", func(t *testing.T) {
		var why []plugin.StreamEnd
		var marks []string
		watch := streams("watch", func(c plugin.StreamChunk) (plugin.StreamChunk, error) {
			marks = append(marks, c.Text+" after "+strconv.Itoa(len(why)))
			return c, nil
		})
		d := start(t, setup{plugins: []plugin.Factory{watch, ends(&why)}, model: chunks(
			provider.Chunk{Text: "first"}, provider.Chunk{Reset: true}, provider.Chunk{Text: "second"}, provider.Chunk{Stop: protocol.StopEnd})})
		id := d.session(t)
		o := d.observe(t, id)
		agrees(t, d, o, d.turn(t, id, "go"))
		if !slices.Equal(why, []plugin.StreamEnd{plugin.StreamAttemptReset, plugin.StreamComplete}) || !slices.Equal(marks, []string{"first after 0", "second after 1"}) {
			t.Errorf("%q, %q", why, marks)
		}
	})
}

func TestResponseHooks(t *testing.T) {
	says := func(id, text string) plugin.Factory {
		return responds(id, func(r plugin.Response) (plugin.Response, error) {
			last := &r.Parts[len(r.Parts)-1]
			last.Text = text + " for " + last.Text
			return r, nil
		})
	}
	t.Run("plugin/HK-22 the last hook's reply counts, and items of other replies are withdrawn", func(t *testing.T) {
		d := start(t, setup{model: replies(scripted.Reply{Reasoning: "hm", Text: "one", ChunkSize: 1}), plugins: []plugin.Factory{says("a", "two"), says("b", "three")}})
		id := d.session(t)
		o := d.observe(t, id)
		report := d.turn(t, id, "go")
		agrees(t, d, o, report)
		want := []string{"userMessage: go", "reasoning: hm", "agentMessage: three for two for one"}
		if got := d.history(t, id); !slices.Equal(got, want) || report.Outcome.Text != "three for two for one" {
			t.Errorf("history %q, outcome %+v", got, report.Outcome)
		}
		if gone := o.of(protocol.EventItemRetracted); len(gone) != 1 || !strings.HasSuffix(string(gone[0].ItemID), ":1") {
			t.Errorf("withdrawn: %+v", gone)
		}
	})
	t.Run("plugin/HK-22 a failed hook fails the call, whose record stays unchanged", func(t *testing.T) {
		fails := responds("fails", func(r plugin.Response) (plugin.Response, error) { return r, errBoom })
		usage := &protocol.Usage{Input: 5, Output: 1}
		d := start(t, setup{model: replies(scripted.Reply{Text: "one", Usage: usage}), plugins: []plugin.Factory{fails}})
		id := d.session(t)
		o := d.observe(t, id)
		report := d.turn(t, id, "go")
		agrees(t, d, o, report)
		want := protocol.Issue{Kind: "plugin", Code: "plugin_assistant_response", Message: "plugin fails: assistant_response: boom"}
		if !slices.Equal(report.Issues, []protocol.Issue{want}) || report.Usage != *usage || report.Calls[0].Stop != protocol.StopEnd {
			t.Errorf("issues %+v, usage %+v, record %+v", report.Issues, report.Usage, report.Calls[0])
		}
	})
	t.Run("plugin/HK-22 the filtered reply is in the journal, so the hooks do not run again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			renames := responds("renames", func(r plugin.Response) (plugin.Response, error) {
				if asked++; len(r.Parts) == 1 && r.Parts[0].Call != nil {
					r.Parts = append(r.Parts, protocol.Part{Kind: protocol.PartProse, Text: "as asked"})
					r.Events = []plugin.RuntimeEvent{{Name: "changed"}}
				}
				return r, nil
			})
			g := newGate("work")
			g.contract.Replay = protocol.ReplaySafe
			d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}, plugins: []plugin.Factory{renames}})
			id := d.session(t)
			turn := d.begin(t, id, "go").TurnID
			<-g.called
			if d = d.restart(t, nil); asked != 1 {
				t.Errorf("asked %d times", asked)
			}
			<-g.called
			close(g.open)
			report := d.wait(t, turn)
			o := d.observe(t, id, 0)
			o.over(turn)
			o.gapless(0)
			want := []string{"userMessage: go", "toolCall work: success", "agentMessage: as asked", "agentMessage: done"}
			if got := d.history(t, id); !slices.Equal(got, want) || asked != 2 || len(o.of(protocol.EventPluginCustom)) != 1 || report.State != protocol.TurnCompleted {
				t.Errorf("%s, history %q, asked %d times", report.State, got, asked)
			}
		})
	})
}

func TestProse(t *testing.T) {
	hides := hooked{"hides", func(r *plugin.Registrar) {
		r.Protocol().Prose(func(_ context.Context, s string) (string, error) { return strings.ReplaceAll(s, "<code>", ""), nil })
	}}
	for name, c := range map[string]struct {
		model modelFunc
		want  string
		raw   string
	}{
		"text that arrives whole is shown without markup": {
			chunks(provider.Chunk{Part: &protocol.Part{Kind: protocol.PartProse, Text: "a<code>b"}, Stop: protocol.StopEnd}), "ab", ""},
		"streamed text is shown as it is and reported without markup": {
			chunks(provider.Chunk{Text: "a<code>b", Stop: protocol.StopEnd}), "a<code>b", "a<code>b"},
	} {
		t.Run("plugin/PR-08 "+name, func(t *testing.T) {
			d := start(t, setup{model: c.model, plugins: []plugin.Factory{hides}})
			id := d.session(t)
			o := d.observe(t, id)
			report := d.turn(t, id, "go")
			agrees(t, d, o, report)
			if got := d.history(t, id)[1]; got != "agentMessage: "+c.want || report.Output.Safe != "ab" || report.Output.Raw != c.raw {
				t.Errorf("history %q, output %+v", got, report.Output)
			}
		})
	}
}
