package anthropic

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"lashd/engine/provider"
	"lashd/engine/provider/encoding"
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// The API requires an output limit, in tokens.
const (
	defaultOutput = 16_384 // for models without a known limit
	answerRoom    = 8_192  // tokens of the output limit that a thinking budget leaves for the answer
	leastBudget   = 1_024  // the API's smallest thinking budget
)

// encode writes a request. The next call of the conversation repeats the bytes up to the last stable message, so the server can cache
// them. Only the marks that say where to cache may move.
// It fails if the model's settings do not allow the effort, or if an attachment cannot be read.
func (p *Provider) encode(req *provider.Request) (*endpoint.Call, error) {
	effort, err := encoding.Effort(&req.Model)
	if err != nil {
		return nil, err
	}
	w := messageWriter{route: p.Route(req.Model.ID), files: encoding.FilesOf(req)}
	w.mark = cacheMark(req.Model.Cache)
	tools := p.tools.Encode(req.Tools, req.Choice, w.mark, appendTools)
	b := make([]byte, 0, len(req.System)*9/8+len(tools)+4<<10)
	b = encoding.Quote(append(b, `{"model":`...), req.Model.ID)
	receipts := encoding.Dropped(req, w.route)
	b = appendOptions(b, req, thinkingOf(req, effort, w.route), &receipts)
	b = append(b, tools...)
	if req.System != "" {
		b = encoding.Quote(append(b, `,"system":[{"type":"text","text":`...), req.System)
		b = append(append(b, w.mark...), `}]`...)
	}
	b = append(b, `,"messages":[`...)
	b = p.appendMessages(b, req, &w)
	if err := w.files.Failed(&p.history, encoding.Key{Session: req.Scope.SessionID, Model: req.Model.ID}, req.Messages); err != nil {
		return nil, err
	}
	b = append(bytes.TrimSuffix(b, []byte{','}), `],"stream":true}`...)
	return &endpoint.Call{Path: "/messages", Body: b, Receipts: receipts, Model: &req.Model}, nil
}

