// Package encoding has what the adapters of model APIs share when they write a request body: JSON strings, the cached
// encoding of a conversation, the checks of a model's settings, and the texts that stand for results and attachments.
//
// A request is written byte by byte instead of through encoding/json so that the part that two calls have in common is the
// same bytes in both: servers cache prompts by exact prefix.
package encoding

import (
	"slices"
	"sync/atomic"
	"unicode/utf8"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// StableMessages counts the messages before the first one that the next call will not have.
// Their encoding can be kept for the next call. Transient messages, and all after the first one, cannot.
func StableMessages(messages []*protocol.Message) int {
	for i, m := range messages {
		if m.Origin != nil && m.Origin.Transient {
			return i
		}
	}
	return len(messages)
}

// Effort returns the reasoning effort of a call, "" if the model shall use its own default. It fails with the code
// effort_not_configurable, effort_required or unsupported_effort if the model's settings do not allow it.
func Effort(m *protocol.ModelSpec) (string, error) {
	effort, code, problem := m.UsedEffort()
	if code != "" {
		return "", &provider.Error{Kind: provider.KindValidation, Code: code, Message: problem}
	}
	return effort, nil
}

// Tools caches the encoded tools of the newest call. Most calls have the tools of the call before, in the same slice. The zero
// value is ready; it is safe for concurrent use.
type Tools struct{ last atomic.Pointer[encodedTools] }

// encodedTools are immutable: calls that run at the same time may share data.
type encodedTools struct {
	first  *protocol.ToolManifest // identifies the slice of tools, which is not changed once made
	n      int
	choice provider.ToolChoice
	mark   string // as given to the ToolWriter
	data   []byte // never changed or appended to
}

// ToolWriter appends tools and the choice among them. mark ends the last tool, for APIs that mark cached prefixes.
type ToolWriter func(b []byte, tools []protocol.ToolManifest, choice provider.ToolChoice, mark string) []byte

// Encode returns what write, which must always be the same function, appends for the tools, nil if there are none. The caller does not change the result.
func (t *Tools) Encode(tools []protocol.ToolManifest, choice provider.ToolChoice, mark string, write ToolWriter) []byte {
	if len(tools) == 0 {
		return nil
	}
	if last := t.last.Load(); last != nil && last.first == &tools[0] && last.n == len(tools) && last.choice == choice && last.mark == mark {
		return last.data
	}
	data := slices.Clip(write(nil, tools, choice, mark))
	t.last.Store(&encodedTools{&tools[0], len(tools), choice, mark, data})
	return data
}

// Receipts collects what became of the options that a request asked for.
// It belongs to one call; the first chunk of the reply carries it.
type Receipts []protocol.OptionReceipt

// Add notes the fate of one option.
func (r *Receipts) Add(option, fate string) {
	*r = append(*r, protocol.OptionReceipt{Option: option, Fate: fate})
}

// Fates of options.
const (
	Applied     = "applied"
	Clamped     = "clamped"            // to the model's limit
	Pinned      = "omittedPinned"      // the model's sampling cannot be changed
	Unsupported = "omittedUnsupported" // the API or the model has no such option
	OtherRoute  = "omittedOtherRoute"  // reasoning belongs to another provider, server or model
)

// OutputLimit returns the output limit to send, 0 for none, and notes a requested one.
// A limit above the model's own is sent as the model's own, because servers reject a larger one.
func OutputLimit(m *protocol.ModelSpec, o *protocol.GenerationOptions, r *Receipts) int64 {
	limit := o.MaxOutput
	if limit <= 0 {
		return 0
	}
	if m.OutputLimit > 0 && limit > m.OutputLimit {
		r.Add("maxOutput", Clamped)
		return m.OutputLimit
	}
	r.Add("maxOutput", Applied)
	return limit
}

// QuoteAll appends a list of strings, which must not be empty, as JSON.
func QuoteAll(b []byte, all []string) []byte {
	next := byte('[')
	for _, s := range all {
		b, next = Quote(append(b, next), s), ','
	}
	return append(b, ']')
}

// Quote appends text as a JSON string. Unlike encoding/json it leaves <, > and & as they are, which keeps source code a good deal
// shorter. Bytes that are not UTF-8 become U+FFFD.
func Quote(b []byte, text string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := 0; i < len(text); {
		c := text[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(text[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, text[start:i]...), "\uFFFD"...)
				start = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, text[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\t':
			b = append(b, '\\', 't')
		case '\r':
			b = append(b, '\\', 'r')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		start = i
	}
	return append(append(b, text[start:]...), '"')
}
