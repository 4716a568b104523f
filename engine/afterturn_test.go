package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// errAfterTurn is a plugin whose hook after the turn fails.
func errAfterTurn(err error) hooked {
	return hooked{"a", func(r *plugin.Registrar) {
		r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) { return nil, err })
	}}
}

func TestAfterTurnFails(t *testing.T) {
	inDeleted := plugin.NewSession(protocol.SessionStart{Kind: protocol.StartExisting})
	for name, p := range map[string]hooked{
		"with an error of a context":                                 errAfterTurn(fmt.Errorf("upload: %w", context.Canceled)),
		"with an error of the store":                                 errAfterTurn(fmt.Errorf("notes: %w", persistence.ErrDeleted)),
		"with the error that says the turn stops":                    errAfterTurn(fmt.Errorf("notes: %w", persistence.ErrFenced)),
		"in the place of a session that was deleted during the turn": afterTurn("a", plugin.Directive{Kind: plugin.CreateSession, Session: inDeleted}),
	} {
		t.Run("plugin/HK-18 plugin/HK-19 an error in an AfterTurn hook fails the turn: "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(p)})
				gone := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir()}))
				inDeleted.Start.SessionID = gone.SessionID
				must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: gone.SessionID}))
				id := d.session(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				report, err := d.Turns.Wait(ctx, &protocol.TurnWaitParams{TurnID: d.begin(t, id, "go").TurnID})
				if err != nil || report.State != protocol.TurnFailed || report.Issues[len(report.Issues)-1].Code != "plugin_finalize_turn" {
					t.Errorf("report %+v, %v", report, err)
				}
			})
		})
	}
}

func TestPersistedReport(t *testing.T) {
	t.Run("plugin/HK-25 turnPersisted reports what was stored, even if the turn was interrupted in an AfterTurn hook", func(t *testing.T) {
		for name, interrupted := range map[string]bool{"completed": false, "interrupted": true} {
			synctest.Test(t, func(t *testing.T) {
				p := newPause()
				var told *protocol.TurnReport
				d := start(t, setup{model: replies(scripted.Reply{Text: "ok"}), plugins: plugins(hooked{"a", func(r *plugin.Registrar) {
					r.Turn().After(func(context.Context, *plugin.TurnSummary) ([]plugin.Directive, error) {
						close(p.reached)
						<-p.goOn
						return nil, nil
					})
					r.Session().On(func(_ context.Context, e *plugin.LifecycleEvent) error {
						if e.Kind == plugin.TurnPersisted {
							told = e.Report
						}
						return nil
					})
				}})})
				turn := d.begin(t, d.session(t), "go").TurnID
				<-p.reached
				if interrupted {
					d.interrupt(t, turn)
				}
				close(p.goOn)
				stored := d.wait(t, turn)
				synctest.Wait()
				if diff := cmp.Diff(stored, told); diff != "" || stored.HeadRevision == 0 || (stored.State == protocol.TurnCancelled) != interrupted {
					t.Errorf("%s: stored %+v, told otherwise: %s", name, stored, diff)
				}
			})
		}
	})
}
