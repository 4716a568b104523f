package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

// atOnce is the number of hooks that run at the same time for one event of a session.
const atOnce = 16

// question is one event for which hooks run. The caller fills it in; ask does not change it.
type question struct {
	input   input
	subject string                               // value that matchers are compared with, if the event is no tool call
	formats []format                             // a tool call in the formats of all agents; replaces subject
	about   *subjects                            // what the tool call acts on; nil: the event is no tool call
	spare   []*hook                              // hooks to skip
	respond func(input json.RawMessage) response // returns the call's result in the format of the call
}

// asked is one run of a hook for a question. The goroutine that runs the hook fills in the result,
// and ask reads it after all runs have ended.
type asked struct {
	hook  *hook
	words words // the tool call in the format that the hook understands
	opinion
	took time.Duration
	err  error
}

// ask runs all hooks that match an event at the same time, each distinct command once, and combines
// their results. It runs on the goroutine of the turn that triggered the event.
//
// The error is the cause of ctx, or a *HookError of a hook with OnErrorFail. When ctx ends, ask
// returns at once. The commands are killed in the background, and Shutdown waits for them.
func (s *session) ask(ctx context.Context, q question) (*verdict, error) {
	runs := s.part.runs(q)
	if len(runs) > 0 {
		var err error
		if q.input.TranscriptPath, err = s.transcript.write(q.input.SessionID, q.input.Cwd, s.conversation(q.input)); err != nil {
			s.part.config.Output.Add(slog.LevelWarn, err.Error())
		}
	}
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for _, a := range runs {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			a.run(ctx, s, q)
		})
	}
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	v := &verdict{}
	var failed error
	for _, a := range runs {
		failed = cmp.Or(failed, v.take(a))
	}
	s.part.record(q.input.Event, runs, v)
	if failed != nil {
		return nil, failed
	}
	return v, nil
}

// runs returns the runs for a question in the order in which the hooks are declared. Hooks with the
// same command and the same effect of a failure run once. A call that becomes several calls in
// another format, such as a patch of several files, gives one run for each of them.
func (p *Part) runs(q question) []*asked {
	var runs []*asked
	var seen []string
	for _, h := range p.hooks {
		if h.Event != q.input.Event || slices.Contains(q.spare, h) {
			continue
		}
		matching := h.matcher.matching(q.formats)
		if q.formats == nil && h.matcher.fits(q.subject) {
			matching = []words{{}}
		}
		matching = slices.DeleteFunc(matching, func(w words) bool { return !q.about.fit(h.If, w.path) })
		identity := strings.Join(append([]string{string(h.OnError)}, h.argv...), "\x00")
		if len(matching) == 0 || slices.Contains(seen, identity) {
			continue
		}
		seen = append(seen, identity)
		for _, w := range matching {
			runs = append(runs, &asked{hook: h, words: w})
		}
	}
	return runs
}

// run runs the hook with the call in its format and stores the result in a. It runs on its own
// goroutine.
func (a *asked) run(ctx context.Context, s *session, q question) {
	in := q.input
	in.ToolName, in.ToolInput = a.words.tool, a.words.input
	if q.respond != nil {
		in.ToolResponse = new(q.respond(a.words.input))
	}
	data, err := encode(in)
	if err != nil {
		a.err = err
		return
	}
	a.opinion, a.took, a.err = s.part.run(ctx, a.hook, place{s.build.Cwd, s.build.Sandbox}, data)
	if a.err == nil && a.updated != nil {
		a.err = a.translate()
	}
}

// translate converts changed arguments to lashd's format. Arguments equal to the original ones are
// no change, because many hooks return their input. Changes that cannot be converted are an error.
func (a *asked) translate() (err error) {
	updated := a.updated
	a.updated = nil
	switch {
	case same(updated, a.words.input):
	case a.words.back == nil:
		return fmt.Errorf("it changes the arguments of %s, which hooks cannot change", cmp.Or(a.words.tool, "nothing"))
	default:
		a.updated, err = a.words.back(updated)
	}
	return err
}

// record logs the result of each run and the combined decision to the plugin's log.
func (p *Part) record(event string, runs []*asked, v *verdict) {
	for _, a := range runs {
		said := a.strength.String()
		if a.err != nil {
			said = a.err.Error()
		}
		p.config.Output.Add(slog.LevelDebug, fmt.Sprintf("%s: the hook %s returned %s after %d ms", event, a.hook, said, a.took.Milliseconds()))
	}
	if len(runs) > 0 && v.by != "" {
		p.config.Output.Add(slog.LevelDebug, fmt.Sprintf("%s: %s, because of %s", event, v.strength, v.by))
	}
	for _, text := range v.failed {
		p.config.Output.Add(slog.LevelWarn, event+": "+text)
	}
}
