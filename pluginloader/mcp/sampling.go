package mcp

//lint:file-ignore SA1019 servers of the versions that lashd begins with use sampling

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Sampling has the limits of a server that may ask the model of a session. The zero value allows nothing.
type Sampling struct {
	MaxTokens int64 // of one answer
	PerTurn   int   // requests in one turn
}

func (s Sampling) allowed() bool { return s.PerTurn > 0 }

// codeRejected is the code of MCP for a sampling request that a person has rejected.
const codeRejected = -1

// Limits of a sampling request.
const (
	maxSample         = 256 << 10 // bytes of its texts
	maxSampleMessages = 500
)

// sampled is a sampling request as the arguments of a call. A person sees them before the model does.
type sampled struct {
	Server      string          `json:"server"`
	Model       string          `json:"model"`
	System      string          `json:"system,omitempty"`
	Messages    []sampleMessage `json:"messages"`
	MaxTokens   int64           `json:"maxTokens"`
	Temperature *float64        `json:"temperature,omitempty"`
	Stop        []string        `json:"stop,omitempty"`
}

// sampleMessage is a message of a sampling request.
type sampleMessage struct {
	Role protocol.Role `json:"role"`
	Text string        `json:"text"`
}

// answered is the value of the call: what the model has answered.
type answered struct {
	Model string              `json:"model"`
	Text  string              `json:"text"`
	Stop  protocol.StopReason `json:"stop"`
}

// SamplingTool returns the name of the tool that stands for the sampling requests of a server. No tool of a server has such a name.
func SamplingTool(server string) string { return "mcp_sampling__" + plain(server) }

// sample answers sampling/createMessage. The request becomes a call that the server's present call makes: lashd judges, stores and records
// it like any other.
func (l *life) sample(ctx context.Context, r *sdk.CreateMessageWithToolsRequest) (*sdk.CreateMessageWithToolsResult, error) {
	c := l.asker(ctx)
	if c == nil || c.TurnID == "" { // lashd asks people only in turns
		l.server.warn("its sampling request was refused: it belongs to no call of a turn, or to one of several")
		return nil, &jsonrpc.Error{Code: codeRejected, Message: "lashd accepts a sampling request only during a call of a turn, and if no other turn has calls in progress"}
	}
	if n, limit := l.server.samples.count(c.TurnID), l.server.end.Sampling.PerTurn; n > limit {
		return nil, &jsonrpc.Error{Code: codeRejected, Message: fmt.Sprintf("the server has sent %d sampling requests in this turn, and its limit is %d", n, limit)}
	}
	request, err := l.sampled(ctx, c, r.Params)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	out, err := l.makeSample(ctx, c, request)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return sampleResult(out)
}

// sampled checks a request, and applies the limits to it.
func (l *life) sampled(ctx context.Context, c *inflight, p *sdk.CreateMessageWithToolsParams) (*sampled, error) {
	s := &sampled{Server: l.server.end.label, System: p.SystemPrompt, MaxTokens: l.server.end.Sampling.MaxTokens, Stop: p.StopSequences}
	if p.MaxTokens > 0 {
		s.MaxTokens = min(s.MaxTokens, p.MaxTokens)
	}
	if p.Temperature != 0 {
		s.Temperature = &p.Temperature
	}
	size := len(s.System)
	for _, m := range p.Messages[:min(len(p.Messages), maxSampleMessages+1)] {
		if m.Role != "user" && m.Role != "assistant" {
			return nil, fmt.Errorf("the role %.40q is neither user nor assistant", m.Role)
		}
		text, err := textOf(m)
		if err != nil {
			return nil, err
		}
		size += len(text)
		s.Messages = append(s.Messages, sampleMessage{protocol.Role(m.Role), text})
	}
	switch {
	case len(p.Tools) > 0:
		return nil, errors.New("lashd did not declare sampling with tools")
	case len(s.Messages) == 0:
		return nil, errors.New("the request has no messages")
	case len(s.Messages) > maxSampleMessages:
		return nil, fmt.Errorf("the request has %d messages, more than %d", len(p.Messages), maxSampleMessages)
	case size > maxSample:
		return nil, fmt.Errorf("the texts have %d bytes, more than %d", size, maxSample)
	}
	var err error
	s.Model, err = modelOf(ctx, c)
	return s, err
}

// textOf returns the text of a message. Images and audio are errors.
func textOf(m *sdk.SamplingMessageV2) (string, error) {
	var all []string
	for _, x := range m.Content {
		text, ok := x.(*sdk.TextContent)
		if !ok {
			return "", errors.New("lashd passes only text to the model")
		}
		all = append(all, strings.ToValidUTF8(text.Text, "\uFFFD"))
	}
	return strings.Join(all, "\n"), nil
}

