package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// settle is how long to wait for the usage, or for the end of the answer, once the reply is known to be complete.
const settle = 5 * time.Second

// stream turns one answer into chunks. It belongs to the goroutine that reads.
type stream struct {
	answer *answer
	model  *protocol.ModelSpec
	route  string
	replay bool
	yield  func(provider.Chunk, error) bool

	template template
	meter    provider.Meter
	calls    calls
	thought  []byte              // reasoning that no Replay was sent for
	usage    *protocol.Usage     // as last reported
	stop     protocol.StopReason // set once a finish_reason was seen: the evidence that the reply is whole
	output   bool                // the model said something
}

// read passes the reply on, up to and with its end.
func (s *stream) read(ctx context.Context) error {
	lines := newLineReader(s.answer)
	defer lines.release()
	s.template.credit = templateCredit
	first, err := lines.in.Peek(1)
	if err != nil {
		return s.ended(ctx, err)
	}
	if first[0] == '{' || first[0] == '<' {
		return s.whole(ctx, lines.in)
	}
	s.answer.lines = true
	for {
		line, err := lines.next()
		if err != nil {
			return s.ended(ctx, err)
		}
		data := payload(line)
		s.answer.progress()
		if len(data) == 0 {
			continue
		}
		if text, ok := s.template.cut(data); ok {
			if err := s.say(string(text), s.template.reasoning); err != nil {
				return err
			}
			continue
		}
		if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
			return s.ended(ctx, io.EOF)
		}
		if err := s.decode(data); err != nil {
			return err
		}
	}
}

// whole reads an answer in one piece, which is what servers give that cannot stream, or that refuse with status 200.
func (s *stream) whole(ctx context.Context, r io.Reader) error {
	data, err := readWhole(r)
	if err != nil {
		return s.answer.broken(ctx, err)
	}
	if data[0] == '<' {
		return s.answer.garbled("the answer is a web page", data, nil)
	}
	if err := s.decode(data); err != nil {
		return err
	}
	if s.stop == "" && !s.output {
		return s.answer.garbled("the answer holds no reply", data, nil)
	}
	return s.ended(ctx, io.EOF)
}

func (s *stream) decode(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return s.answer.garbled("a chunk is not what was expected", data, err)
	}
	s.template.learn(data, &c)
	return s.take(&c, data)
}

// take passes on what a chunk adds.
func (s *stream) take(c *chunk, data []byte) error {
	if c.Usage != nil {
		s.usage = c.Usage.buckets()
	}
	if c.Error != nil {
		e := s.answer.classify(0, *c.Error)
		e.Raw = s.answer.raw(data)
		return s.lost(e)
	}
	for i := range c.Choices {
		if c.Choices[i].Index != 0 {
			continue
		}
		if err := s.choice(&c.Choices[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) choice(c *choice) error {
	d := &c.Delta
	if c.Message != nil {
		d = c.Message
	}
	if err := s.say(d.ReasoningContent, true); err != nil {
		return err
	}
	if d.ReasoningContent == "" {
		if err := s.say(d.Reasoning, true); err != nil {
			return err
		}
	}
	if err := s.say(d.Content+d.Refusal, false); err != nil {
		return err
	}
	if len(d.Calls) > 0 {
		if err := s.endThought(); err != nil {
			return err
		}
	}
	for i := range d.Calls {
		s.calls.add(&d.Calls[i])
		if err := s.meter.Fits(s.calls.size, len(s.calls.open)); err != nil {
			return s.lost(err)
		}
	}
	if c.Finish != "" {
		s.stop = stopReason(c.Finish)
		s.answer.gap = min(s.answer.gap, settle)
	}
	return nil
}

// say passes a delta on.
func (s *stream) say(text string, reasoning bool) error {
	if text == "" {
		return nil
	}
	s.output = true
	if s.calls.whole() {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if reasoning {
		if s.replay {
			s.thought = append(s.thought, text...)
		}
		return s.send(provider.Chunk{Reasoning: text})
	}
	if err := s.endThought(); err != nil {
		return err
	}
	return s.send(provider.Chunk{Text: text})
}

// endThought sends what the server wants to get back of the reasoning before.
func (s *stream) endThought() error {
	if len(s.thought) == 0 {
		return nil
	}
	data, err := json.Marshal(replay{Reasoning: string(s.thought)})
	if err != nil {
		return fmt.Errorf("model call: keep reasoning: %w", err)
	}
	s.thought = nil
	return s.send(provider.Chunk{Replay: data, Route: s.route})
}

// flush passes on the calls that are complete.
func (s *stream) flush() error {
	for _, call := range s.calls.take() {
		s.output = true
		part := &protocol.Part{Kind: protocol.PartToolCall, Call: &call}
		if err := s.send(provider.Chunk{Part: part}); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) send(c provider.Chunk) error {
	if err := s.meter.Take(&c); err != nil {
		return s.lost(err)
	}
	if !s.yield(c, nil) {
		return errLeft
	}
	return nil
}

// lost passes on the usage of a reply that failed, which is paid for as well.
func (s *stream) lost(failure error) error {
	if s.usage != nil {
		if err := s.send(provider.Chunk{Usage: s.usage}); err != nil {
			return err
		}
	}
	return failure
}

// ended decides what the end of the answer means. Once the model's own end was seen, how the connection ended does not
// matter.
func (s *stream) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return provider.Cancelled(ctx)
	}
	switch {
	case s.stop == "" && errors.Is(err, io.EOF):
		return s.lost(s.answer.cutOff())
	case s.stop == "":
		return s.lost(s.answer.broken(ctx, err))
	case s.stop == protocol.StopError:
		return s.lost(s.answer.classify(0, failureBody{Message: "the model's server gave up"}))
	}
	if err := s.endThought(); err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	left := s.send(provider.Chunk{Usage: s.usage, Stop: s.reason()})
	s.answer.drain()
	return left
}

// reason corrects what servers say of the end by what was seen.
func (s *stream) reason() protocol.StopReason {
	switch {
	case s.stop == protocol.StopEnd && s.calls.taken:
		return protocol.StopToolUse
	case s.stop == protocol.StopToolUse && !s.calls.taken:
		return protocol.StopEnd
	case s.stop == protocol.StopOutputLimit && s.full():
		return protocol.StopContextLimit
	}
	return s.stop
}

// full tells whether the prompt left no room for an answer.
func (s *stream) full() bool {
	if s.output || s.usage == nil || s.usage.Output > 0 || s.model.ContextWindow <= 0 {
		return false
	}
	prompt := s.usage.Input + s.usage.CacheRead + s.usage.CacheWrite
	return float64(prompt) >= 0.95*float64(s.model.ContextWindow)
}

func stopReason(finish string) protocol.StopReason {
	switch finish {
	case "stop":
		return protocol.StopEnd
	case "tool_calls", "function_call":
		return protocol.StopToolUse
	case "length":
		return protocol.StopOutputLimit
	case "model_length":
		return protocol.StopContextLimit
	case "content_filter":
		return protocol.StopContentFilter
	case "error":
		return protocol.StopError
	}
	return protocol.StopUnknown
}
