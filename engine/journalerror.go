package engine

import (
	"bytes"
	"fmt"

	"lashd/engine/effectprint"
	"lashd/engine/turn"
	"lashd/persistence"
)

// JournalError means that a resumed turn requests an effect that differs from the one in its
// journal. Reusing the journaled answer would be wrong, so the turn fails, and nothing of it runs
// again.
type JournalError struct {
	// Effect is the number of the effect in its turn.
	Effect uint64
	// Kind is the kind of the effect that the turn requests now.
	Kind string
	// Diff names the fields that differ.
	Diff string
}

func (e *JournalError) Error() string {
	return fmt.Sprintf("effect %d (%s) does not match the journal: %s differs", e.Effect, e.Kind, e.Diff)
}

// sameEffect returns a JournalError unless the effect equals the one that the journal row belongs
// to.
func (j *journal) sameEffect(e turn.Effect, row persistence.Effect) error {
	asked := j.prints.Envelope(&e)
	if bytes.Equal(row.Hash, asked) && row.Kind == string(e.Kind) {
		return nil
	}
	diff := effectprint.Changed(string(row.Hash), string(asked))
	if row.Kind != string(e.Kind) {
		diff = "kind (it was " + row.Kind + ")"
	}
	return &JournalError{Effect: e.ID, Kind: string(e.Kind), Diff: diff}
}