// modelOf returns the name of the model of the session in which a call runs.
func modelOf(ctx context.Context, c *inflight) (string, error) {
	state, err := plugin.ForTool(*c.Invocation).NeedState()
	if err != nil {
		return "", err
	}
	view, err := state.View(ctx, c.SessionID)
	if err != nil {
		return "", err
	}
	if view.ModelName == "" {
		return "", errors.New("the session has no model")
	}
	return view.ModelName, nil
}

// makeSample makes the call. The clock of the server's call stops until it ends.
func (l *life) makeSample(ctx context.Context, c *inflight, s *sampled) (out protocol.ToolOutput, err error) {
	args, err := json.Marshal(s)
	if err != nil {
		return out, err
	}
	ctx, leave := l.bound(ctx)
	defer leave()
	name := SamplingTool(l.server.end.settings.name)
	err = c.paused(func() error {
		all, err := c.Host.Call(ctx, []tool.Request{{Args: args, Grant: &tool.Grant{
			Manifest: protocol.ToolManifest{ID: name, Name: name, Kind: protocol.ToolKindOther, Description: "Answers a request of the MCP server with the model of the session."},
			Contract: protocol.ToolContract{Replay: protocol.ReplaySafe, Input: json.RawMessage(`{"type":"object"}`)},
		}}})
		if err == nil {
			out = all[0]
		}
		return err
	})
	return out, err
}

// sampleResult converts the output of the call. The reason of a refusal is for the session, and the server does not get it.
func sampleResult(out protocol.ToolOutput) (*sdk.CreateMessageWithToolsResult, error) {
	switch f := out.Failure; {
	case out.Status == protocol.OutputSuccess:
	case f != nil && f.Class == protocol.FailPermission:
		return nil, &jsonrpc.Error{Code: codeRejected, Message: "the user or a rule rejected the sampling request"}
	default:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: cut(out.Text, maxMessage)}
	}
	var a answered
	if err := json.Unmarshal(out.Value, &a); err != nil {
		return nil, err
	}
	r := &sdk.CreateMessageWithToolsResult{Model: a.Model, Role: "assistant", Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}, StopReason: "endTurn"}
	if a.Stop == protocol.StopOutputLimit {
		r.StopReason = "maxTokens"
	}
	return r, nil
}

// ExecuteGranted implements tool.Granter: it asks the model what a server has requested. The tokens are on the ledger of the session under
// the name of the tool.
func (p *Part) ExecuteGranted(ctx context.Context, call tool.Invocation, _ json.RawMessage) (tool.Result, error) {
	var s sampled
	if err := json.Unmarshal(call.Args, &s); err != nil {
		return tool.Result{}, err
	}
	models, err := plugin.ForTool(call).NeedModels()
	if err != nil {
		return tool.Result{}, err
	}
	r, err := models.Complete(ctx, s.completion(call.Name))
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, context.Cause(ctx)
	case err != nil:
		return tool.Result{Output: protocol.Fail(protocol.FailExternal, "sampling_failed", fmt.Sprintf("the model %s did not answer: %v", s.Model, err), protocol.FromTool)}, nil
	}
	out := protocol.Succeed(r.Text)
	out.Value, err = json.Marshal(answered{r.Call.Model, r.Text, r.Stop})
	return tool.Result{Output: out}, err
}

// completion returns the request to the model.
func (s *sampled) completion(label string) *protocol.CompletionParams {
	p := &protocol.CompletionParams{
		Model: s.Model, System: s.System, Label: label, Generation: protocol.GenerationOptions{MaxOutput: s.MaxTokens, Temperature: s.Temperature, Stop: s.Stop},
	}
	for _, m := range s.Messages {
		p.Messages = append(p.Messages, protocol.Message{Role: m.Role, Parts: []protocol.Part{{Kind: protocol.PartText, Text: m.Text}}})
	}
	return p
}

// samples counts the sampling requests of a server in the newest turns. It is safe for concurrent use.
type samples struct {
	mu    sync.Mutex
	turns []sampledTurn // oldest first
}

// sampledTurn is a turn with the number of its requests.
type sampledTurn struct {
	id   protocol.TurnID
	made int
}

// maxSampledTurns is the number of turns that samples remembers.
const maxSampledTurns = 256

// count adds a request to those of a turn, and returns how many it has now.
func (s *samples) count(turn protocol.TurnID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.turns, func(t sampledTurn) bool { return t.id == turn })
	if i < 0 {
		if len(s.turns) == maxSampledTurns {
			s.turns = s.turns[1:]
		}
		s.turns = append(s.turns, sampledTurn{id: turn})
		i = len(s.turns) - 1
	}
	s.turns[i].made++
	return s.turns[i].made
}
