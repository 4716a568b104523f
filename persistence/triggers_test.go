package persistence

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"lashd/rpc/protocol"
)

// happened is an occurrence with a delivery to each of some triggers.
func happened(key string, to ...protocol.TriggerID) Occurred {
	o := Occurred{Occurrence: protocol.Occurrence{
		ID: protocol.OccurrenceID("occ_" + key), Type: "mail.new", Key: key, Payload: json.RawMessage(`{}`),
	}}
	for _, id := range to {
		o.Deliveries = append(o.Deliveries, protocol.TriggerDelivery{TriggerID: id, State: protocol.DeliveryReserved, SessionID: "ses_a"})
		o.Actions = append(o.Actions, protocol.TriggerAction{Kind: protocol.TriggerWakes, Text: "for " + string(id)})
	}
	return o
}

func occur(all ...Occurred) *Commit { return &Commit{Triggers: TriggerChange{Occurred: all}} }

func settled(key string, id protocol.TriggerID, state protocol.DeliveryState) *Commit {
	return &Commit{Triggers: TriggerChange{Settled: []Settled{{
		Occurrence: protocol.OccurrenceID("occ_" + key), TriggerDelivery: protocol.TriggerDelivery{TriggerID: id, State: state},
	}}}}
}

func TestTriggers(t *testing.T) {
	t.Run("runtime/B14 an occurrence and its deliveries are stored together, and once", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, occur(happened("1", "trg_a", "trg_b")))
		if _, err := s.Commit(t.Context(), occur(happened("2", "trg_a"), happened("1"))); !errors.Is(err, ErrExists) {
			t.Errorf("once more: %v", err)
		}
		if _, err := s.Occurrence(t.Context(), "occ_2"); !errors.Is(err, ErrNotFound) {
			t.Errorf("what came with it: %v", err)
		}
		reserved, err := s.ReservedDeliveries(t.Context())
		if err != nil || len(reserved) != 2 || reserved[0].Occurrence.ID != "occ_1" || reserved[1].Action.Text != "for trg_b" {
			t.Errorf("reserved %+v, %v", reserved, err)
		}
	})
	t.Run("runtime/B14 a full disk rejects new occurrences but stores outcomes of old ones", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, occur(happened("1", "trg_a")))
		s.ballast.released.Store(true)
		refuse(t, s, occur(happened("2", "trg_a")), ErrFull)
		commit(t, s, settled("1", "trg_a", protocol.DeliveryTargetGone))
	})
	t.Run("runtime/B14 the first outcome of a delivery counts, and a commit with another one is rejected", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		commit(t, s, occur(happened("1", "trg_a")))
		c := settled("1", "trg_a", protocol.DeliveryDelivered)
		c.Session, c.Events = "ses_a", []Event{event(1)}
		commit(t, s, c)
		late := settled("1", "trg_a", protocol.DeliveryFailed)
		late.Session, late.Events = "ses_a", []Event{event(2)}
		if _, err := s.Commit(t.Context(), late); !errors.Is(err, ErrExists) {
			t.Errorf("another outcome: %v", err)
		}
		o, err := s.Occurrence(t.Context(), "occ_1")
		if err != nil || o.Deliveries[0].State != protocol.DeliveryDelivered || session(t, s, "ses_a").Seq != 1 {
			t.Errorf("it is %+v, %v; the session is at %d", o.Deliveries, err, session(t, s, "ses_a").Seq)
		}
	})
	t.Run("runtime/B14 a trigger is deleted with its session, and none is created for a deleted one", func(t *testing.T) {
		s := open(t, t.TempDir())
		commit(t, s, rootCommit("ses_a"))
		put := func(id protocol.TriggerID, row int64, owner protocol.SessionID) *Commit {
			return &Commit{Triggers: TriggerChange{Put: []Trigger{{Row: row, Trigger: protocol.Trigger{ID: id, Key: "k", SessionID: owner}}}}}
		}
		commit(t, s, put("trg_a", 1, "ses_a"))
		commit(t, s, put("trg_b", 2, ""))
		if _, err := s.Commit(t.Context(), put("trg_c", 3, "ses_a")); !errors.Is(err, ErrExists) {
			t.Errorf("another one of its key: %v", err)
		}
		commit(t, s, &Commit{Session: "ses_a", Delete: true})
		if _, err := s.Commit(t.Context(), put("trg_d", 4, "ses_a")); !errors.Is(err, ErrDeleted) {
			t.Errorf("one for a deleted session: %v", err)
		}
		all, err := s.Triggers(t.Context())
		if err != nil || len(all) != 1 || all[0].ID != "trg_b" {
			t.Errorf("there are %+v, %v", all, err)
		}
	})
	t.Run("runtime/B14 the newest occurrences of each type and all unfinished ones are kept", func(t *testing.T) {
		s, stop := start(t, Config{Dir: t.TempDir(), Log: quiet("").Log, Durability: "OFF"})
		defer stop()
		commit(t, s, occur(happened("old", "trg_a")))
		for i := range KeptOccurrences/100 + 3 {
			var some []Occurred
			for j := range 100 {
				some = append(some, happened(fmt.Sprint(i*100+j)))
			}
			commit(t, s, occur(some...))
		}
		kept := count(t, s, "SELECT count(*) FROM occurrences")
		if kept < KeptOccurrences || kept > KeptOccurrences+trimEvery+1 {
			t.Errorf("%d are kept", kept)
		}
		for id, want := range map[protocol.OccurrenceID]bool{"occ_old": true, "occ_0": false, "occ_10299": true} {
			if _, err := s.Occurrence(t.Context(), id); (err == nil) != want {
				t.Errorf("%s: %v", id, err)
			}
		}
		page, err := s.Occurrences(t.Context(), OccurrenceQuery{Trigger: "trg_a", Limit: 10})
		if err != nil || len(page) != 1 || page[0].ID != "occ_old" {
			t.Errorf("of a trigger there are %+v, %v", page, err)
		}
		page, err = s.Occurrences(t.Context(), OccurrenceQuery{Type: "mail.new", Limit: 2})
		if err != nil || len(page) != 2 || page[0].ID != "occ_10299" || page[1].ID != "occ_10298" {
			t.Errorf("the newest are %+v, %v", page, err)
		}
	})
}
