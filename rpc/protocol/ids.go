package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// Ids are opaque strings with a type prefix. Their order means nothing; order comes from Seq and generations.
type (
	SessionID     string // ses_...
	TurnID        string // trn_...
	NodeID        string // nod_..., derived from session, operation and ordinal
	InputID       string // inp_...
	DecisionID    string // dec_...
	CompletionKey string // of a call that waits: only who took it has it
	FrameID       string // the node id of a frame-open node
	CallID        string // as the model gave it, or derived from turn, iteration and position
	ItemID        string // node id and part index: nod_...:0
	ClientID      string // chosen by a client, or cli_...
	Digest        string // sha256 of bytes, in hex
	TriggerID     string // trg_...; another one for what is deleted and made again
	OccurrenceID  string // occ_..., derived from what makes it the same occurrence
	Seq           uint64 // of an event in its session: 1, 2, 3, ... without gaps
)

func newID(prefix string) string {
	id := uuid.Must(uuid.NewV7()) // fails only when the system has no randomness
	return prefix + hex.EncodeToString(id[:])
}

// NewSessionID returns an id that was never used.
func NewSessionID() SessionID { return SessionID(newID("ses_")) }

// NewTurnID returns an id that was never used.
func NewTurnID() TurnID { return TurnID(newID("trn_")) }

// NewInputID returns an id that was never used.
func NewInputID() InputID { return InputID(newID("inp_")) }

// NewDecisionID returns an id that was never used.
func NewDecisionID() DecisionID { return DecisionID(newID("dec_")) }

// NewTriggerID returns an id that was never used.
func NewTriggerID() TriggerID { return TriggerID(newID("trg_")) }

// NewClientID returns an id that was never used.
func NewClientID() ClientID { return ClientID(newID("cli_")) }

// DeriveNodeID is the id of the ordinal-th node that an operation (a turn, an append) adds to a session. The same
// operation repeated derives the same ids, which is what makes a retry recognisable. The nodes of a turn begin with the
// time that the turn's id begins with: so they stand together in an index, and a commit touches one page of it and not one
// for each node.
func DeriveNodeID(session SessionID, operation string, ordinal int) NodeID {
	h := sha256.New()
	writeField(h.Write, string(session))
	writeField(h.Write, operation)
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(ordinal))
	h.Write(n[:])
	id := h.Sum(nil)[:16]
	if turn, err := hex.DecodeString(strings.TrimPrefix(operation, "trn_")); err == nil && len(turn) == len(id) {
		copy(id, turn[:uuidTime])
	}
	return NodeID("nod_" + hex.EncodeToString(id))
}

// DeriveOccurrenceID is the id of what a source has under a key: the same key is the same occurrence.
func DeriveOccurrenceID(source, sourceKey, key string) OccurrenceID {
	return OccurrenceID(derive("occ_", source, sourceKey, key))
}

// DeriveSessionID is the id of the session that is made because of something. Who makes it again finds it there.
func DeriveSessionID(cause ...string) SessionID { return SessionID(derive("ses_", cause...)) }

// DeriveTurnID is DeriveSessionID for a turn.
func DeriveTurnID(cause ...string) TurnID { return TurnID(derive("trn_", cause...)) }

func derive(prefix string, from ...string) string {
	h := sha256.New()
	for _, s := range from {
		writeField(h.Write, s)
	}
	return prefix + hex.EncodeToString(h.Sum(nil)[:16])
}

// uuidTime is how many bytes of a UUID of version 7 are its time.
const uuidTime = 6

// writeField writes a length before the text, so that no two lists of fields are the same bytes.
func writeField(write func([]byte) (int, error), s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	write(n[:])
	write([]byte(s))
}

// DigestOf is the sha256 of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(hex.EncodeToString(sum[:]))
}
