package command

import (
	"cmp"
	"encoding/json"
	"fmt"

	"lashd/pluginloader/manifest"
)

// maxContext is how much of what a hook says reaches the model.
const maxContext = 16 << 10

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
