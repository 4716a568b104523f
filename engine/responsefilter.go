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

// hookFailure is an error of a plugin that ends a model call or a turn, with its stable word.
type hookFailure struct {
	code string
	err  error
}

func (f *hookFailure) Error() string { return f.err.Error() }

func (f *hookFailure) Unwrap() error { return f.err }

func (f *hookFailure) issue() protocol.Issue {
	return protocol.Issue{Kind: "plugin", Code: f.code, Message: f.err.Error()}
}

// filter has the plugins change the text of a chunk before anybody sees it. After an error there is none in it.
func (s *streaming) filter(ctx context.Context, c *provider.Chunk) error {
	texts := visibleTexts(c)
	if s.hooks.plugins.Streams() {
		for _, text := range texts {
			if err := s.filterText(ctx, c, text); err != nil {
				c.Text, c.Commentary, c.Part = "", "", nil
				return &hookFailure{"plugin_assistant_stream", err}
			}
		}
	}
	if prose(c.Part) {
		var err error
		if c.Part.Text, err = s.hooks.plugins.Prose(ctx, c.Part.Text); err != nil && ctx.Err() == nil {
			s.seams.logProseFailure(err)
		}
	}
	return nil
}

// visible are the texts of a chunk that a person would read, those of a part as a copy of it.
func visibleTexts(c *provider.Chunk) []*string {
	texts := []*string{&c.Commentary, &c.Text}
	if prose(c.Part) {
		part := *c.Part
		c.Part = &part
		texts = append(texts, &part.Text)
	}
	return slices.DeleteFunc(texts, func(text *string) bool { return *text == "" })
}

func prose(p *protocol.Part) bool {
	return p != nil && (p.Kind == protocol.PartProse || p.Kind == protocol.PartCommentary)
}

// pass replaces a text of a chunk by what the plugins make of it.
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

// respond has the plugins change a reply that is complete. Items that it then differs from are withdrawn.
func (s *streaming) respond(ctx context.Context, failed error, reply *provider.Reply) error {
	if failed != nil || ctx.Err() != nil || !s.hooks.plugins.HasResponse() {
		return nil
	}
	out, err := s.hooks.plugins.Response(ctx, plugin.Response{Parts: reply.Parts, Stop: reply.Stop})
	if err != nil {
		return &hookFailure{"plugin_assistant_response", err}
	}
	sanitize(out.Parts)
	s.announce(out.Events)
	s.withdraw(reply.Parts, out.Parts)
	reply.Parts, reply.Stop = out.Parts, cmp.Or(out.Stop, reply.Stop)
	return nil
}

// withdraw takes back the items of parts that are others now.
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

// announce shows a status at once. Events of a plugin's own are kept until they are durable together with the answer.
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

// end is why the stream has ended.
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

// hookTime is how long plugins may take over what nobody waits for.
const hookTime = 5 * time.Second

// finished tells the plugins that the stream has ended, which it has for a turn that is cancelled too.
func (s *streaming) notifyFinished(ctx context.Context, end plugin.StreamEnd) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hookTime)
	defer cancel()
	if err := s.hooks.plugins.StreamFinished(ctx, end); err != nil {
		s.eng.Log.Warn("plugin failed at the end of a stream", "turn", s.run.id, "end", end, "error", err)
	}
}
