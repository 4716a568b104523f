package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// journal holds the answers to a turn's effects: those of an earlier run of the daemon, to replay, and those of this
// run that are not written yet. A turn without tools never writes one.
type journal struct {
	turn    protocol.TurnID
	replay  map[uint64][]persistence.Effect
	pending []noted
}

type noted struct {
	effect turn.Effect
	answer turn.Response
}

// JournalError means that a turn asks for another effect than the one its journal answered. It is never run again.
type JournalError struct {
	Effect uint64
	Kind   string
	Diff   string
}

func (e *JournalError) Error() string {
	return fmt.Sprintf("effect %d (%s) is not the one in the journal: %s", e.Effect, e.Kind, e.Diff)
}

func (r *run) loadJournal(ctx context.Context) error {
	rows, err := r.eng.store.Effects(ctx, r.id)
	if err != nil {
		return err
	}
	r.journal.turn = r.id
	r.journal.replay = map[uint64][]persistence.Effect{}
	for _, row := range rows {
		r.journal.replay[row.ID] = append(r.journal.replay[row.ID], row)
	}
	return nil
}

// envelope is what must be the same when an effect is asked for again.
func envelope(e turn.Effect) []byte {
	sum := sha256.Sum256(encode(e))
	return sum[:]
}

// answer finds the answer to an effect. Tool calls are answered one by one elsewhere: a batch is known only when all
// of its calls are.
func (j *journal) answer(e turn.Effect) (turn.Response, bool, error) {
	rows := j.replay[e.ID]
	var r turn.Response
	if len(rows) == 0 || e.Kind == turn.EffectTools {
		return r, false, nil
	}
	row := rows[0]
	if !bytes.Equal(row.Hash, envelope(e)) || row.Kind != string(e.Kind) {
		return r, false, &JournalError{Effect: e.ID, Kind: string(e.Kind), Diff: "it was " + row.Kind + " with other content"}
	}
	if err := json.Unmarshal(row.Body, &r); err != nil {
		return r, false, fmt.Errorf("journal of effect %d: %w", e.ID, err)
	}
	return r, true, nil
}

// note keeps an answer until the next commit. Effects that are in the journal already are not noted again.
func (j *journal) note(e turn.Effect, answer turn.Response) {
	if e.Kind == turn.EffectTools {
		return // its rows are written call by call
	}
	j.pending = append(j.pending, noted{e, answer})
}

// take encodes what was noted, for a commit that writes it.
func (j *journal) take() []persistence.Effect {
	rows := make([]persistence.Effect, len(j.pending))
	for i, n := range j.pending {
		rows[i] = persistence.Effect{
			Turn: j.turn, ID: n.effect.ID, Kind: string(n.effect.Kind), Finished: true,
			Hash: envelope(n.effect), Body: encode(n.answer),
		}
	}
	j.pending = nil
	return rows
}
