package engine_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

func mutator(id string, do func(context.Context, *plugin.ConfigChange) (protocol.Config, error)) hooked {
	return hooked{id, func(r *plugin.Registrar) { r.Session().MutateConfig(do) }}
}

// iterations are settings with another budget.
func iterations(id protocol.SessionID, n int) *protocol.SessionConfigureParams {
	return &protocol.SessionConfigureParams{SessionID: id, Budget: &protocol.Budget{Iterations: n}}
}

// budget is how many model calls a session's turns may make, by what the store says.
func (d *daemon) budget(t *testing.T, id protocol.SessionID) int {
	t.Helper()
	return must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session.Config.Budget.Iterations
}

func TestMutators(t *testing.T) {
	clamp := mutator("clamp", func(_ context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
		c.Config.Budget.Iterations = min(c.Config.Budget.Iterations, 5)
		return c.Config, nil
	})
	t.Run("plugin/HK-27 plugin/S-03 plugin/S-13 each mutator sees the result of the previous one, and turns use the final settings", func(t *testing.T) {
		var seen [][3]int
		halve := mutator("halve", func(_ context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
			seen = append(seen, [3]int{c.Previous.Budget.Iterations, c.Current.Budget.Iterations, c.Config.Budget.Iterations})
			c.Config.Budget.Iterations -= 3
			return c.Config, nil
		})
		d := start(t, setup{model: replies(calls("none"), calls("none"), calls("none"), scripted.Reply{Text: "done"}), plugins: plugins(clamp, halve)})
		id := d.session(t)
		o := d.observe(t, id)
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), iterations(id, 9)))
		if told := o.typed(protocol.EventSessionConfigured); told.Config.Budget.Iterations != 2 || len(told.Issues) != 0 || !slices.Equal(seen, [][3]int{{20, 20, 5}, {2, 9, 5}}) {
			t.Errorf("told of %+v, mutators saw %v", told.Config.Budget, seen)
		}
		if report := d.turn(t, id, "go"); report.Outcome.Kind != protocol.OutcomeMaxTurns || len(report.Calls) != 2 {
			t.Errorf("%s after %d calls", report.Outcome.Kind, len(report.Calls))
		}
		if d = d.restart(t, nil); d.budget(t, id) != 2 {
			t.Errorf("budget after a restart: %d", d.budget(t, id))
		}
		if report := d.turn(t, id, "again"); report.State != protocol.TurnCompleted {
			t.Errorf("%+v", report.Outcome)
		}
	})
	t.Run("plugin/HK-27 failing mutators and invalid results are skipped and logged as issues", func(t *testing.T) {
		fails := mutator("fails", func(context.Context, *plugin.ConfigChange) (protocol.Config, error) {
			return protocol.Config{}, errBoom
		})
		for name, c := range map[string]struct {
			second hooked
			want   int
			issues []string
		}{
			"an error": {clamp, 5, []string{"fails: plugin fails: config_mutator: boom"}},
			"settings that are bad": {mutator("spoils", func(_ context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
				c.Config.Options = protocol.PluginOptions{"x": json.RawMessage(`{`)}
				return c.Config, nil
			}), 9, []string{"fails: plugin fails: config_mutator: boom", ""}},
		} {
			d := start(t, setup{model: replies(), plugins: plugins(fails, c.second)})
			id := d.session(t)
			o := d.observe(t, id)
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), iterations(id, 9)))
			told := o.typed(protocol.EventSessionConfigured)
			if d.budget(t, id) != c.want || len(told.Issues) != len(c.issues) || told.Issues[0].Message != c.issues[0] {
				t.Errorf("%s: budget %d, issues %+v", name, d.budget(t, id), told.Issues)
			}
		}
	})
	t.Run("plugin/HK-27 the session stays usable while a mutator runs, and a concurrent change is not lost", func(t *testing.T) {
		var d *daemon
		var id protocol.SessionID
		times := 0
		uses := mutator("uses", func(ctx context.Context, c *plugin.ConfigChange) (protocol.Config, error) {
			if times++; times == 1 {
				if _, err := d.Sessions.Configure(ctx, &protocol.SessionConfigureParams{SessionID: id, Prompt: new("beside")}); err != nil {
					return c.Config, err
				}
			}
			return c.Config, nil
		})
		d = start(t, setup{model: replies(), plugins: plugins(uses)})
		id = d.session(t)
		times = 0
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), iterations(id, 9)))
		cfg := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id})).Session.Config
		if cfg.Prompt != "beside" || cfg.Budget.Iterations != 9 || times != 3 {
			t.Errorf("%+v after %d questions", cfg, times)
		}
	})
	t.Run("plugin/HK-27 new sessions and forks start with the mutated settings, and failures are reported", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		old := d.session(t)
		fails := mutator("fails", func(context.Context, *plugin.ConfigChange) (protocol.Config, error) {
			return protocol.Config{}, errBoom
		})
		d = d.restart(t, func(s *setup) { s.plugins = plugins(fails, clamp) })
		fresh := d.session(t)
		fork := d.fork(t, old, "")
		if got := []int{d.budget(t, old), d.budget(t, fresh), d.budget(t, fork.SessionID), fork.Session.Config.Budget.Iterations}; !slices.Equal(got, []int{20, 5, 5, 5}) {
			t.Errorf("budgets %v", got)
		}
		for _, id := range []protocol.SessionID{fresh, fork.SessionID} {
			told := d.observe(t, id, 0).typed(protocol.EventPluginStatus)
			if told.Name != "config_mutator_failed" || len(told.Issues) != 1 || told.Issues[0].Message != "fails: plugin fails: config_mutator: boom" {
				t.Errorf("told of %+v", told)
			}
		}
	})
	t.Run("plugin/HK-27 a repeated request changes and publishes nothing", func(t *testing.T) {
		d, told := listening(t, nil)
		id := d.session(t)
		p := iterations(id, 9)
		p.IdempotencyKey = "k"
		first := must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), p))
		must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), iterations(id, 7)))
		again := must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), p))
		if again.Seq != first.Seq || !again.Duplicate || d.budget(t, id) != 7 || !slices.Equal(told.list, []string{"20 to 9", "9 to 7"}) {
			t.Errorf("%+v, %+v, told %q", first, again, told.list)
		}
	})
	t.Run("plugin/HK-27 plugins are notified of an actual change, and their failures are issues", func(t *testing.T) {
		d, told := listening(t, errBoom)
		id := d.session(t)
		o := d.observe(t, id)
		for _, n := range []int{9, 9} {
			must[*protocol.HeadResult](t)(d.Sessions.Configure(t.Context(), iterations(id, n)))
		}
		issue := o.typed(protocol.EventPluginStatus)
		if !slices.Equal(told.list, []string{"20 to 9"}) || len(issue.Issues) != 1 || issue.Issues[0].Code != "lifecycle_hook_failed" || issue.Seq == 0 {
			t.Errorf("told %q, issue %+v", told.list, issue)
		}
	})
}

// listening is a daemon with a plugin that notes changes of settings.
func listening(t *testing.T, err error) (*daemon, *notes) {
	told := &notes{}
	return start(t, setup{model: replies(), plugins: plugins(hooked{"listens", func(r *plugin.Registrar) {
		r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error {
			if e.Kind == plugin.SessionConfigChanged {
				told.add(strconv.Itoa(e.Previous.Budget.Iterations) + " to " + strconv.Itoa(e.Current.Budget.Iterations))
				return err
			}
			return nil
		})
	}})}), told
}
