package openai

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// body is an encoded request, in pieces that are sent one after the other.
type body struct {
	pieces   [][]byte
	receipts []protocol.OptionReceipt
}

func (b *body) size() int64 {
	n := int64(0)
	for _, p := range b.pieces {
		n += int64(len(p))
	}
	return n
}

func (b *body) reader() io.Reader {
	readers := make([]io.Reader, len(b.pieces))
	for i, p := range b.pieces {
		readers[i] = bytes.NewReader(p)
	}
	return io.MultiReader(readers...)
}

// encode writes a request. The messages that were sent before come from the history as they are; what depends on the
// single call stands before and after them.
func (p *Provider) encode(req *provider.Request) (*body, error) {
	effort, err := chooseEffort(&req.Model)
	if err != nil {
		return nil, err
	}
	head := append([]byte(`{"model":`), quote(nil, req.Model.ID)...)
	head = append(head, `,"messages":[`...)
	if req.System != "" {
		head = append(head, `{"role":"system","content":`...)
		head = append(quote(head, req.System), `},`...)
	}
	stable := req.Messages[:stableMessages(req.Messages)]
	told := p.history.encode(historyKey{req.Scope.SessionID, req.Model.ID}, stable, p.Route(req.Model.ID))
	tail := []byte{}
	for _, m := range req.Messages[len(stable):] {
		tail = appendMessage(tail, m, p.Route(req.Model.ID))
	}
	b := &body{pieces: trimComma([][]byte{head, told, tail})}
	end := append([]byte{}, ']')
	end = appendTools(end, req.Tools, req.Choice)
	end = appendOutput(end, req.Output)
	end = p.appendOptions(end, &req.Model, req.Options, effort, b)
	b.pieces = append(b.pieces, append(end, `,"stream":true,"stream_options":{"include_usage":true}}`...))
	return b, nil
}

// stableMessages counts the messages before the first one that will not be there in the next call.
func stableMessages(messages []*protocol.Message) int {
	for i, m := range messages {
		if m.Origin != nil && m.Origin.Transient {
			return i
		}
	}
	return len(messages)
}

// trimComma takes away the comma after the last message. Pieces may share memory with the history, so they are cut and
// never written to.
func trimComma(pieces [][]byte) [][]byte {
	for i, p := range slices.Backward(pieces) {
		if len(p) == 0 {
			continue
		}
		if p[len(p)-1] == ',' {
			pieces[i] = p[:len(p)-1]
		}
		break
	}
	return pieces
}

// chooseEffort says how hard the model shall think, or nothing where that is not asked.
func chooseEffort(m *protocol.ModelSpec) (string, error) {
	if m.Reasoning == nil {
		if m.Effort != "" {
			return "", invalid("effort_not_configurable", "model %s does not take a reasoning effort", m.ID)
		}
		return "", nil
	}
	effort := m.Effort
	if effort == "" {
		effort = m.Reasoning.Default
	}
	if effort == "" && m.Reasoning.Mandatory {
		return "", invalid("effort_required", "model %s needs a reasoning effort, one of %s",
			m.ID, strings.Join(m.Reasoning.Efforts, ", "))
	}
	if effort != "" && !slices.Contains(m.Reasoning.Efforts, effort) {
		return "", invalid("unsupported_effort", "model %s has no reasoning effort %q, only %s",
			m.ID, effort, strings.Join(m.Reasoning.Efforts, ", "))
	}
	return effort, nil
}

func invalid(code, format string, args ...any) *provider.Error {
	return &provider.Error{Kind: provider.KindValidation, Code: code, Message: fmt.Sprintf(format, args...)}
}

func appendTools(b []byte, tools []protocol.ToolManifest, choice provider.ToolChoice) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = quote(append(b, `{"type":"function","function":{"name":`...), t.Name)
		b = quote(append(b, `,"description":`...), t.Description)
		b = append(b, `,"parameters":`...)
		if len(t.Input) == 0 {
			b = append(b, `{"type":"object","properties":{}}`...)
		}
		b = append(append(b, t.Input...), `}}`...)
	}
	b = append(b, ']')
	if choice == provider.ToolsNone || choice == provider.ToolsRequired {
		b = quote(append(b, `,"tool_choice":`...), string(choice))
	}
	return b
}

func appendOutput(b []byte, out provider.OutputSpec) []byte {
	switch {
	case len(out.Schema) > 0:
		b = append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":`...)
		return append(append(b, out.Schema...), `}}`...)
	case out.JSON:
		return append(b, `,"response_format":{"type":"json_object"}`...)
	}
	return b
}

// appendOptions writes the options that the model takes, and a receipt for each that was asked for.
func (p *Provider) appendOptions(b []byte, m *protocol.ModelSpec, o protocol.GenerationOptions, effort string, to *body) []byte {
	receipt := func(option, fate string) {
		to.receipts = append(to.receipts, protocol.OptionReceipt{Option: option, Fate: fate})
	}
	if limit := o.MaxOutput; limit > 0 {
		fate := "applied"
		if m.OutputLimit > 0 && limit > m.OutputLimit {
			limit, fate = m.OutputLimit, "clamped"
		}
		b = append(quote(append(b, ','), p.cfg.OutputLimitField), ':')
		b = strconv.AppendInt(b, limit, 10)
		receipt("maxOutput", fate)
	}
	sampling := "applied"
	if m.PinnedOptions {
		sampling = "omittedPinned"
	}
	if o.Temperature != nil {
		if !m.PinnedOptions {
			b = strconv.AppendFloat(append(b, `,"temperature":`...), *o.Temperature, 'g', -1, 64)
		}
		receipt("temperature", sampling)
	}
	if o.Seed != nil {
		if !m.PinnedOptions {
			b = strconv.AppendInt(append(b, `,"seed":`...), *o.Seed, 10)
		}
		receipt("seed", sampling)
	}
	if len(o.Stop) > 0 {
		b = append(b, `,"stop":[`...)
		for i, s := range o.Stop {
			if i > 0 {
				b = append(b, ',')
			}
			b = quote(b, s)
		}
		b = append(b, ']')
		receipt("stop", "applied")
	}
	if effort != "" {
		b = quote(append(b, `,"reasoning_effort":`...), effort)
		receipt("effort", "applied")
	}
	return b
}

// quote writes text as a JSON string. encoding/json would also escape <, > and &, which makes source code a good deal
// longer.
func quote(b []byte, text string) []byte {
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