// cacheMark returns the JSON member that ends a cached prefix, with a leading comma. It is empty if caching is off for the model.
// Without a ttl the server keeps the prefix for five minutes.
func cacheMark(retention protocol.CacheRetention) string {
	switch retention {
	case protocol.CacheNone:
		return ""
	case protocol.CacheLong:
		return `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	}
	return `,"cache_control":{"type":"ephemeral"}`
}

// appendMessages writes the conversation. The last two stable messages that are not the model's get a cache mark; an earlier
// call has cached the conversation up to the first of them. The tools and the system prompt have a mark each. The API allows four.
// Stable messages before the first mark come from the history cache. The others are written for each call, because the marks move.
func (p *Provider) appendMessages(b []byte, req *provider.Request, w *messageWriter) []byte {
	stable := encoding.StableMessages(req.Messages)
	last, earlier := breakpoints(req.Messages[:stable])
	key := encoding.Key{Session: req.Scope.SessionID, Model: req.Model.ID}
	head := stable
	if w.mark != "" && last >= 0 {
		head = last
		if earlier >= 0 {
			head = earlier
		}
	}
	b = append(b, p.history.Encode(key, req.Messages[:head], w.plain)...)
	for i := head; i < len(req.Messages); i++ {
		if w.mark != "" && (i == last || i == earlier) {
			b = w.marked(b, req.Messages[i])
		} else {
			b = w.plain(b, req.Messages[i])
		}
	}
	return b
}

// breakpoints returns the indexes of the last two messages that are not the model's; -1 for a missing one.
func breakpoints(messages []*protocol.Message) (last, earlier int) {
	last, earlier = -1, -1
	for i := len(messages) - 1; i >= 0 && earlier < 0; i-- {
		switch {
		case messages[i].Role == protocol.RoleAssistant:
		case last < 0:
			last = i
		default:
			earlier = i
		}
	}
	return last, earlier
}

// appendTools writes the tools and the choice. The last tool ends a cached prefix.
// There is at least one tool. The text begins with a comma. Without a tool_choice the model decides, which is ToolsAuto.
func appendTools(b []byte, tools []protocol.ToolManifest, choice provider.ToolChoice, mark string) []byte {
	b = append(b, `,"tools":[`...)
	for i := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = encoding.Quote(append(b, `{"name":`...), tools[i].Name)
		b = encoding.Quote(append(b, `,"description":`...), tools[i].Description)
		b = append(append(b, `,"input_schema":`...), encoding.Schema(&tools[i])...)
		if i == len(tools)-1 {
			b = append(b, mark...)
		}
		b = append(b, '}')
	}
	b = append(b, ']')
	switch choice {
	case provider.ToolsNone:
		b = append(b, `,"tool_choice":{"type":"none"}`...)
	case provider.ToolsRequired:
		b = append(b, `,"tool_choice":{"type":"any"}`...)
	}
	return b
}

// thinking holds the thinking settings of a call. With the zero value, the model decides.
type thinking struct {
	effort string // as asked for
	budget int64  // tokens; if set, the request has no effort
	off    bool   // the effort is "off"
	barred bool   // the API does not allow thinking in this call
}

// thinkingOf returns the thinking settings of a call. The API rejects thinking if the model must call a tool. With a budget, it also
// rejects thinking after tool results if the reply that made the calls has no thinking of this route.
func thinkingOf(req *provider.Request, effort, route string) thinking {
	if effort == "" {
		return thinking{}
	}
	t := thinking{effort: effort}
	switch {
	case effort == "off":
		t.off = true
		return t
	case req.Choice == provider.ToolsRequired && len(req.Tools) > 0:
		t.barred = true
	case req.Model.Reasoning.Encoding == protocol.EncodeBudget:
		t.budget = max(req.Model.Reasoning.Budget(effort), leastBudget)
		t.barred = unthoughtCall(req.Messages, route)
	}
	return t
}

// unthoughtCall reports whether the conversation ends with tool results and the reply that made the calls has no thinking of this route.
func unthoughtCall(messages []*protocol.Message, route string) bool {
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		if m.Role != protocol.RoleAssistant {
			if !hasResult(m) && (m.Origin == nil || !m.Origin.Transient) {
				return false
			}
			continue
		}
		if len(m.Calls()) == 0 {
			return false
		}
		for j := range m.Parts {
			if m.Parts[j].Replay != nil && m.Parts[j].Route == route {
				return false
			}
		}
		return true
	}
	return false
}

// hasResult reports whether a message has the result of a tool call.
func hasResult(m *protocol.Message) bool {
	for i := range m.Parts {
		if m.Parts[i].Result != nil {
			return true
		}
	}
	return false
}

// appendOptions writes the options that the API supports, and adds a receipt for each requested option.
// The text begins with a comma. It always has max_tokens, which must be greater than a thinking budget. If the budget does not fit,
// it becomes half of the limit, or the limit grows if neither the request nor the model sets one. The API takes temperatures
// up to 1, and only its default while the model thinks.
func appendOptions(b []byte, req *provider.Request, t thinking, receipts *encoding.Receipts) []byte {
	m, o := &req.Model, &req.Options
	asked := encoding.OutputLimit(m, o, receipts) // 0: the request sets no limit
	limit := cmp.Or(asked, m.OutputLimit, defaultOutput)
	if t.budget > 0 && t.budget > limit-leastBudget {
		if asked == 0 && m.OutputLimit == 0 {
			limit = t.budget + answerRoom
		} else {
			t.budget = limit / 2
			t.barred = t.barred || t.budget < leastBudget
		}
	}
	b = strconv.AppendInt(append(b, `,"max_tokens":`...), limit, 10)
	thinks := t.effort != "" && !t.off && !t.barred
	if o.Temperature != nil {
		switch {
		case m.PinnedOptions || thinks:
			receipts.Add("temperature", encoding.Pinned)
		default:
			b = strconv.AppendFloat(append(b, `,"temperature":`...), min(*o.Temperature, 1), 'g', -1, 64)
			receipts.Add("temperature", fate(*o.Temperature > 1, encoding.Clamped))
		}
	}
	if o.Seed != nil {
		receipts.Add("seed", encoding.Unsupported)
	}
	if o.Verbosity != "" {
		receipts.Add("verbosity", encoding.Unsupported)
	}
	b = appendStops(b, o.Stop, receipts)
	b = appendThinking(b, t, receipts)
	return appendOutput(b, req.Output, t, thinks, receipts)
}

// fate returns other if happened is set, and else Applied.
func fate(happened bool, other string) string {
	if happened {
		return other
	}
	return encoding.Applied
}

// appendStops writes the stop sequences. The API rejects those that are white space only.
// The receipt says unsupported if one is left out.
func appendStops(b []byte, stops []string, receipts *encoding.Receipts) []byte {
	if len(stops) == 0 {
		return b
	}
	var usable []string
	for _, s := range stops {
		if strings.TrimSpace(s) != "" {
			usable = append(usable, s)
		}
	}
	if len(usable) > 0 {
		b = encoding.QuoteAll(append(b, `,"stop_sequences":`...), usable)
	}
	receipts.Add("stop", fate(len(usable) < len(stops), encoding.Unsupported))
	return b
}

// appendThinking writes the thinking member. It requests summaries, because some models omit them by default.
// Without an effort it writes nothing, and the model uses its default. An effort that the API bars gets the receipt unsupported.
func appendThinking(b []byte, t thinking, receipts *encoding.Receipts) []byte {
	switch {
	case t.effort == "":
		return b
	case t.barred:
		receipts.Add("effort", encoding.Unsupported)
		return append(b, `,"thinking":{"type":"disabled"}`...)
	case t.off:
		b = append(b, `,"thinking":{"type":"disabled"}`...)
	case t.budget > 0:
		b = strconv.AppendInt(append(b, `,"thinking":{"type":"enabled","display":"summarized","budget_tokens":`...), t.budget, 10)
		b = append(b, '}')
	default:
		b = append(b, `,"thinking":{"type":"adaptive","display":"summarized"}`...)
	}
	receipts.Add("effort", encoding.Applied)
	return b
}

// appendOutput writes the effort, which is an option of the output in this API, and the schema of a structured output.
// A call with a thinking budget has no effort. The API enforces only schemas of a simple form and rejects others, and it has no JSON
// output without a schema. The receipt for both is unsupported.
func appendOutput(b []byte, out provider.OutputSpec, t thinking, thinks bool, receipts *encoding.Receipts) []byte {
	effort := ""
	if thinks && t.budget == 0 {
		effort = t.effort
	}
	enforced := encoding.Strict(out.Schema)
	if effort != "" || enforced {
		b = append(b, `,"output_config":{`...)
		if effort != "" {
			b = append(encoding.Quote(append(b, `"effort":`...), effort), ',')
		}
		if enforced {
			b = append(append(b, `"format":{"type":"json_schema","schema":`...), out.Schema...)
			b = append(b, `},`...)
		}
		b = append(bytes.TrimSuffix(b, []byte{','}), '}')
	}
	if !enforced && (out.JSON || len(out.Schema) > 0) {
		receipts.Add("output", encoding.Unsupported)
	}
	return b
}
