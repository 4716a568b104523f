package engine_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

// Points at which the daemon is killed while a subagent runs.
const (
	subagentPoint = "subagent: "
	childMade     = subagentPoint + "while its child is made"
	childOpened   = subagentPoint + "while its child is opened"
	childWorks    = subagentPoint + "while its turn runs"
	childIsDone   = subagentPoint + "once its turn is stored"
	childCorrects = subagentPoint + "while its child answers again"
)

// subagentPlugin reaches points when the plugins of a child are built and when its turn is stored.
type subagentPlugin struct {
	built *atomic.Int32
	at    func(point string)
}

func (subagentPlugin) ID() string { return "points" }

func (p subagentPlugin) Build(bc plugin.BuildContext) (plugin.Plugin, error) {
	if bc.Parent == "" {
		return hooked{"points", func(*plugin.Registrar) {}}, nil
	}
	if p.built.Add(1) == 1 {
		p.at(childMade)
	} else {
		p.at(childOpened)
	}
	return hooked{"points", func(r *plugin.Registrar) {
		r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error {
			if e.Kind == plugin.TurnPersisted {
				p.at(childIsDone)
			}
			return nil
		})
	}}, nil
}

// subagentSetup is a daemon with a child whose second answer fits the schema.
func subagentSetup(point string, reached func(string)) setup {
	at := func(p string) {
		if reached != nil && p == point {
			reached(p)
		}
	}
	script := scripted.New(&scripted.Script{Turns: []scripted.Turn{
		{Match: &scripted.Match{LastUserContains: "does not match the required schema"}, Replies: []scripted.Reply{{Text: "2"}}},
		{Match: &scripted.Match{LastUserContains: "count"}, Replies: []scripted.Reply{{Text: "two"}}},
	}, Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}}})
	model := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		if len(req.Messages) > 2 {
			at(childCorrects)
		} else {
			at(childWorks)
		}
		script.Stream(ctx, req)(yield)
	})
	return setup{model: model, plugins: []plugin.Factory{subagentPlugin{&atomic.Int32{}, at}}}
}

func counting() protocol.TaskSpec {
	spec := delegated(1, "count")
	spec.Subagent.Output, spec.Ended = []byte(`{"type":"integer"}`), &protocol.TaskWake{}
	return spec
}

func subagentVictim(dir, point string, reached func(string)) {
	d, err := subagentSetup(point, reached).open(filepath.Join(dir, "store"))
	check(err)
	ctx := context.Background()
	go d.store.Run(ctx)
	go d.Run(ctx)
	_, err = d.Sessions.New(ctx, &protocol.SessionNewParams{SessionID: victimSession, Cwd: dir})
	check(err)
	_, err = d.Tasks.Start(ctx, "cli_a", &protocol.TaskStartParams{SessionID: victimSession, TaskID: "tsk_a", Spec: counting()})
	check(err)
	select {}
}

func TestSubagentKilled(t *testing.T) {
	for _, point := range []string{childMade, childOpened, childWorks, childIsDone, childCorrects} {
		t.Run("issue/5-5 runtime/B11 no step of a subagent happens twice, killed "+strings.TrimPrefix(point, subagentPoint), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			kill(t, dir, point)
			s := subagentSetup(point, nil)
			s.dir = filepath.Join(dir, "store")
			d := start(t, s)
			got := d.ended(t, victimSession, "tsk_a")
			if got.State != protocol.TaskCompleted || string(got.Outcome.Value) != "2" {
				t.Errorf("the task ended as %s %+v", got.State, got.Outcome)
			}
			if turns := d.allTurns(t, "ses_child1"); len(turns) != 2 || turns[0].TurnID != "trn_child1" || turns[1].TurnID != "trn_child1_again" {
				t.Errorf("the child has the turns %+v", turns)
			}
			eventually(t, func() bool { return len(d.allTurns(t, victimSession)) > 0 })
			woken := d.allTurns(t, victimSession)
			d.wait(t, woken[0].TurnID)
			if len(woken) != 1 {
				t.Errorf("the session above was woken %d times", len(woken))
			}
		})
	}
}
