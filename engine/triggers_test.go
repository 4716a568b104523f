package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// mails is a plugin that declares the event mail.new.
func mails() []plugin.Factory {
	return plugins(hooked{"mails", func(r *plugin.Registrar) {
		r.Triggers().Event(plugin.TriggerEvent{ResourceType: "mailbox", Alias: "mail", Event: "new", Payload: json.RawMessage(
			`{"type":"object","properties":{"from":{"type":"string"}},"required":["from"]}`)})
	}})
}

func manual() protocol.TriggerSource { return protocol.TriggerSource{Type: protocol.TypeManualEmitted} }

func wakes(id protocol.SessionID, say string) protocol.TriggerAction {
	return protocol.TriggerAction{Kind: protocol.TriggerWakes, SessionID: id, Text: say}
}

func begins(cwd, say string) protocol.TriggerAction {
	return protocol.TriggerAction{Kind: protocol.TriggerStarts, Text: say, Session: &protocol.TriggerSession{Cwd: cwd}}
}

func (d *daemon) trigger(t testing.TB, key string, src protocol.TriggerSource, do protocol.TriggerAction) protocol.Trigger {
	t.Helper()
	return must[*protocol.TriggerResult](t)(d.Triggers.Register(t.Context(), &protocol.TriggerRegisterParams{
		Key: key, TriggerSpec: protocol.TriggerSpec{Source: src, Action: do},
	})).Trigger
}

func (d *daemon) emit(t testing.TB, key, payload string) *protocol.TriggerEmitResult {
	t.Helper()
	return must[*protocol.TriggerEmitResult](t)(d.Triggers.Emit(t.Context(), &protocol.TriggerEmitParams{
		Type: protocol.TypeManualEmitted, OccurrenceKey: key, Payload: json.RawMessage(payload),
	}))
}

// outcomes returns the outcomes of a trigger's deliveries, newest first.
func (d *daemon) outcomes(t testing.TB, id protocol.TriggerID) (all []string) {
	t.Helper()
	for _, o := range d.occurrences(t, id) {
		for _, to := range o.Deliveries {
			if to.TriggerID == id {
				all = append(all, strings.TrimSpace(string(to.State)+" "+to.Reason))
			}
		}
	}
	return all
}

func (d *daemon) occurrences(t testing.TB, id protocol.TriggerID) []protocol.Occurrence {
	t.Helper()
	return must[*protocol.TriggerHistoryResult](t)(d.Triggers.History(t.Context(), &protocol.TriggerHistoryParams{TriggerID: id})).Data
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s\n%q, want\n%q", what, got, want)
	}
}

