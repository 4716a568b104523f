package engine_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/trigger"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func cron(schedule string) protocol.TriggerSource {
	return protocol.TriggerSource{Type: protocol.TypeCronTick, Cron: &protocol.CronSource{Schedule: schedule, Missed: protocol.MissedSkip}}
}

func files(glob, dir string) protocol.TriggerSource {
	return protocol.TriggerSource{Type: protocol.TypeFileChanged, File: &protocol.FileSource{Glob: glob, Dir: dir}}
}

func TestRegisterRefused(t *testing.T) {
	d := start(t, setup{model: replies(), plugins: mails()})
	id, cwd := d.session(t), t.TempDir()
	good := wakes(id, "x")
	changed := func(change func(*protocol.TriggerAction)) protocol.TriggerAction {
		a := good
		change(&a)
		return a
	}
	for _, c := range []struct {
		name   string
		key    string
		source protocol.TriggerSource
		filter string
		do     protocol.TriggerAction
		want   string
	}{
		{"no key", "", manual(), "", good, "/key: is required"},
		{"a key with a line break", "a\nb", manual(), "", good, "/key: must have at most"},
		{"an undeclared type", "k", protocol.TriggerSource{Type: "mail.old"}, "", good, `/source/type: "mail.old" is not a declared event type`},
		{"a schedule for another type", "k", protocol.TriggerSource{Type: "mail.new", Cron: &protocol.CronSource{}}, "", good, "/source/cron: is required for type cron.tick and not allowed otherwise"},
		{"no schedule", "k", protocol.TriggerSource{Type: "cron.tick"}, "", good, "/source/cron: is required"},
		{"no files", "k", protocol.TriggerSource{Type: "file.changed"}, "", good, "/source/file: is required"},
		{"an invalid schedule", "k", cron("every day"), "", good, "/source/cron/schedule: "},
		{"a schedule without a policy for missed times", "k", protocol.TriggerSource{Type: "cron.tick", Cron: &protocol.CronSource{Schedule: "@daily"}}, "", good, "/source/cron/missed: must be skip, runOnce or runAll"},
		{"an unknown time zone", "k", protocol.TriggerSource{Type: "cron.tick", Cron: &protocol.CronSource{Schedule: "@daily", Missed: "skip", TimeZone: "Mars"}}, "", good, "/source/cron/timeZone: "},
		{"a schedule with a source key", "k", protocol.TriggerSource{Type: "cron.tick", Key: "a", Cron: cron("@daily").Cron}, "", good, "/source/key: is not allowed"},
		{"an invalid glob", "k", files("a[", cwd), "", good, "/source/file/glob: "},
		{"a missing directory", "k", files("*", filepath.Join(cwd, "none")), "", good, "/source/file/dir: "},
		{"a relative directory", "k", files("*", "here"), "", good, "/source/file/dir: must be an absolute path"},
		{"a filter that is not a schema", "k", manual(), `{"type":"nothing"}`, good, "/filter: is not a JSON Schema"},
		{"an action without text", "k", manual(), "", wakes(id, ""), "/action/text: "},
		{"an action without a kind", "k", manual(), "", protocol.TriggerAction{Text: "x"}, "/action/kind: "},
		{"an action without a session to wake", "k", manual(), "", wakes("", "x"), "/action/sessionId: is required"},
		{"an unknown session", "k", manual(), "", wakes("ses_none", "x"), "session ses_none: not found"},
		{"an unknown delivery", "k", manual(), "", changed(func(a *protocol.TriggerAction) { a.Delivery = "soon" }), "/action/delivery: "},
		{"settings of a new session in a wake", "k", manual(), "", changed(func(a *protocol.TriggerAction) { a.Session = &protocol.TriggerSession{} }), "/action/session: is only allowed with kind newSession"},
		{"a session id in an action that starts one", "k", manual(), "", changed(func(a *protocol.TriggerAction) { a.Kind, a.Session = "newSession", &protocol.TriggerSession{Cwd: cwd} }), "/action/kind: must be wakeSession"},
		{"a new session without settings", "k", manual(), "", protocol.TriggerAction{Kind: "newSession", Text: "x"}, "/action/session: "},
		{"a new session without a directory", "k", manual(), "", begins("", "x"), "/action/session/cwd: is required"},
		{"a new session in a missing directory", "k", manual(), "", begins(filepath.Join(cwd, "none"), "x"), "/action/session/cwd: "},
		{"a new session with an unknown model", "k", manual(), "", protocol.TriggerAction{Kind: "newSession", Text: "x", Session: &protocol.TriggerSession{Cwd: cwd, Model: "none"}}, "no such model"},
		{"too much", "k", manual(), "", wakes(id, strings.Repeat("x", 32<<10)), "the trigger has 3"},
	} {
		t.Run("runtime/B14 "+c.name+" is rejected", func(t *testing.T) {
			_, err := d.Triggers.Register(t.Context(), &protocol.TriggerRegisterParams{Key: c.key, TriggerSpec: protocol.TriggerSpec{
				Source: c.source, Filter: json.RawMessage(c.filter), Action: c.do,
			}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
	if all := must[*protocol.TriggerListResult](t)(d.Triggers.List(t.Context(), &protocol.TriggerListParams{})).Data; len(all) != 0 {
		t.Errorf("a rejected trigger was stored: %+v", all)
	}
}

func TestTriggerLife(t *testing.T) {
	update := func(d *daemon, p protocol.TriggerUpdateParams) (*protocol.TriggerResult, error) {
		return d.Triggers.Update(t.Context(), &p)
	}
	t.Run("runtime/B14 a trigger is fenced by its revision and its incarnation", func(t *testing.T) {
		top := t
		d := start(t, setup{model: replies()})
		id := d.session(t)
		first := d.trigger(t, "k", manual(), wakes(id, "a"))
		again := must[*protocol.TriggerResult](t)(d.Triggers.Register(t.Context(), &protocol.TriggerRegisterParams{
			Key: "k", TriggerSpec: protocol.TriggerSpec{Source: manual(), Action: wakes(id, "a")}}))
		if !again.Duplicate || again.Trigger.ID != first.ID {
			t.Errorf("the same again is %+v", again)
		}
		if _, err := d.Triggers.Register(t.Context(), &protocol.TriggerRegisterParams{
			Key: "k", TriggerSpec: protocol.TriggerSpec{Source: manual(), Action: wakes(id, "b")}}); !errors.Is(err, persistence.ErrExists) {
			t.Errorf("something else under its key: %v", err)
		}
		second := must[*protocol.TriggerResult](t)(update(d, protocol.TriggerUpdateParams{Key: "k", Revision: 1, Action: new(wakes(id, "b"))})).Trigger
		if second.ID != first.ID || second.Revision != 2 || second.Action.Text != "b" || !second.Enabled {
			t.Errorf("the updated trigger is %+v", second)
		}
		if _, err := update(d, protocol.TriggerUpdateParams{Key: "k", Revision: 1, Enabled: new(false)}); !moved(err, 2) {
			t.Errorf("an old revision: %v", err)
		}
		d = d.restart(top, nil)
		if _, err := d.Triggers.Delete(t.Context(), &protocol.TriggerDeleteParams{Key: "k", TriggerID: "trg_other"}); !moved(err, 2) {
			t.Errorf("another incarnation: %v", err)
		}
		must[*protocol.TriggerResult](t)(d.Triggers.Delete(t.Context(), &protocol.TriggerDeleteParams{Key: "k", TriggerID: first.ID, Revision: 2}))
		for range 2 {
			_, err := update(d, protocol.TriggerUpdateParams{Key: "k", Enabled: new(false)})
			if gone, ok := errors.AsType[*persistence.NotFoundError](err); !ok || gone.What != "trigger" {
				t.Errorf("a trigger that is not there: %v", err)
			}
			d = d.restart(top, nil)
		}
		third := d.trigger(t, "k", manual(), wakes(id, "c"))
		if third.ID == first.ID || third.Revision != 1 {
			t.Errorf("the trigger created again is %+v", third)
		}
		if _, err := update(d, protocol.TriggerUpdateParams{Key: "k", TriggerID: first.ID, Enabled: new(false)}); !moved(err, 1) {
			t.Errorf("the incarnation before: %v", err)
		}
	})
	t.Run("runtime/B14 a key is unique only within its owner", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		a, b := d.session(t), d.session(t)
		ids := map[protocol.TriggerID]bool{}
		for _, owner := range []protocol.SessionID{"", a, b} {
			g := must[*protocol.TriggerResult](t)(d.Triggers.Register(t.Context(), &protocol.TriggerRegisterParams{
				Key: "k", SessionID: owner, TriggerSpec: protocol.TriggerSpec{Source: manual(), Action: wakes(a, "x")}})).Trigger
			ids[g.ID] = true
		}
		if len(ids) != 3 {
			t.Errorf("%d triggers", len(ids))
		}
		mine := must[*protocol.TriggerListResult](t)(d.Triggers.List(t.Context(), &protocol.TriggerListParams{SessionID: b})).Data
		if len(mine) != 1 || mine[0].SessionID != b {
			t.Errorf("of %s there are %+v", b, mine)
		}
	})
	t.Run("runtime/B14 a change with an idempotency key is made once", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		register := &protocol.TriggerRegisterParams{Mutation: protocol.Mutation{IdempotencyKey: "r"}, Key: "k", TriggerSpec: protocol.TriggerSpec{Source: manual(), Action: wakes(id, "x")}}
		first := must[*protocol.TriggerResult](t)(d.Triggers.Register(t.Context(), register))
		change := protocol.TriggerUpdateParams{Mutation: protocol.Mutation{IdempotencyKey: "u"}, Key: "k", Enabled: new(false)}
		must[*protocol.TriggerResult](t)(update(d, change))
		remove := &protocol.TriggerDeleteParams{Mutation: protocol.Mutation{IdempotencyKey: "d"}, Key: "k"}
		must[*protocol.TriggerResult](t)(d.Triggers.Delete(t.Context(), remove))
		for what, r := range map[string]*protocol.TriggerResult{
			"register": must[*protocol.TriggerResult](t)(d.Triggers.Register(t.Context(), register)),
			"update":   must[*protocol.TriggerResult](t)(update(d, change)),
			"delete":   must[*protocol.TriggerResult](t)(d.Triggers.Delete(t.Context(), remove)),
		} {
			if !r.Duplicate || r.Trigger.ID != first.Trigger.ID {
				t.Errorf("%s repeated returned %+v", what, r)
			}
		}
		if all := must[*protocol.TriggerListResult](t)(d.Triggers.List(t.Context(), &protocol.TriggerListParams{})).Data; len(all) != 0 {
			t.Errorf("there is %+v", all)
		}
	})
	t.Run("runtime/B14 triggers are listed in pages, in order of creation", func(t *testing.T) {
		d := start(t, setup{model: replies()})
		id := d.session(t)
		for i := range 5 {
			d.trigger(t, fmt.Sprint(5-i), manual(), wakes(id, "x"))
		}
		var got []string
		for next := ""; ; {
			r := must[*protocol.TriggerListResult](t)(d.Triggers.List(t.Context(), &protocol.TriggerListParams{Limit: 2, Cursor: next}))
			for _, g := range r.Data {
				got = append(got, g.Key)
			}
			if next = r.NextCursor; next == "" {
				break
			}
		}
		same(t, "keys", got, []string{"5", "4", "3", "2", "1"})
	})
}

func moved(err error, revision int64) bool {
	e, ok := errors.AsType[*trigger.MovedError](err)
	return ok && e.Revision == revision
}

func TestTriggerTargetGone(t *testing.T) {
	remove := func(t *testing.T, d *daemon, id protocol.SessionID) {
		t.Helper()
		must[*protocol.SeqResult](t)(d.Sessions.Delete(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
	}
	t.Run("runtime/B14 a delivery to a deleted session ends as targetGone, and its trigger stops", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			top := t
			d := start(t, setup{model: replies()})
			id := d.session(t)
			g := d.trigger(t, "k", manual(), wakes(id, "x"))
			remove(t, d, id)
			d.emit(t, "1", "{}")
			synctest.Wait()
			for range 2 {
				same(t, "outcomes", d.outcomes(t, g.ID), []string{"targetGone the session is deleted"})
				now := must[*protocol.TriggerListResult](t)(d.Triggers.List(t.Context(), &protocol.TriggerListParams{})).Data[0]
				if now.Enabled || now.Problem != "session "+string(id)+" was deleted" {
					t.Errorf("the trigger is %+v", now)
				}
				d = d.restart(top, nil)
			}
			d.emit(t, "2", "{}")
			synctest.Wait()
			if got := d.outcomes(t, g.ID); len(got) != 1 {
				t.Errorf("outcomes %q", got)
			}
		})
	})
	t.Run("runtime/B14 a session's own triggers are deleted with it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			top := t
			d := start(t, setup{model: replies()})
			id := d.session(t)
			must[*protocol.TriggerResult](t)(d.Triggers.Register(t.Context(), &protocol.TriggerRegisterParams{
				Key: "k", SessionID: id, TriggerSpec: protocol.TriggerSpec{Source: cron("@hourly"), Action: wakes("", "x")}}))
			remove(t, d, id)
			for range 2 {
				if all := must[*protocol.TriggerListResult](t)(d.Triggers.List(t.Context(), &protocol.TriggerListParams{})).Data; len(all) != 0 {
					t.Errorf("there is %+v", all)
				}
				time.Sleep(2 * time.Hour)
				d = d.restart(top, nil)
			}
			if all := must[*protocol.TriggerHistoryResult](t)(d.Triggers.History(t.Context(), &protocol.TriggerHistoryParams{})).Data; len(all) != 0 {
				t.Errorf("the occurrences are %+v", all)
			}
		})
	})
	t.Run("runtime/B14 a delivery with settings that have become invalid is refused with the reason", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies()})
			dir := filepath.Join(t.TempDir(), "gone")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			g := d.trigger(t, "k", manual(), begins(dir, "x"))
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			d.emit(t, "1", "{}")
			synctest.Wait()
			same(t, "outcomes", d.outcomes(t, g.ID), []string{fmt.Sprintf("refused /cwd: %q is not a directory", dir)})
		})
	})
	t.Run("runtime/B14 a session that was created before the crash is not created again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies()})
			dir := t.TempDir()
			g := d.trigger(t, "k", manual(), begins(dir, "x"))
			id := protocol.DeriveSessionID("trigger", string(g.ID), string(protocol.DeriveOccurrenceID(protocol.TypeManualEmitted, "", "1")))
			must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{SessionID: id, Cwd: dir}))
			d.emit(t, "1", "{}")
			synctest.Wait()
			same(t, "outcomes", d.outcomes(t, g.ID), []string{"delivered"})
			if got := d.history(t, id); len(got) == 0 {
				t.Error("the session has no history")
			}
		})
	})
}

// TestTriggersNotLoaded damages a trigger and checks that everything else works.
func TestTriggersNotLoaded(t *testing.T) {
	d := start(t, setup{model: replies()})
	id := d.session(t)
	d.trigger(t, "k", manual(), wakes(id, "x"))
	d.stop()
	db := must[*sql.DB](t)(sql.Open("sqlite", filepath.Join(d.store.Dir(), "lashd.db")))
	must[sql.Result](t)(db.Exec("UPDATE triggers SET body = CAST('{' AS BLOB)"))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	d = d.restart(t, nil)
	if _, err := d.Triggers.List(t.Context(), &protocol.TriggerListParams{}); err == nil || !strings.HasPrefix(err.Error(), "load triggers: ") {
		t.Errorf("runtime/B14 requests get %v, want the error of the load", err)
	}
	if _, err := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir()}); err != nil {
		t.Errorf("runtime/B14 a new session: %v", err)
	}
}
