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

// JournalError means that a turn asks for another effect than the one its journal answered. Nothing of it is run again.
type JournalError struct {
	Effect uint64
	Kind   string
	Diff   string // which fields differ
}

func (e *JournalError) Error() string {
	return fmt.Sprintf("effect %d (%s) is not the one in the journal: %s differs", e.Effect, e.Kind, e.Diff)
}

// sameEffect compares an effect with the one that a row of the journal answered.
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

// changedFields names the fields in which two envelopes differ.
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
		return "a field that is gone"
	}
	return strings.Join(names, ", ")
}

// fingerprints are short digests of the parts of effects, each made once: a long prompt comes again in every effect of
// its turn.
type fingerprints struct {
	text          string // the system prompt that textPrint is of
	textPrint     string
	manifests     []protocol.ToolManifest
	toolPrint     string
	historyPrint  string
	messagePrints []string // of each message of the turn
}

// envelope is what must be the same when an effect is asked for again: its fields, each with a digest, so that what
// differs can be told.
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
	case e.Tools != nil:
		field("calls", print16(e.Tools.Calls))
	case e.Code != nil:
		field("code", print16(e.Code))
	case e.Checkpoint != nil:
		field("checkpoint", string(e.Checkpoint.Kind))
	}
	return []byte(strings.TrimSpace(b.String()))
}

func print16(v any) string { return digest16(encode(v)) }

func digest16(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

func (f *fingerprints) system(text string) string {
	if f.textPrint == "" || f.text != text {
		f.text, f.textPrint = text, digest16([]byte(text))
	}
	return f.textPrint
}

func (f *fingerprints) tools(all []protocol.ToolManifest) string {
	same := len(all) == len(f.manifests) && (len(all) == 0 || &all[0] == &f.manifests[0])
	if f.toolPrint == "" || !same {
		f.manifests, f.toolPrint = all, print16(all)
	}
	return f.toolPrint
}

// messages are those of the turn, which only grow.
func (f *fingerprints) messages(msgs []protocol.Message) string {
	for i := len(f.messagePrints); i < len(msgs); i++ {
		f.messagePrints = append(f.messagePrints, print16(&msgs[i]))
	}
	return digest16([]byte(strings.Join(f.messagePrints[:len(msgs)], "")))
}

// history is the digest of the messages before the turn, which do not change during it.
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
