package plugin_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func streams(id string, hook plugin.StreamHook) plugin.Factory {
	return with(id, func(r *plugin.Registrar) { r.Output().Stream(hook) })
}

func TestStream(t *testing.T) {
	t.Run("plugin/HK-21 each hook gets the text of the previous one, and their additions are collected", func(t *testing.T) {
		mask := func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) {
			return plugin.StreamChunk{Text: strings.ToUpper(c.Text), Reasoning: []string{"r1"}, Events: []plugin.RuntimeEvent{{Name: "e1"}}, Abort: true}, nil
		}
		count := func(_ context.Context, c plugin.StreamChunk) (plugin.StreamChunk, error) {
			c.Text += "!"
			c.Reasoning = append(c.Reasoning, "r2")
			c.Events = append(c.Events, plugin.RuntimeEvent{Name: "e2"})
			return c, nil
		}
		got, err := open(t, streams("a", mask), streams("b", count)).Stream(t.Context(), plugin.StreamChunk{Text: "x"})
		want := plugin.StreamChunk{Text: "X!", Reasoning: []string{"r1", "r2"}, Abort: true,
			Events: []plugin.RuntimeEvent{{Name: "e1", Plugin: "a"}, {Name: "e2", Plugin: "b"}}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v %s", err, diff)
		}
	})
	t.Run("plugin/HK-21 a hook that fails fails the stream", func(t *testing.T) {
		s := open(t, streams("a", func(context.Context, plugin.StreamChunk) (plugin.StreamChunk, error) {
			return plugin.StreamChunk{}, errBoom
		}))
		if _, err := s.Stream(t.Context(), plugin.StreamChunk{Text: "x"}); !errors.Is(err, errBoom) || !s.Streams() {
			t.Errorf("error %v", err)
		}
	})
	t.Run("plugin/HK-21 without hooks text passes unchanged", func(t *testing.T) {
		s := open(t)
		if got, err := s.Stream(t.Context(), plugin.StreamChunk{Text: "x"}); err != nil || got.Text != "x" || s.Streams() || s.HasResponse() {
			t.Errorf("%+v, %v", got, err)
		}
	})
	t.Run("plugin/HK-23 stream end hooks get the reason and stop at the first error", func(t *testing.T) {
		var told []string
		tell := func(id string, err error) plugin.Factory {
			return with(id, func(r *plugin.Registrar) {
				r.Output().Finished(func(_ context.Context, end plugin.StreamEnd) error {
					told = append(told, id+" "+string(end))
					return err
				})
			})
		}
		s := open(t, tell("a", nil), tell("b", errBoom), tell("c", nil))
		for _, end := range []plugin.StreamEnd{"complete", "aborted", "cancelled", "providerError", "attemptReset"} {
			told = nil
			err := s.StreamFinished(t.Context(), end)
			if want := []string{"a " + string(end), "b " + string(end)}; !errors.Is(err, errBoom) || !slices.Equal(told, want) {
				t.Errorf("%q, want %q; %v", told, want, err)
			}
		}
		ends := []plugin.StreamEnd{plugin.StreamComplete, plugin.StreamAborted, plugin.StreamCancelled, plugin.StreamProviderError, plugin.StreamAttemptReset}
		if !slices.Equal(ends, []plugin.StreamEnd{"complete", "aborted", "cancelled", "providerError", "attemptReset"}) {
			t.Errorf("%q", ends)
		}
	})
}

