package openai

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// body is an encoded request. It is in one piece because that is sent with its header in one write.
type body struct {
	data     []byte
	receipts []protocol.OptionReceipt
}

// encode writes a request. The messages that were sent before come from the history as they are; what depends on the
// single call stands before and after them.
func (p *Provider) encode(req *provider.Request) (*body, error) {
	effort, err := chooseEffort(&req.Model)
	if err != nil {
		return nil, err
	}
	stable := req.Messages[:stableMessages(req.Messages)]
	told := p.history.encode(historyKey{req.Scope.SessionID, req.Model.ID}, stable, p.Route(req.Model.ID))
	tools := p.encodeTools(req.Tools, req.Choice)
	b := &body{data: make([]byte, 0, len(told)+len(req.System)*9/8+len(tools)+1<<10)}
	b.data = quote(append(b.data, `{"model":`...), req.Model.ID)
	b.data = append(b.data, `,"messages":[`...)
	if req.System != "" {
		b.data = append(b.data, `{"role":"system","content":`...)
		b.data = append(quote(b.data, req.System), `},`...)
	}
	b.data = append(b.data, told...)
	for _, m := range req.Messages[len(stable):] {
		b.data = appendMessage(b.data, m, p.Route(req.Model.ID))
	}
	b.data = append(bytes.TrimSuffix(b.data, []byte{','}), ']')
	b.data = append(b.data, tools...)
	b.data = appendOutput(b.data, req.Output)
	b.data = p.appendOptions(b.data, &req.Model, req.Options, effort, b)
	b.data = append(b.data, `,"stream":true,"stream_options":{"include_usage":true}}`...)
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

// encodedTools are the tools of the newest call. Most calls have those of the one before, which nobody changes: they are known
// by where they are.
type encodedTools struct {
	first  *protocol.ToolManifest
	n      int
	choice provider.ToolChoice
	data   []byte
}

func (p *Provider) encodeTools(tools []protocol.ToolManifest, choice provider.ToolChoice) []byte {
	if len(tools) == 0 {
		return nil
	}
	if known := p.tools.Load(); known != nil && known.first == &tools[0] && known.n == len(tools) && known.choice == choice {
		return known.data
	}
	data := slices.Clip(appendTools(nil, tools, choice))
	p.tools.Store(&encodedTools{&tools[0], len(tools), choice, data})
	return data
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
		b = quoteAll(append(b, `,"stop":`...), o.Stop)
		receipt("stop", "applied")
	}
	if effort != "" {
		b = quote(append(b, `,"reasoning_effort":`...), effort)
		receipt("effort", "applied")
	}
	return b
}

// quoteAll appends a list of strings, which has at least one.
func quoteAll(b []byte, all []string) []byte {
	next := byte('[')
	for _, s := range all {
		b, next = quote(append(b, next), s), ','
	}
	return append(b, ']')
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
