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

// atOnce is how many hooks of a question run side by side.
const atOnce = 16

// question is what the hooks of an event are asked.
type question struct {
	input   input
	subject string                               // what matchers are compared with
	tongues []tongue                             // of a call, instead of a subject
	spare   []*hook                              // hooks that are not asked again
	respond func(input json.RawMessage) response // the result of the call
}

// asked is one run of a hook.
type asked struct {
	hook  *hook
	words words
	opinion
	took time.Duration
	err  error
}

// ask asks all hooks of an event that fit, side by side, and each command once. The error is that of ctx, or a HookError. When
// ctx is done nobody waits for the commands, which end by themselves: that takes a moment, and Shutdown waits for it.
func (s *session) ask(ctx context.Context, q question) (*verdict, error) {
	runs := s.part.runs(q)
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

// runs are the runs that a question needs, in the order in which the hooks are declared.
func (p *Part) runs(q question) []*asked {
	var runs []*asked
	var seen []string
	for _, h := range p.hooks {
		if h.Event != q.input.Event || slices.Contains(q.spare, h) {
			continue
		}
		heard := h.matcher.heard(q.tongues)
		if q.tongues == nil && h.matcher.fits(q.subject) {
			heard = []words{{}}
		}
		identity := strings.Join(append([]string{string(h.OnError)}, h.argv...), "\x00")
		if len(heard) == 0 || slices.Contains(seen, identity) {
			continue
		}
		seen = append(seen, identity)
		for _, w := range heard {
			runs = append(runs, &asked{hook: h, words: w})
		}
	}
	return runs
}

// run asks the hook.
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
	a.opinion, a.took, a.err = s.part.run(ctx, a.hook, s.build.Cwd, data)
	if a.err == nil && a.updated != nil {
		a.err = a.translate()
	}
}

// translate puts new arguments into lashd's words. Those that are what they were are none.
func (a *asked) translate() (err error) {
	updated := a.updated
	a.updated = nil
	switch {
	case same(updated, a.words.input):
	case a.words.back == nil:
		return fmt.Errorf("it changes the arguments of %s, which cannot be changed here", cmp.Or(a.words.tool, "nothing"))
	default:
		a.updated, err = a.words.back(updated)
	}
	return err
}

// record writes what became of a question into the plugin's log.
func (p *Part) record(event string, runs []*asked, v *verdict) {
	for _, a := range runs {
		said := a.strength.String()
		if a.err != nil {
			said = a.err.Error()
		}
		p.config.Output.Add(slog.LevelDebug, fmt.Sprintf("%s: the hook %s says %s after %d ms", event, a.hook, said, a.took.Milliseconds()))
	}
	if len(runs) > 0 && v.by != "" {
		p.config.Output.Add(slog.LevelDebug, fmt.Sprintf("%s: %s, because of %s", event, v.strength, v.by))
	}
	for _, text := range v.failed {
		p.config.Output.Add(slog.LevelWarn, event+": "+text)
	}
}
