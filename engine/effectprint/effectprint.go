// Package effectprint identifies the effects of a turn by short digests. A resumed turn compares them with those in its
// journal, and traces show with them which part of a prompt changed.
package effectprint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

// Changed returns the names of the fields in which two envelopes differ.
func Changed(was, is string) string {
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

// Printer computes short digests of the parts of effects and caches them. Each effect of a
// turn repeats the same long prompt and messages, which are hashed only once. It belongs to the
// goroutine of the turn.
type Printer struct {
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

// Envelope returns what must be equal when an effect is requested again: a list of "name:digest"
// pairs. It is stored in the journal, and the names allow an error to say what differs. Changing
// the format breaks turns that are resumed after an update.
func (f *Printer) Envelope(e *turn.Effect) []byte {
	var b strings.Builder
	field := func(name, print string) { fmt.Fprintf(&b, "%s:%s ", name, print) }
	fmt.Fprintf(&b, "kind:%s iteration:%d ", e.Kind, e.Iteration)
	switch {
	case e.Sync != nil:
		field("sync", print16(e.Sync))
	case e.Model != nil:
		m := e.Model
		field("system", f.System(m.System))
		field("tools", f.Tools(m.Tools))
		field("choice", string(m.Choice))
		field("output", print16(m.Output))
		field("generation", print16(m.Generation))
		field("messages", f.Messages(m.Messages))
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

// System returns the digest of the system prompt.
func (f *Printer) System(text string) string {
	if f.textPrint == "" || f.text != text {
		f.text, f.textPrint = text, digest16([]byte(text))
	}
	return f.textPrint
}

// Tools returns the digest of the tool manifests.
func (f *Printer) Tools(all []protocol.ToolManifest) string {
	same := len(all) == len(f.manifests) && (len(all) == 0 || &all[0] == &f.manifests[0])
	if f.toolPrint == "" || !same {
		f.manifests, f.toolPrint = all, print16(all)
	}
	return f.toolPrint
}

// Messages returns the digest of the turn's messages. msgs may only grow from call to call.
func (f *Printer) Messages(msgs []protocol.Message) string {
	for i := len(f.messagePrints); i < len(msgs); i++ {
		f.messagePrints = append(f.messagePrints, print16(&msgs[i]))
	}
	return digest16([]byte(strings.Join(f.messagePrints[:len(msgs)], "")))
}

// History returns the digest of the messages before the turn, which stay the same throughout it.
func (f *Printer) History(past []*protocol.Message) string {
	if f.historyPrint == "" {
		sum := sha256.New()
		for _, m := range past {
			sum.Write(encode(m))
		}
		f.historyPrint = hex.EncodeToString(sum.Sum(nil)[:8])
	}
	return f.historyPrint
}

// encode encodes a type of our own.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}
