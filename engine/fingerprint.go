package engine

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/turn"
	"lashd/persistence"
	"lashd/rpc/protocol"
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
	asked := j.prints.envelope(&e)
	if bytes.Equal(row.Hash, asked) && row.Kind == string(e.Kind) {
		return nil
	}
	diff := changedFields(string(row.Hash), string(asked))
	if row.Kind != string(e.Kind) {
		diff = "kind (it was " + row.Kind + ")"
	}
	return &JournalError{Effect: e.ID, Kind: string(e.Kind), Diff: diff}
}

// changedFields returns the names of the fields in which two envelopes differ.
func changedFields(was, is string) string {
	before := strings.Split(was, " ")
	var names []string
	for field := range strings.SplitSeq(is, " ") {
		if !slices.Contains(before, field) {
			name, _, _ := strings.Cut(field, ":")
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "a removed field"
	}
	return strings.Join(names, ", ")
}

// fingerprints computes short digests of the parts of effects and caches them. Each effect of a
// turn repeats the same long prompt and messages, which are hashed only once. It belongs to the
// goroutine of the turn.
type fingerprints struct {
	// text is the system prompt that textPrint was computed from.
	text string
	// textPrint is the digest of text; empty until it is needed.
	textPrint string
	// manifests are those that toolPrint was computed from. A slice with the same first element is
	// the same list.
	manifests []protocol.ToolManifest
	// toolPrint is the digest of manifests; empty until it is needed.
	toolPrint string
	// historyPrint is the digest of the history before the turn; empty until it is needed.
	historyPrint string
	// messagePrints has the digest of each message of the turn.
	messagePrints []string
}

// envelope returns what must be equal when an effect is requested again: a list of "name:digest"
// pairs. It is stored in the journal, and the names allow an error to say what differs. Changing
// the format breaks turns that are resumed after an update.
func (f *fingerprints) envelope(e *turn.Effect) []byte {
	var b strings.Builder
	field := func(name, print string) { fmt.Fprintf(&b, "%s:%s ", name, print) }
	fmt.Fprintf(&b, "kind:%s iteration:%d ", e.Kind, e.Iteration)
	switch {
	case e.Sync != nil:
		field("sync", print16(e.Sync))
	case e.Model != nil:
		m := e.Model
		field("system", f.system(m.System))
		field("tools", f.tools(m.Tools))
		field("choice", string(m.Choice))
		field("output", print16(m.Output))
		field("generation", print16(m.Generation))
		field("messages", f.messages(m.Messages))
		field("transient", print16(m.Transient))
		field("language", m.Language)
	case e.Tools != nil:
		field("calls", print16(e.Tools.Calls))
	case e.Code != nil:
		field("code", print16(e.Code))
	case e.Checkpoint != nil:
		field("checkpoint", string(e.Checkpoint.Kind))
	}
	return []byte(strings.TrimSpace(b.String()))
}

// print16 returns the digest of the JSON form of v.
func print16(v any) string { return digest16(encode(v)) }

// digest16 returns the first 8 bytes of the SHA-256 sum of b, as 16 hexadecimal digits. Digests are
// only compared within one turn, so they can be short.
func digest16(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// system returns the digest of the system prompt.
func (f *fingerprints) system(text string) string {
	if f.textPrint == "" || f.text != text {
		f.text, f.textPrint = text, digest16([]byte(text))
	}
	return f.textPrint
}

// tools returns the digest of the tool manifests.
func (f *fingerprints) tools(all []protocol.ToolManifest) string {
	same := len(all) == len(f.manifests) && (len(all) == 0 || &all[0] == &f.manifests[0])
	if f.toolPrint == "" || !same {
		f.manifests, f.toolPrint = all, print16(all)
	}
	return f.toolPrint
}

// messages returns the digest of the turn's messages. msgs may only grow from call to call.
func (f *fingerprints) messages(msgs []protocol.Message) string {
	for i := len(f.messagePrints); i < len(msgs); i++ {
		f.messagePrints = append(f.messagePrints, print16(&msgs[i]))
	}
	return digest16([]byte(strings.Join(f.messagePrints[:len(msgs)], "")))
}

// history returns the digest of the messages before the turn, which stay the same throughout it.
func (f *fingerprints) history(past []*protocol.Message) string {
	if f.historyPrint == "" {
		sum := sha256.New()
		for _, m := range past {
			sum.Write(encode(m))
		}
		f.historyPrint = hex.EncodeToString(sum.Sum(nil)[:8])
	}
	return f.historyPrint
}
