package plugin

import (
	"context"
	"encoding/json"
	"errors"

	"lashd/rpc/protocol"
)

// fold makes a verdict of what the hooks of a tool seam say.
type fold struct {
	plugins *roster
	seam    Hook
	code    string        // of a failure of the seam
	replace DirectiveKind // what is shown to earlier hooks again
	args    json.RawMessage
	output  protocol.ToolOutput

	hooks   []string // their plugins
	call    func(i int) question
	ended   terminal // the strongest so far
	verdict ToolVerdict
}

// question asks a hook. What it is shown is copied before, as its goroutine begins with a small stack.
type question func() ([]Directive, error)

// run asks all hooks in order. A hook that fails leaves nothing of what the others said.
func (f *fold) run(ctx context.Context, hooks []string, call func(int) question) (*ToolVerdict, error) {
	f.hooks, f.call = hooks, call
	err := f.all(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		out := f.failure(err.Error())
		return &ToolVerdict{Output: &out, Denied: true, Plugin: culprit(err), Err: err}, nil
	}
	v := &f.verdict
	v.Output, v.Approval, v.Plugin = f.ended.output, f.ended.approval, f.ended.plugin
	v.Denied = f.ended.strength >= denied
	return v, nil
}

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

func (f *fold) ask(ctx context.Context, i int) ([]Directive, error) {
	directives, err := invoke(ctx, f.plugins, f.seam, f.hooks[i], f.call(i))
	if len(directives) == 0 {
		return nil, err
	}
	return own(directives), err
}

// take is one directive of the hook i. A misused one denies the call.
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

// decide offers a terminal. After a call, the first success is a new result that others see.
func (f *fold) decide(ctx context.Context, i int, t terminal) error {
	accepted := f.offer(t)
	if f.seam != HookAfterTool || t.strength != allowed || !accepted {
		return nil
	}
	f.output = *t.output
	return f.reinspect(ctx, i)
}

// reinspect shows what is new to the hooks before i. They may refuse; another replacement is an error, and all else that
// they want is left out: they have wanted it once.
func (f *fold) reinspect(ctx context.Context, i int) error {
	for j := range i {
		directives, err := f.ask(ctx, j)
		if err != nil {
			return err
		}
		for _, d := range directives {
			if err := f.second(Owned{f.hooks[j], d}, f.hooks[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *fold) second(o Owned, by string) error {
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

// culprit is the plugin whose error it is; all errors of hooks are HookErrors.
func culprit(err error) string {
	e, _ := errors.AsType[*HookError](err)
	return e.Plugin
}
