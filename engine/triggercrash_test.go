package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

const (
	triggerPoint     = "trigger: "
	triggerReserved  = triggerPoint + "an occurrence is stored, and nothing of it delivered"
	triggerDelivered = triggerPoint + "all is delivered, and the model is asked"
)

// unopenable is a plugin that cannot open a session while a file exists.
type unopenable struct {
	file string
	hung chan struct{}
}

func (unopenable) ID() string                       { return "stuck" }
func (unopenable) Register(*plugin.Registrar) error { return nil }
func (s unopenable) Build(plugin.BuildContext) (plugin.Plugin, error) {
	if _, err := os.Stat(s.file); err == nil {
		s.hung <- struct{}{}
		select {}
	}
	return s, nil
}

func triggerSetup(dir, point string, reached func(string)) (setup, unopenable) {
	s := unopenable{filepath.Join(dir, "stuck"), make(chan struct{}, 10)}
	answer := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "noted"}}}})
	asked := make(chan struct{}, 2)
	model := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		if asked <- struct{}{}; reached != nil && point == triggerDelivered {
			if len(asked) == 2 {
				reached(point)
			}
			select {}
		}
		<-asked
		answer.Stream(ctx, req)(yield)
	})
	return setup{model: model, plugins: []plugin.Factory{s}}, s
}

// triggerVictim emits an occurrence that wakes one session and starts another.
func triggerVictim(dir, point string, reached func(string)) {
	made, s := triggerSetup(dir, point, reached)
	d, err := made.open(filepath.Join(dir, "store"))
	check(err)
	ctx := context.Background()
	go d.store.Run(ctx)
	go d.Run(ctx)
	_, err = d.Sessions.New(ctx, &protocol.SessionNewParams{SessionID: victimSession, Cwd: dir})
	check(err)
	for key, do := range map[string]protocol.TriggerAction{"woken": wakes(victimSession, "look"), "begun": begins(dir, "do it")} {
		_, err = d.Triggers.Register(ctx, &protocol.TriggerRegisterParams{Key: key, TriggerSpec: protocol.TriggerSpec{Source: manual(), Action: do}})
		check(err)
	}
	emit := func() {
		_, err = d.Triggers.Emit(ctx, &protocol.TriggerEmitParams{Type: protocol.TypeManualEmitted, OccurrenceKey: "once"})
		check(err)
	}
	if point == triggerDelivered {
		emit()
		time.Sleep(time.Minute)
	}
	_, err = d.Triggers.Types(ctx, &protocol.TriggerTypesParams{})
	check(err)
	check(os.WriteFile(s.file, nil, 0o600))
	go func() { // the session's actor does not serve requests while plugins open
		_, _ = d.Turns.Start(ctx, &protocol.TurnStartParams{SessionID: victimSession, Input: text("go")})
	}()
	<-s.hung
	emit()
	<-s.hung // the other session
	reached(point)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func TestTriggersKilled(t *testing.T) {
	for _, point := range []string{triggerReserved, triggerDelivered} {
		t.Run("runtime/B14 killed when "+point[len(triggerPoint):], func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			kill(t, dir, point)
			if err := os.RemoveAll(filepath.Join(dir, "stuck")); err != nil {
				t.Fatal(err)
			}
			s, _ := triggerSetup(dir, point, nil)
			s.dir = filepath.Join(dir, "store")
			d := start(t, s)
			o := d.afterwards(t)
			if len(o.Deliveries) != 2 {
				t.Fatalf("deliveries %+v", o.Deliveries)
			}
			for _, to := range o.Deliveries {
				if to.State != protocol.DeliveryDelivered {
					t.Errorf("%s is %s %s", to.Key, to.State, to.Reason)
					continue
				}
				d.wait(t, to.TurnID)
				say := map[string]string{"woken": "look", "begun": "do it"}[to.Key]
				same(t, to.Key, d.history(t, to.SessionID), []string{
					"notice: [trigger " + to.Key + "] " + say + "\n\nmanual.emitted: {}", "agentMessage: noted"})
			}
			all := must[*protocol.SessionListResult](t)(d.Sessions.List(t.Context(), &protocol.SessionListParams{})).Data
			if len(all) != 2 {
				t.Errorf("there are %d sessions", len(all))
			}
		})
	}
}

// afterwards returns the only occurrence once all its deliveries have ended.
func (d *daemon) afterwards(t *testing.T) protocol.Occurrence {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; {
		all := must[*protocol.TriggerHistoryResult](t)(d.Triggers.History(t.Context(), &protocol.TriggerHistoryParams{})).Data
		if len(all) != 1 {
			t.Fatalf("%d occurrences", len(all))
		}
		open := false
		for _, to := range all[0].Deliveries {
			open = open || to.State == protocol.DeliveryReserved
		}
		if !open || time.Now().After(end) {
			return all[0]
		}
		time.Sleep(10 * time.Millisecond)
	}
}