func TestEmit(t *testing.T) {
	t.Run("runtime/B14 an occurrence wakes each subscribed session once and starts new ones", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			top := t
			d := start(t, setup{model: replies(scripted.Reply{Text: "noted"})})
			id, cwd := d.session(t), t.TempDir()
			woken := d.trigger(t, "woken", manual(), wakes(id, "look at it"))
			begun := d.trigger(t, "begun", manual(), begins(cwd, "do it"))
			off := d.trigger(t, "off", manual(), wakes(id, "never"))
			must[*protocol.TriggerResult](t)(d.Triggers.Update(t.Context(), &protocol.TriggerUpdateParams{Key: "off", Enabled: new(false)}))
			r := d.emit(t, "one", `{"n": 1}`)
			if len(r.Occurrence.Deliveries) != 2 {
				t.Fatalf("reserved %+v", r.Occurrence.Deliveries)
			}
			synctest.Wait()
			for range 2 {
				same(t, "woken", d.outcomes(t, woken.ID), []string{"delivered"})
				same(t, "begun", d.outcomes(t, begun.ID), []string{"delivered"})
				same(t, "off", d.outcomes(t, off.ID), nil)
				same(t, "the session that was woken", d.history(t, id), []string{
					"notice: [trigger woken] look at it\n\nmanual.emitted: {\"n\":1}", "agentMessage: noted"})
				other := r.Occurrence.Deliveries[0].SessionID
				if r.Occurrence.Deliveries[0].TriggerID != begun.ID {
					other = r.Occurrence.Deliveries[1].SessionID
				}
				same(t, "the session that was begun", d.history(t, other), []string{
					"notice: [trigger begun] do it\n\nmanual.emitted: {\"n\":1}", "agentMessage: noted"})
				row := must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: other})).Session
				if row.Cwd != cwd || row.Title != "begun" {
					t.Errorf("the session is in %s, with the title %q", row.Cwd, row.Title)
				}
				to := d.occurrences(t, woken.ID)[0].Deliveries
				for _, one := range to {
					if report := d.wait(t, one.TurnID); report.State != protocol.TurnCompleted || report.SessionID != one.SessionID {
						t.Errorf("turn %s of %s is %s", one.TurnID, report.SessionID, report.State)
					}
				}
				again := d.emit(t, "one", `{"n":1}`)
				if !again.Duplicate || again.Occurrence.ID != r.Occurrence.ID || again.Occurrence.Deliveries[0].State != protocol.DeliveryDelivered {
					t.Errorf("emitted again, the occurrence is %+v", again)
				}
				d = d.restart(top, nil)
				synctest.Wait()
			}
		})
	})
	t.Run("runtime/B14 source type, source key and occurrence key identify an occurrence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies(), plugins: mails()})
			emit := func(typ, source, key, payload string) (*protocol.TriggerEmitResult, error) {
				return d.Triggers.Emit(t.Context(), &protocol.TriggerEmitParams{Type: typ, SourceKey: source, OccurrenceKey: key, Payload: json.RawMessage(payload)})
			}
			ids := map[protocol.OccurrenceID]bool{}
			for _, c := range [][3]string{{"mail.new", "a", "1"}, {"mail.new", "a", "2"}, {"mail.new", "b", "1"}, {"manual.emitted", "a", "1"}, {"mail.new", "", "a1"}} {
				r := must[*protocol.TriggerEmitResult](t)(emit(c[0], c[1], c[2], `{"from":"x"}`))
				if r.Duplicate {
					t.Errorf("%v is a different occurrence", c)
				}
				ids[r.Occurrence.ID] = true
			}
			if len(ids) != 5 {
				t.Errorf("%d ids", len(ids))
			}
			if r := must[*protocol.TriggerEmitResult](t)(emit("mail.new", "a", "1", `{ "from" : "x" }`)); !r.Duplicate || !ids[r.Occurrence.ID] {
				t.Errorf("the same again is %+v", r)
			}
			if _, err := emit("mail.new", "a", "1", `{"from":"y"}`); !errors.Is(err, persistence.ErrExists) {
				t.Errorf("with another payload: %v", err)
			}
			if a, b := d.emit(t, "", "{}"), d.emit(t, "", "{}"); a.Occurrence.ID == b.Occurrence.ID {
				t.Error("without a key each is another one")
			}
		})
	})
	t.Run("runtime/B14 repeating an emit with an idempotency key returns the first answer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies()})
			p := protocol.TriggerEmitParams{Mutation: protocol.Mutation{IdempotencyKey: "k"}, Type: protocol.TypeManualEmitted}
			first := must[*protocol.TriggerEmitResult](t)(d.Triggers.Emit(t.Context(), &p))
			again := must[*protocol.TriggerEmitResult](t)(d.Triggers.Emit(t.Context(), &p))
			if first.Duplicate || !again.Duplicate || again.Occurrence.ID != first.Occurrence.ID {
				t.Errorf("first %+v, again %+v", first, again)
			}
			p.SourceKey = "other"
			if _, err := d.Triggers.Emit(t.Context(), &p); !errors.Is(err, persistence.ErrReceiptConflict) {
				t.Errorf("the key with other content: %v", err)
			}
		})
	})
	t.Run("runtime/B14 source key and filter select occurrences", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies(), plugins: mails()})
			id := d.session(t)
			g := must[*protocol.TriggerResult](t)(d.Triggers.Register(t.Context(), &protocol.TriggerRegisterParams{Key: "k", TriggerSpec: protocol.TriggerSpec{
				Source: protocol.TriggerSource{Type: "mail.new", Key: "inbox"}, Action: wakes(id, "read"),
				Filter: json.RawMessage(`{"properties":{"from":{"pattern":"@example.org$"}}}`),
			}})).Trigger
			for _, c := range []struct {
				key, from string
				want      int
			}{{"inbox", "a@example.org", 1}, {"spam", "a@example.org", 0}, {"", "a@example.org", 0}, {"inbox", "a@example.com", 0}} {
				r := must[*protocol.TriggerEmitResult](t)(d.Triggers.Emit(t.Context(), &protocol.TriggerEmitParams{
					Type: "mail.new", SourceKey: c.key, Payload: json.RawMessage(fmt.Sprintf(`{"from":%q}`, c.from)),
				}))
				if len(r.Occurrence.Deliveries) != c.want {
					t.Errorf("%+v is delivered to %+v", c, r.Occurrence.Deliveries)
				}
			}
			synctest.Wait()
			same(t, "outcomes", d.outcomes(t, g.ID), []string{"delivered"})
		})
	})
}

