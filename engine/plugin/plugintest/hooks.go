package plugintest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// seam is a hook seam that the checks call. Its call passes arguments that hold nothing, which every hook must survive:
// in a real turn optional fields are absent as well.
type seam struct {
	name string
	call func(context.Context, *plugin.Session) error
}

// no drops a value and returns the error.
func no[T any](_ T, err error) error { return err }

// seams lists every seam that a plugin can register hooks for.
var seams = []seam{
	{"prompts", func(ctx context.Context, s *plugin.Session) error { return no(s.Prompts(ctx, &plugin.PromptContext{})) }},
	{"before turn", func(ctx context.Context, s *plugin.Session) error {
		return no(s.BeforeTurn(ctx, &plugin.TurnContext{}))
	}},
	{"checkpoint", func(ctx context.Context, s *plugin.Session) error {
		return no(s.Checkpoint(ctx, &plugin.CheckpointContext{}))
	}},
	{"after turn", func(ctx context.Context, s *plugin.Session) error { return no(s.AfterTurn(ctx, &plugin.TurnSummary{})) }},
	{"before tool call", func(ctx context.Context, s *plugin.Session) error {
		return verdict(s.BeforeToolCall(ctx, &plugin.ToolCallContext{}))
	}},
	{"after tool call", func(ctx context.Context, s *plugin.Session) error {
		return verdict(s.AfterToolCall(ctx, &plugin.ToolResultContext{}))
	}},
	{"stream", func(ctx context.Context, s *plugin.Session) error { return no(s.Stream(ctx, plugin.StreamChunk{})) }},
	{"response", func(ctx context.Context, s *plugin.Session) error { return no(s.Response(ctx, plugin.Response{})) }},
	{"stream finished", func(ctx context.Context, s *plugin.Session) error {
		return s.StreamFinished(ctx, plugin.StreamCancelled)
	}},
	{"transform", func(ctx context.Context, s *plugin.Session) error {
		return no(s.Transform(ctx, &plugin.ContextView{}, plugin.PreparedContext{}))
	}},
	{"compact", func(ctx context.Context, s *plugin.Session) error {
		_, _, err := s.Compact(ctx, &plugin.CompactRequest{})
		return err
	}},
	{"project", func(ctx context.Context, s *plugin.Session) error {
		return projected(s.ProjectResult(ctx, &plugin.ToolResultContext{Output: protocol.Succeed("x")}))
	}},
	{"config", func(ctx context.Context, s *plugin.Session) error {
		_, failed := s.MutateConfig(ctx, protocol.Config{}, protocol.Config{}, plugin.Capabilities{})
		return first(failed)
	}},
	{"catalog", func(ctx context.Context, s *plugin.Session) error {
		return no(s.Contribute(ctx, plugin.CatalogContext{}))
	}},
	{"prose", func(ctx context.Context, s *plugin.Session) error { return no(s.Prose(ctx, "x")) }},
	{"events", events},
}

// events emits one lifecycle event of each kind.
func events(ctx context.Context, s *plugin.Session) error {
	var errs []error
	for _, kind := range []plugin.LifecycleKind{plugin.TurnFinalized, plugin.TurnPersisted, plugin.SessionRestored, plugin.SessionConfigChanged} {
		errs = append(errs, first(s.Emit(ctx, &plugin.LifecycleEvent{Kind: kind})))
	}
	return errors.Join(errs...)
}

// first returns the first failure, or nil.
func first(failed []plugin.Failure) error {
	if len(failed) == 0 {
		return nil
	}
	return failed[0].Err
}

// verdict returns the error of a tool seam, whether it was returned or is in the verdict.
func verdict(v *plugin.ToolVerdict, err error) error {
	if err != nil {
		return err
	}
	return v.Err
}

// projected converts the output of a projector that panicked back to a PanicError.
func projected(out protocol.ToolOutput) error {
	if out.Failure == nil || out.Failure.Code != "projector_panicked" {
		return nil
	}
	return &plugin.PanicError{Value: out.Text}
}

// turnLength is the length of a turn in these checks: long enough for a hook to have started.
const turnLength = 20 * time.Millisecond

// cancels ends the turn while each seam runs. It fails the test if a hook does not return then; errors of the hook are
// fine. The limit is Config.Seams.
func (k *kit) cancels(t *testing.T) {
	s := k.open(t)
	for _, x := range seams {
		ctx, cancel := context.WithTimeout(t.Context(), turnLength)
		err := k.wait(t, x, x.start(ctx, s)) // it may fail: what counts is that it returns
		if errors.As(err, new(*plugin.AbandonedError)) {
			t.Errorf("%s: %v", x.name, err)
		}
		cancel()
	}
}

// survives calls each seam with empty arguments. Hooks may fail, but not panic.
func (k *kit) survives(t *testing.T) {
	s := k.open(t)
	ctx, cancel := context.WithTimeout(t.Context(), k.Seams)
	defer cancel()
	for _, x := range seams {
		if err := panicked(k.wait(t, x, x.start(ctx, s))); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// start calls the seam in a goroutine.
func (x seam) start(ctx context.Context, s *plugin.Session) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- x.call(ctx, s) }()
	return answer
}

// wait waits for a hook, for twice k.Seams. A hook that is still running then fails the test.
func (k *kit) wait(t *testing.T, x seam, answer <-chan error) error {
	t.Helper()
	select {
	case err := <-answer:
		return err
	case <-time.After(2 * k.Seams):
		t.Fatalf("%s: still running %v after the end of its turn", x.name, k.Seams)
		return nil
	}
}

// panicked returns err with the plugin's stack if a plugin has panicked, else nil.
func panicked(err error) error {
	if p, ok := errors.AsType[*plugin.PanicError](err); ok {
		return fmt.Errorf("%w\n%s", err, p.Stack)
	}
	return nil
}
