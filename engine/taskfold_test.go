package engine_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lashd/engine/plugin"
	"lashd/engine/task"
	"lashd/rpc/protocol"
)

// meddler makes random valid requests about the tasks of two sessions; it ignores rejections.
type meddler struct {
	*daemon
	host     plugin.Capabilities
	sessions []protocol.SessionID
	ids      []protocol.TaskID
}

func (m *meddler) meddle(r *rapid.T, ctx context.Context) {
	session, other := rapid.SampledFrom(m.sessions).Draw(r, "session"), rapid.SampledFrom(m.sessions).Draw(r, "other")
	id := rapid.SampledFrom(m.ids).Draw(r, "task")
	of := protocol.TaskParams{SessionID: session, TaskID: id}
	spec := protocol.TaskSpec{
		Kind: protocol.TaskOther, Recovery: protocol.RecoverExternal, Payload: json.RawMessage(`{ "a": "<b> é" }`), Events: []protocol.TaskEventType{{Name: "seen"}},
		Hidden: rapid.Bool().Draw(r, "hidden"), ParentEnd: protocol.ParentEndCancel, Parent: rapid.SampledFrom(append(slices.Clip(m.ids), "")).Draw(r, "parent"),
	}
	switch rapid.IntRange(0, 8).Draw(r, "what") {
	case 0, 1:
		_, _ = m.host.Tasks.StartTask(ctx, &plugin.TaskStart{SessionID: session, TaskID: id, Spec: spec, Ref: rapid.SampledFrom([]string{"", "x"}).Draw(r, "ref")})
	case 2:
		_, _ = m.Tasks.Cancel(ctx, "cli_a", &protocol.TaskCancelParams{TaskParams: of})
	case 3:
		_, _ = m.Tasks.Complete(ctx, "cli_a", &protocol.TaskCompleteParams{TaskParams: of, Outcome: *done("all")})
	case 4:
		_, _ = m.Tasks.Observe(ctx, &protocol.TaskObserveParams{TaskParams: of, Observer: other, Remove: rapid.Bool().Draw(r, "remove")})
	case 5:
		_, _ = m.Tasks.Transfer(ctx, &protocol.TaskTransferParams{SessionID: session, TaskIDs: m.ids, To: other})
	case 6:
		_, _ = m.host.Tasks.TransitionTask(ctx, &plugin.TaskTransition{TaskParams: of, State: rapid.SampledFrom([]protocol.TaskState{"idle", "running"}).Draw(r, "state")})
	case 7:
		_, _ = m.host.Tasks.TellTask(ctx, &plugin.TaskTold{TaskParams: of, Name: "seen", Payload: json.RawMessage(`[1, 2]`)})
	case 8:
		_, _ = m.Tasks.CancelAll(ctx, "cli_a", &protocol.TaskCancelAllParams{SessionID: session})
	}
}

// complete ends all live tasks.
func (m *meddler) complete(ctx context.Context) {
	for _, session := range m.sessions {
		for _, id := range m.ids {
			_, _ = m.Tasks.Complete(ctx, "cli_a", &protocol.TaskCompleteParams{TaskParams: protocol.TaskParams{SessionID: session, TaskID: id}, Outcome: *done("all")})
		}
	}
}

func TestTasksAreWhatHappened(t *testing.T) {
	var lend plugin.Capabilities
	lender := hooked{"p", func(r *plugin.Registrar) {
		r.Operations().Command(protocol.OperationInfo{Name: "p.lend"}, func(_ context.Context, c *plugin.OperationCall) (*plugin.OperationResult, error) {
			lend = c.Host
			return &plugin.OperationResult{}, nil
		})
	}}
	d := start(t, setup{model: replies(), plugins: plugins(lender)})
	verified := func(d *daemon) string {
		t.Helper()
		return strings.Join(must[[]string](t)(d.store.VerifyTasks(t.Context(), task.Fold)), "; ")
	}
	final := map[string]protocol.Task{}
	t.Run("runtime/B01 stored tasks always equal the fold of their events, and ended tasks stay ended", func(t *testing.T) {
		rapid.Check(t, func(r *rapid.T) {
			m := &meddler{daemon: d, sessions: []protocol.SessionID{d.session(t), d.session(t)}, ids: []protocol.TaskID{"tsk_a", "tsk_b", "tsk_c"}}
			must[*protocol.OperationReceipt](t)(d.Operations.Command(t.Context(), &protocol.OperationParams{SessionID: m.sessions[0], Name: "p.lend"}))
			m.host = lend
			look := func() {
				for _, s := range m.sessions {
					p := &protocol.TaskListParams{SessionID: s, Hidden: true}
					for _, now := range must[*protocol.TaskListResult](t)(d.Tasks.List(t.Context(), p)).Data {
						key := fmt.Sprint(m.sessions[0], now.SessionID, now.ID)
						if was, over := final[key]; over && (was.Ordinal != now.Ordinal || was.State != now.State) {
							r.Fatalf("%s was %s, and is %s", now.ID, was.State, now.State)
						}
						if now.State.Final() {
							final[key] = now
						}
					}
				}
			}
			for range rapid.IntRange(1, 20).Draw(r, "steps") {
				m.meddle(r, t.Context())
				look()
			}
			m.complete(t.Context())
			look()
			if wrong := verified(d); wrong != "" {
				r.Fatal(wrong)
			}
		})
	})
	d = d.restart(t, nil)
	if wrong := verified(d); wrong != "" || len(final) == 0 {
		t.Errorf("runtime/B01 after a restart, with %d tasks that were over: %s", len(final), wrong)
	}
	d.stop()
	t.Run("runtime/B01 verification finds a task that differs from the fold of its events", func(t *testing.T) {
		db := must[*sql.DB](t)(sql.Open("sqlite", filepath.Join(d.store.Dir(), "lashd.db")))
		_, err := db.ExecContext(t.Context(), `UPDATE tasks SET body = CAST(json_set(CAST(body AS TEXT), '$.state', 'running') AS BLOB) WHERE task = (SELECT min(task) FROM tasks WHERE ended = 1)`)
		if err != nil || db.Close() != nil {
			t.Fatal(err)
		}
		if wrong := verified(start(t, setup{dir: d.store.Dir(), model: replies()})); !strings.Contains(wrong, "differs from the result of its") {
			t.Errorf("found: %q", wrong)
		}
	})
}
