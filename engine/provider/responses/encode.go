package responses

import (
	"bytes"
	"strconv"

	"lashd/engine/provider"
	"lashd/engine/provider/encoding"
	"lashd/engine/provider/endpoint"
	"lashd/rpc/protocol"
)

// encode writes a request. Instructions, tools and the stable messages are the same bytes in the next call, and the cache key is that
// of the session: the server caches by prefix.
// It fails if the model's settings do not allow the effort, or if an attachment cannot be read. store is false: the server keeps no
// conversation, so the request has all of it.
func (p *Provider) encode(req *provider.Request) (*endpoint.Call, error) {
	effort, err := encoding.Effort(&req.Model)
	if err != nil {
		return nil, err
	}
	w := itemWriter{route: p.Route(req.Model.ID), files: encoding.FilesOf(req)}
	stable := req.Messages[:encoding.StableMessages(req.Messages)]
	key := encoding.Key{Session: req.Scope.SessionID, Model: req.Model.ID}
	past := p.history.Encode(key, stable, w.append)
	tools := p.tools.Encode(req.Tools, req.Choice, "", appendTools)
	b := make([]byte, 0, len(past)+len(req.System)*9/8+len(tools)+1<<10)
	b = encoding.Quote(append(b, `{"model":`...), req.Model.ID)
	if system := p.instructions(req); system != "" {
		b = encoding.Quote(append(b, `,"instructions":`...), system)
	}
	b = append(b, tools...)
	b = append(append(b, `,"input":[`...), past...)
	for _, m := range req.Messages[len(stable):] {
		b = w.append(b, m)
	}
	if err := w.files.Failed(&p.history, key, stable); err != nil {
		return nil, err
	}
	b = append(bytes.TrimSuffix(b, []byte{','}), ']')
	receipts := encoding.Dropped(req, w.route)
	b = p.appendOptions(b, req, effort, &receipts)
	if req.Scope.SessionID != "" {
		b = encoding.Quote(append(b, `,"prompt_cache_key":`...), string(req.Scope.SessionID))
	}
	b = append(b, `,"store":false,"stream":true}`...)
	return &endpoint.Call{Path: "/responses", Body: b, Receipts: receipts, Model: &req.Model}, nil
}

// instructions returns the system prompt, or a plain one for a server that requires one.
func (p *Provider) instructions(req *provider.Request) string {
	if req.System == "" && p.subscription {
		return "You are a helpful assistant."
	}
	return req.System
}

// appendTools writes the tools and the choice. The schemas are sent as they are, so the server may not enforce them strictly.
// There is at least one tool. The text begins with a comma. Without a tool_choice the model decides, which is ToolsAuto.
func appendTools(b []byte, tools []protocol.ToolManifest, choice provider.ToolChoice, _ string) []byte {
	b = append(b, `,"tools":[`...)
	for i := range tools {
		if i > 0 {
			b = append(b, ',')
		}
		b = encoding.Quote(append(b, `{"type":"function","name":`...), tools[i].Name)
		b = encoding.Quote(append(b, `,"description":`...), tools[i].Description)
		b = append(append(b, `,"parameters":`...), encoding.Schema(&tools[i])...)
		b = append(b, `,"strict":false}`...)
	}
	b = append(b, ']')
	if choice == provider.ToolsNone || choice == provider.ToolsRequired {
		b = encoding.Quote(append(b, `,"tool_choice":`...), string(choice))
	}
	return b
}

// appendOptions writes the options that the API takes, and a receipt for each that was asked for.
// The text begins with a comma or is empty. The API has no seed and no stop sequences.
func (p *Provider) appendOptions(b []byte, req *provider.Request, effort string, receipts *encoding.Receipts) []byte {
	m, o := &req.Model, &req.Options
	if p.subscription {
		dropSampling(o, receipts)
	} else {
		b = appendSampling(b, m, o, receipts)
	}
	if o.Seed != nil {
		receipts.Add("seed", encoding.Unsupported)
	}
	if len(o.Stop) > 0 {
		receipts.Add("stop", encoding.Unsupported)
	}
	b = appendText(b, req.Output, o.Verbosity, receipts)
	return appendReasoning(b, m, effort, receipts)
}

// appendSampling writes the output limit and the temperature.
func appendSampling(b []byte, m *protocol.ModelSpec, o *protocol.GenerationOptions, receipts *encoding.Receipts) []byte {
	if limit := encoding.OutputLimit(m, o, receipts); limit > 0 {
		b = strconv.AppendInt(append(b, `,"max_output_tokens":`...), limit, 10)
	}
	switch {
	case o.Temperature == nil:
	case m.PinnedOptions:
		receipts.Add("temperature", encoding.Pinned)
	default:
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *o.Temperature, 'g', -1, 64)
		receipts.Add("temperature", encoding.Applied)
	}
	return b
}

// dropSampling writes receipts for the output limit and the temperature, which the server for ChatGPT accounts rejects.
func dropSampling(o *protocol.GenerationOptions, receipts *encoding.Receipts) {
	if o.MaxOutput > 0 {
		receipts.Add("maxOutput", encoding.Unsupported)
	}
	if o.Temperature != nil {
		receipts.Add("temperature", encoding.Unsupported)
	}
}

// appendText writes the verbosity and the form of the output.
// The API puts both into the member text. It enforces a schema strictly only in the form that encoding.Strict accepts; any other
// is sent without strict, because the API would reject it.
func appendText(b []byte, out provider.OutputSpec, verbosity string, receipts *encoding.Receipts) []byte {
	if verbosity == "" && !out.JSON && len(out.Schema) == 0 {
		return b
	}
	b = append(b, `,"text":{`...)
	if verbosity != "" {
		b = append(encoding.Quote(append(b, `"verbosity":`...), verbosity), ',')
		receipts.Add("verbosity", encoding.Applied)
	}
	switch {
	case len(out.Schema) > 0:
		b = append(b, `"format":{"type":"json_schema","name":"answer",`...)
		if encoding.Strict(out.Schema) {
			b = append(b, `"strict":true,`...)
		}
		b = append(append(b, `"schema":`...), out.Schema...)
		b = append(b, `}`...)
	case out.JSON:
		b = append(b, `"format":{"type":"json_object"}`...)
	}
	return append(bytes.TrimSuffix(b, []byte{','}), '}')
}

// appendReasoning writes the effort, and asks for summaries and for the encrypted reasoning that the next call sends back.
// A model without a ReasoningSpec gets neither. The effort "off" is "none" in this API.
func appendReasoning(b []byte, m *protocol.ModelSpec, effort string, receipts *encoding.Receipts) []byte {
	if m.Reasoning == nil {
		return b
	}
	b = append(b, `,"include":["reasoning.encrypted_content"],"reasoning":{`...)
	if effort != "" {
		name := effort
		if name == "off" {
			name = "none"
		}
		b = append(encoding.Quote(append(b, `"effort":`...), name), ',')
		receipts.Add("effort", encoding.Applied)
	}
	return append(b, `"summary":"auto"}`...)
}
