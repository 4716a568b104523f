package chatcompletions

import (
	"bytes"
	"strconv"

	"lashd/engine/provider"
	"lashd/engine/provider/encoding"
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// encode writes a request. The messages that were sent before come from the history as they are; what depends on the
// single call stands before and after them.
// It fails if the model's settings do not allow the effort, or if an attachment cannot be read. include_usage asks for the token counts,
// which servers otherwise leave out of a stream.
func (p *Provider) encode(req *provider.Request) (*endpoint.Call, error) {
	effort, err := encoding.Effort(&req.Model)
	if err != nil {
		return nil, err
	}
	messages := messageEncoder{route: p.Route(req.Model.ID), files: encoding.FilesOf(req)}
	stable := req.Messages[:encoding.StableMessages(req.Messages)]
	key := encoding.Key{Session: req.Scope.SessionID, Model: req.Model.ID}
	past := p.history.Encode(key, stable, messages.append)
	tools := p.tools.Encode(req.Tools, req.Choice, "", appendTools)
	b := make([]byte, 0, len(past)+len(req.System)*9/8+len(tools)+1<<10)
	b = encoding.Quote(append(b, `{"model":`...), req.Model.ID)
	b = append(b, `,"messages":[`...)
	if req.System != "" {
		b = append(b, `{"role":"system","content":`...)
		b = append(encoding.Quote(b, req.System), `},`...)
	}
	b = append(b, past...)
	for _, m := range req.Messages[len(stable):] {
		b = messages.append(b, m)
	}
	if err := messages.files.Failed(&p.history, key, stable); err != nil {
		return nil, err
	}
	b = append(bytes.TrimSuffix(b, []byte{','}), ']')
	b = append(b, tools...)
	b = appendOutput(b, req.Output)
	receipts := encoding.Dropped(req, messages.route)
	b = p.appendOptions(b, &req.Model, &req.Options, effort, &receipts)
	b = append(b, `,"stream":true,"stream_options":{"include_usage":true}}`...)
	return &endpoint.Call{Path: "/chat/completions", Body: b, Receipts: receipts, Model: &req.Model}, nil
}

// appendTools writes the tools and the choice. The text begins with a comma. Without a tool_choice the model decides, which is
// ToolsAuto. Schemas are sent as they are, without strict.
func appendTools(b []byte, tools []protocol.ToolManifest, choice provider.ToolChoice, _ string) []byte {
	if len(tools) == 0 {
		return b
	}
	b = append(b, `,"tools":[`...)
	for i, t := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = encoding.Quote(append(b, `{"type":"function","function":{"name":`...), t.Name)
		b = encoding.Quote(append(b, `,"description":`...), t.Description)
		b = append(b, `,"parameters":`...)
		b = append(append(b, encoding.Schema(&tools[i])...), `}}`...)
	}
	b = append(b, ']')
	if choice == provider.ToolsNone || choice == provider.ToolsRequired {
		b = encoding.Quote(append(b, `,"tool_choice":`...), string(choice))
	}
	return b
}

// appendOutput writes the form of the output. The text begins with a comma, or is empty for plain text. A schema is enforced strictly
// only in the form that encoding.Strict accepts; any other is sent without strict, because the API would reject it.
func appendOutput(b []byte, out provider.OutputSpec) []byte {
	switch {
	case len(out.Schema) > 0:
		b = append(b, `,"response_format":{"type":"json_schema","json_schema":{"name":"answer",`...)
		if encoding.Strict(out.Schema) {
			b = append(b, `"strict":true,`...)
		}
		b = append(b, `"schema":`...)
		return append(append(b, out.Schema...), `}}`...)
	case out.JSON:
		return append(b, `,"response_format":{"type":"json_object"}`...)
	}
	return b
}

// appendOptions writes the options that the model takes, and a receipt for each that was asked for.
// Each member begins with a comma. Servers that do not have an option ignore it or reject the request, so each is sent only if asked for.
func (p *Provider) appendOptions(b []byte, m *protocol.ModelSpec, o *protocol.GenerationOptions, effort string, receipts *encoding.Receipts) []byte {
	if limit := encoding.OutputLimit(m, o, receipts); limit > 0 {
		b = append(encoding.Quote(append(b, ','), p.cfg.OutputLimitField), ':')
		b = strconv.AppendInt(b, limit, 10)
	}
	sampling := encoding.Applied // receipt of options that choose how tokens are sampled
	if m.PinnedOptions {
		sampling = encoding.Pinned
	}
	if o.Temperature != nil {
		if !m.PinnedOptions {
			b = strconv.AppendFloat(append(b, `,"temperature":`...), *o.Temperature, 'g', -1, 64)
		}
		receipts.Add("temperature", sampling)
	}
	if o.Seed != nil {
		if !m.PinnedOptions {
			b = strconv.AppendInt(append(b, `,"seed":`...), *o.Seed, 10)
		}
		receipts.Add("seed", sampling)
	}
	if len(o.Stop) > 0 {
		b = encoding.QuoteAll(append(b, `,"stop":`...), o.Stop)
		receipts.Add("stop", encoding.Applied)
	}
	if o.Verbosity != "" {
		b = encoding.Quote(append(b, `,"verbosity":`...), o.Verbosity)
		receipts.Add("verbosity", encoding.Applied)
	}
	if effort != "" {
		b = encoding.Quote(append(b, `,"reasoning_effort":`...), effort)
		receipts.Add("effort", encoding.Applied)
	}
	return b
}
