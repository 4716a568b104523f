package plugin

import (
	"context"
	"encoding/json"
	"errors"

	"lashd/rpc/protocol"
)

// fold combines the directives of all hooks at a tool seam into a verdict. It runs in the goroutine of the call; only
// the hooks run elsewhere.
type fold struct {
	plugins *roster
	seam    Hook
	code    string              // failure code of this seam
	replace DirectiveKind       // which directive causes a second run of earlier hooks
	args    json.RawMessage     // before the call: the current arguments
	output  protocol.ToolOutput // after the call: the current result

	hooks   []string // their plugins, in order
	call    func(i int) question
	ended   terminal // the strictest decision so far
	verdict ToolVerdict
}

// question calls a hook. Its arguments are copied beforehand, because the goroutine of the hook starts with a small
// stack.
type question func() ([]Directive, error)

// run calls all hooks in order. If one fails, the verdict denies the call and the directives of the others are dropped.
func (f *fold) run(ctx context.Context, hooks []string, call func(int) question) (*ToolVerdict, error) {
	f.hooks, f.call = hooks, call
	err := f.all(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		out := f.failure(err.Error())
		return &ToolVerdict{Output: &out, Denied: true, Plugin: failedPlugin(err), Err: err}, nil
	}
	v := &f.verdict
	v.Output, v.Approval, v.Plugin = f.ended.output, f.ended.approval, f.ended.plugin
	v.Denied = f.ended.strength >= denied
	return v, nil
}

// all calls each hook and takes its directives.
func (f *fold) all(ctx context.Context) error {
	for i := range f.hooks {
		directives, err := f.ask(ctx, i)
		if err != nil {
			return err
		}
		for _, d := range directives {
			if err := f.take(ctx, i, Owned{f.hooks[i], d}); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask calls the hook i with the current arguments or result.
func (f *fold) ask(ctx context.Context, i int) ([]Directive, error) {
	directives, err := invoke(ctx, f.plugins, f.seam, f.hooks[i], f.call(i))
	if len(directives) == 0 {
		return nil, err
	}
	return own(directives), err
}

// take applies one directive of the hook i. An invalid one denies the call.
func (f *fold) take(ctx context.Context, i int, o Owned) error {
	if err := CheckSeam(f.seam, o); err != nil {
		f.offer(f.denial(o, err))
		return nil
	}
	switch o.Kind {
	case AbortTurn, ShortCircuitTool, RequireApproval:
		return f.decide(ctx, i, f.terminal(o))
	case ReplaceToolArgs:
		f.args, f.verdict.Args = o.Args, o.Args
		f.verdict.ArgsBy = append(f.verdict.ArgsBy, o.Plugin)
		return f.reinspect(ctx, i)
	case EnqueueMessages:
		f.verdict.Messages = append(f.verdict.Messages, o)
	default:
		f.verdict.Effects = append(f.verdict.Effects, o)
	}
	return nil
}

// decide offers a decision. After a call, the first accepted success becomes the new result, which earlier hooks then
// see.
func (f *fold) decide(ctx context.Context, i int, t terminal) error {
	accepted := f.offer(t)
	if f.seam != HookAfterTool || t.strength != allowed || !accepted {
		return nil
	}
	f.output = *t.output
	return f.reinspect(ctx, i)
}

// reinspect calls the hooks before i again with the new arguments or result. They may only reject or ask; replacing
// again is an error. Their other directives are dropped, because the first run has already counted them.
func (f *fold) reinspect(ctx context.Context, i int) error {
	for j := range i {
		directives, err := f.ask(ctx, j)
		if err != nil {
			return err
		}
		for _, d := range directives {
			if err := f.takeAgain(Owned{f.hooks[j], d}, f.hooks[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeAgain takes a directive of a second run. by is the plugin whose replacement caused that run.
func (f *fold) takeAgain(o Owned, by string) error {
	if CheckSeam(f.seam, o) != nil {
		return nil
	}
	t := f.terminal(o)
	switch {
	case t.strength >= asking:
		f.offer(t)
	case o.Kind == f.replace:
		return &HookError{o.Plugin, f.seam, &ReplacementError{o.Plugin, by}}
	}
	return nil
}

// failedPlugin returns the plugin that caused err. All errors of hooks are HookErrors.
func failedPlugin(err error) string {
	e, _ := errors.AsType[*HookError](err)
	return e.Plugin
}