func TestResponse(t *testing.T) {
	t.Run("plugin/HK-22 the last response wins, and the events of all are kept", func(t *testing.T) {
		say := func(id string) plugin.Factory {
			return with(id, func(r *plugin.Registrar) {
				r.Output().Response(func(_ context.Context, x plugin.Response) (plugin.Response, error) {
					x.Parts[0].Text += id
					x.Events = append(x.Events, plugin.RuntimeEvent{Name: "of " + id})
					return x, nil
				})
			})
		}
		s := open(t, say("a"), say("b"))
		reply := plugin.Response{Parts: []protocol.Part{{Kind: protocol.PartProse, Text: "x"}}, Stop: "stop"}
		got, err := s.Response(t.Context(), reply)
		want := plugin.Response{Parts: []protocol.Part{{Kind: protocol.PartProse, Text: "xab"}}, Stop: "stop",
			Events: []plugin.RuntimeEvent{{Name: "of a", Plugin: "a"}, {Name: "of b", Plugin: "b"}}}
		if diff := cmp.Diff(want, got); diff != "" || err != nil || reply.Parts[0].Text != "x" || !s.HasResponse() {
			t.Errorf("%v %v %s", err, reply, diff)
		}
	})
	t.Run("plugin/HK-22 a failing hook is an error and leaves the reply unchanged", func(t *testing.T) {
		s := open(t, with("a", func(r *plugin.Registrar) {
			r.Output().Response(func(_ context.Context, x plugin.Response) (plugin.Response, error) {
				x.Parts[0].Text = "spoilt"
				return x, errBoom
			})
		}))
		reply := plugin.Response{Parts: []protocol.Part{{Text: "x"}}}
		if _, err := s.Response(t.Context(), reply); err == nil || err.Error() != "plugin a: assistant_response: boom" || reply.Parts[0].Text != "x" {
			t.Errorf("%v, %v", err, reply)
		}
	})
}

func TestProjection(t *testing.T) {
	projects := func(p plugin.ResultProjector) *plugin.Session {
		return open(t, with("p", func(r *plugin.Registrar) { r.ToolResults().Projector(p) }))
	}
	call := &plugin.ToolResultContext{ToolCallContext: plugin.ToolCallContext{Tool: "look", Args: raw(`1`)}, Output: protocol.Succeed("long"), DurationMs: 3}
	t.Run("plugin/HK-24 without a projector the output enters unchanged", func(t *testing.T) {
		if got := open(t).ProjectResult(t.Context(), call); got.Text != "long" {
			t.Errorf("%+v", got)
		}
	})
	t.Run("plugin/HK-24 the projector decides, and the record keeps the output", func(t *testing.T) {
		s := projects(func(_ context.Context, c *plugin.ToolResultContext) (protocol.ToolOutput, error) {
			c.Output.Text = c.Tool + " " + string(c.Args) + " " + c.Output.Text[:1]
			return c.Output, nil
		})
		if got := s.ProjectResult(t.Context(), call); got.Text != "look 1 l" || call.Output.Text != "long" {
			t.Errorf("%+v, record %+v", got, call.Output)
		}
	})
	codes := map[string]string{
		"plugin p: tool_result_projector: boom": "projector_failed", "plugin p: tool_result_projector: panicked: clumsy": "projector_panicked",
	}
	for want, p := range map[string]plugin.ResultProjector{
		"plugin p: tool_result_projector: boom": func(context.Context, *plugin.ToolResultContext) (protocol.ToolOutput, error) {
			return protocol.Succeed("?"), errBoom
		},
		"plugin p: tool_result_projector: panicked: clumsy": func(context.Context, *plugin.ToolResultContext) (protocol.ToolOutput, error) { panic("clumsy") },
	} {
		t.Run("plugin/HK-24 the model reads the error of a projector: "+want, func(t *testing.T) {
			got := projects(p).ProjectResult(t.Context(), call)
			if got.Text != want || got.Failure == nil || got.Failure.Code != codes[want] || call.Output.Text != "long" {
				t.Errorf("%+v", got)
			}
		})
	}
	t.Run("plugin/PR-08 the prose projector hides markup, and a panic leaves the text unchanged", func(t *testing.T) {
		prose := func(p plugin.ProseProjector) (string, error) {
			return open(t, with("p", func(r *plugin.Registrar) { r.Protocol().Prose(p) })).Prose(t.Context(), "a<code>b")
		}
		hide, err := prose(func(_ context.Context, s string) (string, error) { return strings.ReplaceAll(s, "<code>", ""), nil })
		if err != nil || hide != "ab" {
			t.Errorf("%q, %v", hide, err)
		}
		clumsy, err := prose(func(context.Context, string) (string, error) { panic("clumsy") })
		if err == nil || err.Error() != "plugin p: prose_projector: panicked: clumsy" || clumsy != "a<code>b" {
			t.Errorf("%q, %v", clumsy, err)
		}
		failing, err := prose(func(context.Context, string) (string, error) { return "x", errBoom })
		if !errors.Is(err, errBoom) || failing != "a<code>b" {
			t.Errorf("%q, %v", failing, err)
		}
		if none, err := open(t).Prose(t.Context(), "a<code>b"); err != nil || none != "a<code>b" {
			t.Errorf("%q, %v", none, err)
		}
	})
}
