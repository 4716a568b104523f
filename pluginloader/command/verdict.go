package command

import (
	"cmp"
	"encoding/json"
	"fmt"

	"lashd/pluginloader/manifest"
)

// maxContext is the maximum length in bytes of one text of a hook for the model.
const maxContext = 16 << 10

// verdict is the combined result of all hooks of a question. ask builds it on one goroutine, after
// all runs have ended. Its users decide what a deny or a halt means for their event.
type verdict struct {
	strength strength
	reason   string
	by       string          // the hook that decided
	args     json.RawMessage // changed arguments in lashd's format; nil: unchanged
	changed  []*hook         // the hooks that changed args
	contexts []string        // texts for the model
	messages []string        // texts for people
	output   json.RawMessage // replacement of the call's result; nil: none
	failed   []string        // errors of hooks whose failure is ignored
	failing  bool            // the decision is the failure of a hook
}

// HookError is the failure of a hook with OnErrorFail.
type HookError struct {
	Hook string // file and line of its definition
	Err  error
}

// Error names the hook and its failure.
func (e *HookError) Error() string { return fmt.Sprintf("the hook %s failed: %v", e.Hook, e.Err) }

func (e *HookError) Unwrap() error { return e.Err }

// take adds the result of one run. The caller adds the runs in the order of the declarations. A
// stronger decision replaces a weaker one; of equal ones the first counts. Different changes of the
// arguments by two hooks deny the call.
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

// decide sets the decision and, unless an equal one came first, its reason and the hook
// responsible.
func (v *verdict) decide(to strength, reason string, by *hook) {
	if to > v.strength || v.reason == "" {
		v.reason = shortened(cmp.Or(reason, "the hook gave no reason"), maxContext)
		v.by = by.String()
	}
	v.failing = v.failing && to == v.strength
	v.strength = to
}

// fail applies the hook's OnError to its failure: allow ignores it and reports it to people, deny
// turns it into a denial, and fail returns it as an error.
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
