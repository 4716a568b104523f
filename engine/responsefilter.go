package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"lashd/engine/feed"
	"lashd/engine/graph"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// hookFailure is an error of a plugin's hook that ends a model call or a turn. Its code is stable:
// clients see it in the issue of the turn.
type hookFailure struct {
	code string
	err  error
}

func (f *hookFailure) Error() string { return f.err.Error() }

func (f *hookFailure) Unwrap() error { return f.err }

// issue returns the failure as the turn's report shows it.
func (f *hookFailure) issue() protocol.Issue {
	return protocol.Issue{Kind: "plugin", Code: f.code, Message: f.err.Error()}
}

// filter lets plugins change the text of a chunk before subscribers or history get it. First the
// stream hooks run, then the prose filter. After an error of a stream hook the chunk holds no
// visible text, so that nothing unfiltered is shown. A failed prose filter only adds an issue.
func (s *streaming) filter(ctx context.Context, c *provider.Chunk) error {
	texts := c.VisibleTexts()
	if s.hooks.plugins.Streams() {
		for _, text := range texts {
			if err := s.filterText(ctx, c, text); err != nil {
				c.Text, c.Commentary, c.Part = "", "", nil
				return &hookFailure{"plugin_assistant_stream", err}
			}
		}
	}
	if provider.Visible(c.Part) {
		var err error
		if c.Part.Text, err = s.hooks.plugins.Prose(ctx, c.Part.Text); err != nil && ctx.Err() == nil {
			s.seams.logProseFailure(err)
		}
	}
	return nil
}

// filterText runs the stream hooks on one text and stores their result in it. A hook can move text
// to reasoning, emit events and abort the reply. The original text is not kept anywhere.
func (s *streaming) filterText(ctx context.Context, c *provider.Chunk, text *string) error {
	out, err := s.hooks.plugins.Stream(ctx, plugin.StreamChunk{Text: *text})
	if err != nil {
		return err
	}
	*text = out.Text
	c.Reasoning += strings.Join(out.Reasoning, "")
	s.sawText, s.aborted = true, s.aborted || out.Abort
	s.announce(out.Events)
	return nil
}

// respond runs the response hooks on a complete reply and replaces its parts with their result.
// Items that subscribers saw and that the result changes are withdrawn; the commit of the reply
// adds the new ones. It does nothing after a failed or cancelled call.
func (s *streaming) respond(ctx context.Context, failed error, reply *provider.Reply) error {
	if failed != nil || ctx.Err() != nil || !s.hooks.plugins.HasResponse() {
		return nil
	}
	out, err := s.hooks.plugins.Response(ctx, plugin.Response{Parts: reply.Parts, Stop: reply.Stop})
	if err != nil {
		return &hookFailure{"plugin_assistant_response", err}
	}
	provider.Sanitize(out.Parts)
	s.announce(out.Events)
	s.withdraw(reply.Parts, out.Parts)
	reply.Parts, reply.Stop = out.Parts, cmp.Or(out.Stop, reply.Stop)
	return nil
}

// withdraw retracts the shown items whose part is missing from the new parts or differs from them.
func (s *streaming) withdraw(was, is []protocol.Part) {
	var gone []*feed.Item
	s.items = slices.DeleteFunc(s.items, func(o *feed.Item) bool {
		_, i, _ := graph.Split(o.ID())
		same := i < len(was) && i < len(is) && was[i].Kind == is[i].Kind && was[i].Text == is[i].Text
		if !same {
			gone = append(gone, o)
		}
		return !same
	})
	s.feed.End(gone, true)
}

// announce handles the events of stream hooks. It shows status events at once. Custom events of
// plugins wait in s.events and are stored with the answer. A payload that is not valid JSON is
// dropped.
func (s *streaming) announce(events []plugin.RuntimeEvent) {
	for _, e := range events {
		if !json.Valid(e.Payload) {
			e.Payload = nil
		}
		for _, told := range pluginEvents(s.run.id, plugin.Owned{Plugin: e.Plugin, Directive: plugin.Tell(e)}) {
			if told.Type == protocol.EventPluginStatus {
				s.feed.Show(told.Event)
				continue
			}
			s.events = append(s.events, told)
		}
	}
}

// end returns the reason for the end of the stream that plugins receive. Cancellation comes before
// a provider error, which it often causes.
func (s *streaming) end(ctx context.Context, failed error) plugin.StreamEnd {
	switch {
	case ctx.Err() != nil:
		return plugin.StreamCancelled
	case failed != nil:
		return plugin.StreamProviderError
	case s.aborted:
		return plugin.StreamAborted
	}
	return plugin.StreamComplete
}

// hookTime limits the end-of-stream hooks, which run while the turn waits and may run after its
// cancellation.
const hookTime = 5 * time.Second

// notifyFinished tells the plugins that the stream has ended and why. It also runs for a cancelled
// turn, with a limit of its own. Errors are only logged.
func (s *streaming) notifyFinished(ctx context.Context, end plugin.StreamEnd) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTime)
	defer cancel()
	if err := s.hooks.plugins.StreamFinished(ctx, end); err != nil {
		s.eng.Log.Warn("plugin failed at the end of a stream", "turn", s.run.id, "end", end, "error", err)
	}
}
