package gemini

import (
	"bytes"
	"cmp"
	"math"
	"net/url"
	"strconv"
	"strings"

	"lashd/engine/provider"
	"lashd/engine/provider/encoding"
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// encode writes a request. System instruction, tools and the stable messages are the same bytes in the next call: the server caches by
// prefix.
// It fails if the model's settings do not allow the effort, or if an attachment cannot be read. The model's id is in the path, not in
// the body.
func (p *Provider) encode(req *provider.Request) (*endpoint.Call, error) {
	effort, err := encoding.Effort(&req.Model)
	if err != nil {
		return nil, err
	}
	w := contentWriter{model: &req.Model, route: p.Route(req.Model.ID), files: encoding.FilesOf(req)}
	stable := req.Messages[:encoding.StableMessages(req.Messages)]
	key := encoding.Key{Session: req.Scope.SessionID, Model: req.Model.ID}
	past := p.history.Encode(key, stable, w.append)
	tools := p.tools.Encode(req.Tools, req.Choice, "", appendTools)
	b := make([]byte, 0, len(past)+len(req.System)*9/8+len(tools)+1<<10)
	b = append(b, '{')
	if req.System != "" {
		b = encoding.Quote(append(b, `"systemInstruction":{"parts":[{"text":`...), req.System)
		b = append(b, `}]},`...)
	}
	b = append(b, tools...)
	b = append(append(b, `"contents":[`...), past...)
	for _, m := range req.Messages[len(stable):] {
		b = w.append(b, m)
	}
	if err := w.files.Failed(&p.history, key, stable); err != nil {
		return nil, err
	}
	b = append(bytes.TrimSuffix(b, []byte{','}), ']')
	receipts := encoding.Dropped(req, w.route)
	b = append(appendOptions(b, req, effort, &receipts), '}')
	return &endpoint.Call{Path: pathOf(req.Model.ID), Body: b, Receipts: receipts, Model: &req.Model}, nil
}

// pathOf returns the path of a streamed call. An id with a slash, such as tunedModels/x, is a resource name already.
// Segments are escaped. alt=sse asks for an event stream instead of a JSON array.
func pathOf(id string) string {
	if !strings.Contains(id, "/") {
		id = "models/" + id
	}
	segments := strings.Split(id, "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	return "/" + strings.Join(segments, "/") + ":streamGenerateContent?alt=sse"
}

// appendTools writes the tools and the choice, with a comma after them.
// There is at least one tool. parametersJsonSchema takes JSON Schema; the older member parameters takes less. Without a toolConfig
// the model decides, which is ToolsAuto.
func appendTools(b []byte, tools []protocol.ToolManifest, choice provider.ToolChoice, _ string) []byte {
	b = append(b, `"tools":[{"functionDeclarations":[`...)
	for i := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = encoding.Quote(append(b, `{"name":`...), tools[i].Name)
		b = encoding.Quote(append(b, `,"description":`...), tools[i].Description)
		b = append(append(b, `,"parametersJsonSchema":`...), encoding.GoogleSchema(encoding.Schema(&tools[i]))...)
		b = append(b, '}')
	}
	b = append(b, `]}],`...)
	switch choice {
	case provider.ToolsNone:
		b = append(b, `"toolConfig":{"functionCallingConfig":{"mode":"NONE"}},`...)
	case provider.ToolsRequired:
		b = append(b, `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},`...)
	}
	return b
}

// appendOptions writes the generation options, and a receipt for each that was asked for.
// The text begins with a comma. The API has limits and seeds of 32 bits: a larger limit is clamped.
func appendOptions(b []byte, req *provider.Request, effort string, receipts *encoding.Receipts) []byte {
	m, o := &req.Model, &req.Options
	b = append(b, `,"generationConfig":{`...)
	limited := *m
	limited.OutputLimit = min(cmp.Or(m.OutputLimit, math.MaxInt32), math.MaxInt32)
	if limit := encoding.OutputLimit(&limited, o, receipts); limit > 0 {
		b = append(strconv.AppendInt(append(b, `"maxOutputTokens":`...), limit, 10), ',')
	}
	sampling := encoding.Applied // receipt of options that choose how tokens are sampled
	if m.PinnedOptions {
		sampling = encoding.Pinned
	}
	if o.Temperature != nil {
		if !m.PinnedOptions {
			b = append(strconv.AppendFloat(append(b, `"temperature":`...), *o.Temperature, 'g', -1, 32), ',')
		}
		receipts.Add("temperature", sampling)
	}
	b = appendSeed(b, o.Seed, sampling, receipts)
	if len(o.Stop) > 0 {
		b = append(encoding.QuoteAll(append(b, `"stopSequences":`...), o.Stop), ',')
		receipts.Add("stop", encoding.Applied)
	}
	if o.Verbosity != "" {
		receipts.Add("verbosity", encoding.Unsupported)
	}
	b = appendThinking(b, m, effort, receipts)
	switch {
	case len(req.Tools) > 0 && (req.Output.JSON || len(req.Output.Schema) > 0): // models before Gemini 3 reject JSON output beside tools
		receipts.Add("output", encoding.Unsupported)
	case len(req.Output.Schema) > 0:
		b = append(append(b, `"responseMimeType":"application/json","responseJsonSchema":`...), encoding.GoogleSchema(req.Output.Schema)...)
		b = append(b, ',')
	case req.Output.JSON:
		b = append(b, `"responseMimeType":"application/json",`...)
	}
	return append(bytes.TrimSuffix(b, []byte{','}), '}')
}

// appendSeed writes a seed that fits the API's 32 bits.
// A larger one is left out with the receipt unsupported. A comma follows the member.
func appendSeed(b []byte, seed *int64, sampling string, receipts *encoding.Receipts) []byte {
	switch {
	case seed == nil:
		return b
	case *seed < math.MinInt32 || *seed > math.MaxInt32:
		sampling = encoding.Unsupported
	case sampling == encoding.Applied:
		b = append(strconv.AppendInt(append(b, `"seed":`...), *seed, 10), ',')
	}
	receipts.Add("seed", sampling)
	return b
}

// appendThinking writes how hard the model thinks, and asks for summaries of its thoughts.
// Without an effort the model uses its default. A model whose effort is a level gets a thinkingLevel, others a thinkingBudget in tokens;
// the API rejects both together. The effort "off" is a budget of 0 for either.
func appendThinking(b []byte, m *protocol.ModelSpec, effort string, receipts *encoding.Receipts) []byte {
	if m.Reasoning == nil {
		return b
	}
	b = append(b, `"thinkingConfig":{"includeThoughts":`...)
	b = strconv.AppendBool(b, effort != "off")
	switch {
	case effort == "":
		return append(b, `},`...)
	case effort == "off":
		b = append(b, `,"thinkingBudget":0`...)
	case m.Reasoning.Encoding == protocol.EncodeBudget:
		b = strconv.AppendInt(append(b, `,"thinkingBudget":`...), m.Reasoning.Budget(effort), 10)
	default:
		b = encoding.Quote(append(b, `,"thinkingLevel":`...), strings.ToUpper(effort))
	}
	receipts.Add("effort", encoding.Applied)
	return append(b, `},`...)
}
