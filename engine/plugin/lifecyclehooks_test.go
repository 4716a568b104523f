package plugin_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

func listens(id string, hook plugin.LifecycleHook) plugin.Factory {
	return with(id, func(r *plugin.Registrar) { r.Session().On(hook) })
}

func mutates(id string, m plugin.ConfigMutator) plugin.Factory {
	return with(id, func(r *plugin.Registrar) { r.Session().MutateConfig(m) })
}

func TestLifecycle(t *testing.T) {
	event := &plugin.LifecycleEvent{Kind: plugin.TurnPersisted, Report: &protocol.TurnReport{TurnID: "t"}}
	t.Run("plugin/HK-25 plugin/HK-26 hooks run in parallel, all are awaited, and failures are sorted by id", func(t *testing.T) {
		var met sync.WaitGroup // no hook continues before all four have started
		met.Add(4)
		meet := func(err error) plugin.LifecycleHook {
			return func(_ context.Context, e *plugin.LifecycleEvent) error {
				met.Done()
				met.Wait()
				e.Report.TurnID = "spoilt"
				return err
			}
		}
		clumsy := func(ctx context.Context, e *plugin.LifecycleEvent) error {
			_ = meet(nil)(ctx, e)
			panic("clumsy")
		}
		s := open(t, listens("c", meet(errBoom)), listens("d2", meet(nil)), listens("b", clumsy), listens("a", meet(errBoom)))
		got := s.Emit(t.Context(), event)
		if len(got) != 3 || got[0].Plugin != "a" || got[1].Plugin != "b" || got[2].Plugin != "c" || !s.Listens() {
			t.Fatalf("%+v", got)
		}
		panicked, _ := errors.AsType[*plugin.PanicError](got[1].Err)
		if !errors.Is(got[0].Err, errBoom) || panicked == nil || len(panicked.Stack) == 0 || event.Report.TurnID != "t" {
			t.Errorf("%+v, report %+v", got, event.Report)
		}
	})
	t.Run("plugin/HK-01 start and end of event hooks are marked, also for failures", func(t *testing.T) {
		var marks []string
		s := open(t, listens("p", func(context.Context, *plugin.LifecycleEvent) error { return errBoom }))
		s.SetProbe(func(mark string) { marks = append(marks, mark) })
		s.Emit(t.Context(), event)
		if !slices.Equal(marks, []string{"plugin_hook.turn_persisted.p begin", "plugin_hook.turn_persisted.p end"}) {
			t.Errorf("%q", marks)
		}
	})
	if s := open(t); s.Listens() || s.Emit(t.Context(), event) != nil {
		t.Error("a session without hooks has a receiver")
	}
}

func TestClosed(t *testing.T) {
	t.Run("issue/4-2 Closed hooks run once, in reverse order, even if one fails", func(t *testing.T) {
		var called []string
		end := func(id string) plugin.Factory {
			return with(id, func(r *plugin.Registrar) {
				r.Session().Closed(func() error {
					called = append(called, id)
					if id == "b" {
						panic("boom")
					}
					return nil
				})
			})
		}
		s := open(t, end("a"), end("b"))
		err := s.Close()
		if err == nil || err.Error() != "plugin b: close: panicked: boom" {
			t.Errorf("close: %v", err)
		}
		_ = s.Close()
		if !slices.Equal(called, []string{"b", "a"}) {
			t.Errorf("called %q", called)
		}
	})
}

func TestMutateConfig(t *testing.T) {
	t.Run("plugin/HK-27 mutators run as a pipeline over one change, and a failing mutator is skipped", func(t *testing.T) {
		var seen []plugin.ConfigChange
		add := func(text string, err error) plugin.ConfigMutator {
			return func(_ context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
				seen = append(seen, *c)
				c.Current.Options["p"][0], c.Previous.Prompt = '9', "spoilt"
				c.Config.Prompt += text
				return c.Config, err
			}
		}
		previous, current := protocol.Config{Prompt: "old"}, protocol.Config{Prompt: "new", Options: protocol.PluginOptions{"p": raw(`1`)}}
		s := open(t, mutates("a", add(" a", nil)), mutates("b", add(" b", errBoom)), mutates("c", add(" c", nil)))
		got, failed := s.MutateConfig(t.Context(), previous, current, plugin.Capabilities{})
		if got.Prompt != "new a c" || len(failed) != 1 || failed[0].Plugin != "b" || !errors.Is(failed[0].Err, errBoom) {
			t.Errorf("%+v, failures %v", got, failed)
		}
		for i, want := range []string{"new", "new a", "new a"} {
			if c := seen[i]; c.Config.Prompt != want || c.Current.Prompt != "new" || c.Previous.Prompt != "old" {
				t.Errorf("mutator %d got %+v, want %s", i, c, want)
			}
		}
		if diff := cmp.Diff(protocol.Config{Prompt: "new", Options: protocol.PluginOptions{"p": raw(`1`)}}, current); diff != "" || previous.Prompt != "old" {
			t.Error(diff)
		}
	})
	t.Run("plugin/HK-27 without mutators nothing changes", func(t *testing.T) {
		if got, failed := open(t).MutateConfig(t.Context(), protocol.Config{}, protocol.Config{Prompt: "x"}, plugin.Capabilities{}); got.Prompt != "x" || failed != nil {
			t.Errorf("%+v, %v", got, failed)
		}
	})
}