func TestEmitRefused(t *testing.T) {
	d := start(t, setup{model: replies(), plugins: mails()})
	for _, c := range []struct{ name, typ, payload, pointer, text string }{
		{"an undeclared type", "mail.old", "{}", "/type", `"mail.old" is not a declared event type`},
		{"a type that lashd watches", "cron.tick", `{"scheduledAtMs":1}`, "/type", "can only be emitted by lashd itself"},
		{"a payload that is not an object", "manual.emitted", "[1]", "/payload", "must be an object"},
		{"a payload that does not match the type's schema", "mail.new", `{"from":1}`, "/payload", "does not match the schema of the event type"},
		{"a payload that is too large", "manual.emitted", `{"a":"` + strings.Repeat("x", 64<<10) + `"}`, "/payload", "the limit is 65536"},
	} {
		t.Run("runtime/B14 "+c.name+" is rejected", func(t *testing.T) {
			_, err := d.Triggers.Emit(t.Context(), &protocol.TriggerEmitParams{Type: c.typ, Payload: json.RawMessage(c.payload)})
			if wrong, ok := errors.AsType[*param.Error](err); !ok || wrong.Pointer != c.pointer || !strings.Contains(wrong.Reason, c.text) {
				t.Errorf("error %v, want %s %s", err, c.pointer, c.text)
			}
		})
	}
	if all := must[*protocol.TriggerHistoryResult](t)(d.Triggers.History(t.Context(), &protocol.TriggerHistoryParams{})).Data; len(all) != 0 {
		t.Errorf("it is remembered nevertheless: %+v", all)
	}
}

func TestCron(t *testing.T) {
	every := func(missed protocol.MissedTicks) protocol.TriggerSource {
		return protocol.TriggerSource{Type: protocol.TypeCronTick, Cron: &protocol.CronSource{Schedule: "@hourly", TimeZone: "UTC", Missed: missed}}
	}
	t.Run("runtime/B14 a schedule wakes its session once at each time, also across restarts", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			top := t
			d := start(t, setup{model: replies(scripted.Reply{Text: "noted"})})
			id := d.session(t)
			g := d.trigger(t, "hourly", every(protocol.MissedSkip), wakes(id, "tick"))
			midnight := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // when a synctest bubble starts
			if at := time.UnixMilli(g.NextAtMs); !at.Equal(midnight.Add(time.Hour)) {
				t.Errorf("it is due at %s", at)
			}
			for hour := 1; hour <= 3; hour++ {
				time.Sleep(time.Until(midnight.Add(time.Duration(hour)*time.Hour)) + time.Second)
				synctest.Wait()
				d = d.restart(top, nil)
				synctest.Wait()
				all := d.occurrences(t, g.ID)
				if len(all) != hour || all[0].Key != fmt.Sprintf("2000-01-01T0%d:00:00Z", hour) || all[0].SourceKey != string(g.ID) {
					t.Fatalf("at %d: %+v", hour, all)
				}
				if want := fmt.Sprintf(`{"scheduledAtMs":%d}`, midnight.Add(time.Duration(hour)*time.Hour).UnixMilli()); string(all[0].Payload) != want {
					t.Errorf("payload %s, want %s", all[0].Payload, want)
				}
				if got := d.history(t, id); len(got) != 2*hour {
					t.Errorf("at %d: history %q", hour, got)
				}
			}
		})
	})
	for _, c := range []struct {
		missed protocol.MissedTicks
		want   []string // newest first
	}{
		{protocol.MissedSkip, nil},
		{protocol.MissedRunOnce, []string{"3 late"}},
		{protocol.MissedRunAll, []string{"3 late", "2 late", "1 late"}},
	} {
		t.Run("runtime/B14 times missed while no daemon ran, "+string(c.missed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				top := t
				d := start(t, setup{model: replies()})
				g := d.trigger(t, "hourly", every(c.missed), wakes(d.session(t), "tick"))
				d.stop()
				time.Sleep(3*time.Hour + 30*time.Minute)
				for range 2 { // the second start must not repeat missed times
					d = d.restart(top, nil)
					synctest.Wait()
					same(t, "ticks", ticks(t, d, g.ID), c.want)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				same(t, "and then", ticks(t, d, g.ID), append([]string{"4"}, c.want...))
			})
		})
	}
}

// ticks returns the hours of a schedule's occurrences, newest first.
func ticks(t *testing.T, d *daemon, id protocol.TriggerID) (all []string) {
	t.Helper()
	for _, o := range d.occurrences(t, id) {
		var p struct {
			ScheduledAtMs int64
			Late          bool
		}
		if err := json.Unmarshal(o.Payload, &p); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(time.UnixMilli(p.ScheduledAtMs).UTC().Hour())
		if p.Late {
			line += " late"
		}
		all = append(all, line)
	}
	return all
}

func TestTriggerTypes(t *testing.T) {
	t.Run("runtime/B14 the event types are those that lashd and the present plugins declare", func(t *testing.T) {
		d, r := replaceable(t, setup{model: replies()}, mails()...)
		types := func() (names []string) {
			for _, e := range must[*protocol.TriggerTypesResult](t)(d.Triggers.Types(t.Context(), &protocol.TriggerTypesParams{})).Data {
				names = append(names, e.Type)
			}
			return names
		}
		same(t, "types", types(), []string{"cron.tick", "file.changed", "manual.emitted", "mail.new"})
		r.take(t)
		same(t, "without the plugin", types(), []string{"cron.tick", "file.changed", "manual.emitted"})
	})
}
