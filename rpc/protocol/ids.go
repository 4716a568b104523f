package protocol

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/google/uuid"
)

// Ids are opaque strings with a type prefix. Their sort order has no meaning; use Seq and generations for order.
type (
	SessionID     string // ses_...
	TurnID        string // trn_...
	NodeID        string // nod_..., derived from session, operation and ordinal
	InputID       string // inp_...
	DecisionID    string // dec_...
	CompletionKey string // authorizes tool/complete for a pending call; only the tool that took it knows it
	FrameID       string // id of the node that opens the frame
	CallID        string // the model's id, or derived from turn, iteration and position
	ItemID        string // node id and part index: nod_...:0
	ClientID      string // chosen by a client, or cli_...
	Digest        string // sha256 of bytes, in hex
	TriggerID     string // trg_...; a trigger that is deleted and created again gets a new id
	OccurrenceID  string // occ_..., derived from source and occurrence key
	Seq           uint64 // sequence number of an event in its session: 1, 2, 3, ... without gaps
)

func newID(prefix string) string {
	id := uuid.Must(uuid.NewV7()) // fails only when the system has no randomness
	return prefix + hex.EncodeToString(id[:])
}

// NewSessionID returns a new unique id.
func NewSessionID() SessionID { return SessionID(newID("ses_")) }

// NewTurnID returns a new unique id.
func NewTurnID() TurnID { return TurnID(newID("trn_")) }

// NewInputID returns a new unique id.
func NewInputID() InputID { return InputID(newID("inp_")) }

// NewDecisionID returns a new unique id.
func NewDecisionID() DecisionID { return DecisionID(newID("dec_")) }

// NewTriggerID returns a new unique id.
func NewTriggerID() TriggerID { return TriggerID(newID("trg_")) }

// NewClientID returns a new unique id.
func NewClientID() ClientID { return ClientID(newID("cli_")) }

// DeriveNodeID returns the id of the ordinal-th node that an operation (a turn, an append) adds to a session. Repeating the
// operation derives the same ids, so the store recognizes a retry. Ids of a turn's nodes begin with the timestamp of the turn's
// id. That keeps them together in the index, and a commit writes one index page instead of one per node.
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

// DeriveOccurrenceID returns the id of an occurrence. The same source, source key and key give the same id.
func DeriveOccurrenceID(source, sourceKey, key string) OccurrenceID {
	return OccurrenceID(derive("occ_", source, sourceKey, key))
}

// DeriveSessionID returns the id of a session with a given cause. The same cause gives the same id, so a retry finds the session.
func DeriveSessionID(cause ...string) SessionID { return SessionID(derive("ses_", cause...)) }

// DeriveTurnID is like DeriveSessionID, for a turn.
func DeriveTurnID(cause ...string) TurnID { return TurnID(derive("trn_", cause...)) }

func derive(prefix string, from ...string) string {
	h := sha256.New()
	for _, s := range from {
		writeField(h.Write, s)
	}
	return prefix + hex.EncodeToString(h.Sum(nil)[:16])
}

// uuidTime is the number of timestamp bytes in a UUID of version 7.
const uuidTime = 6

// writeField writes the length of s and then s, so that different lists of fields never encode to the same bytes.
func writeField(write func([]byte) (int, error), s string) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(s)))
	write(n[:])
	write([]byte(s))
}

// DigestOf returns the SHA-256 of data.
func DigestOf(data []byte) Digest {
	sum := sha256.Sum256(data)
	return Digest(hex.EncodeToString(sum[:]))
}
