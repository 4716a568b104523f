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

	"lashd/pluginloader/manifest"
)

// atOnce is how many hooks of a question run side by side.
const atOnce = 16

// maxContext is how much of what a hook says reaches the model.
const maxContext = 16 << 10

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

// verdict is what all hooks of a question come to.
type verdict struct {
	strength strength
	reason   string
	by       string          // which hook has decided
	args     json.RawMessage // other arguments of the call, in lashd's words; nil: none
	changed  []*hook         // whose they are
	contexts []string
	messages []string // for people
	output   json.RawMessage
	failed   []string // of hooks whose failure counts for nothing
	failing  bool     // it is a failure that has decided
}

// HookError is a hook that has failed, and whose failure is not let be.
type HookError struct {
	Hook string // where it stands
	Err  error
}

func (e *HookError) Error() string { return fmt.Sprintf("the hook %s has failed: %v", e.Hook, e.Err) }

func (e *HookError) Unwrap() error { return e.Err }

// ask asks all hooks of an event that fit, side by side, and each command once. The error is that of ctx, or a HookError.
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
	all.Wait()
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
	data, err := json.Marshal(in)
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

// take adds what a hook says. The stronger opinion counts, and of equals the first.
func (v *verdict) take(a *asked) error {
	if a.err != nil {
		return v.fail(a)
	}
	if a.strength > v.strength {
		v.decide(a.strength, a.reason, a.hook)
	}
	if a.context != "" {
		v.contexts = append(v.contexts, shortened(a.context, maxContext))
	}
	if a.message != "" {
		v.messages = append(v.messages, shortened(a.message, maxContext))
	}
	if v.output == nil {
		v.output = a.output
	}
	if a.updated == nil {
		return nil
	}
	if v.args != nil && !same(v.args, a.updated) {
		v.decide(max(v.strength, deny), fmt.Sprintf("the hooks %s and %s both change the arguments of the call", v.changed[0], a.hook), a.hook)
		return nil
	}
	v.args, v.changed = a.updated, append(v.changed, a.hook)
	return nil
}

func (v *verdict) decide(to strength, reason string, by *hook) {
	if to > v.strength || v.reason == "" {
		v.reason = shortened(cmp.Or(reason, "a hook has said so"), maxContext)
		v.by = by.String()
	}
	v.failing = v.failing && to == v.strength
	v.strength = to
}

// fail is what the failure of a hook comes to, as the hook declares.
func (v *verdict) fail(a *asked) error {
	failure := &HookError{a.hook.String(), a.err}
	switch a.hook.OnError {
	case manifest.OnErrorAllow:
		v.failed = append(v.failed, failure.Error())
	case manifest.OnErrorDeny:
		if v.strength < deny {
			v.decide(deny, failure.Error(), a.hook)
			v.failing = true
		}
	default:
		return failure
	}
	return nil
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
