package engine

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"lashd/engine/param"
	"lashd/engine/provider"
	"lashd/engine/receipt"
	"lashd/engine/tool"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Completions is the API of model calls outside turns, and of the tokens that all calls used.
type Completions struct{ eng *Engine }

// Create makes one model call outside of any turn. Its tokens are booked to the session under the label.
func (cs *Completions) Create(ctx context.Context, p *protocol.CompletionParams) (*protocol.CompletionResult, error) {
	if len(p.Messages) == 0 {
		return nil, param.Bad("/messages", "must have at least one message")
	}
	for i := range p.Messages {
		if err := param.CheckMessage("/messages/"+strconv.Itoa(i), &p.Messages[i]); err != nil {
			return nil, err
		}
	}
	if err := cs.check(ctx, p); err != nil {
		return nil, err
	}
	m, err := cs.eng.Models.named(p.Model)
	if err != nil {
		return nil, err
	}
	return receipt.Once(ctx, cs.eng.receipts, "completion/create", p.Key(), p, func(rc receipt.Request) (*protocol.CompletionResult, error) {
		result, err := cs.complete(ctx, m, p)
		if err != nil {
			return nil, err
		}
		return result, cs.book(ctx, p, result, rc)
	})
}

// check refuses before the call what could not be answered or booked after it.
func (cs *Completions) check(ctx context.Context, p *protocol.CompletionParams) error {
	if err := cmp.Or(param.CheckGeneration(p.Generation), param.CheckName("/label", p.Label)); err != nil {
		return err
	}
	if err := tool.CheckSchema(p.Schema); err != nil {
		return param.Bad("/schema", "%v", err)
	}
	if p.SessionID == "" {
		return nil
	}
	_, err := cs.eng.store.Session(ctx, p.SessionID)
	return err
}

func (cs *Completions) complete(ctx context.Context, m Model, p *protocol.CompletionParams) (*protocol.CompletionResult, error) {
	req := &provider.Request{
		Model: m.Spec, System: p.System, Choice: provider.ToolsNone, Options: p.Generation,
		Output: provider.OutputSpec{Schema: p.Schema, JSON: p.Schema != nil},
		Scope:  provider.Scope{RequestID: string(protocol.NewInputID())},
	}
	for i := range p.Messages {
		req.Messages = append(req.Messages, &p.Messages[i])
	}
	scope, body := trace.Record{SessionID: p.SessionID}, trace.Completion{Label: completionLabel(p), Model: m.Spec.ID}
	cs.eng.Trace.Add(trace.ModelStarted, scope, body)
	began := time.Now()
	reply, err := cs.collect(ctx, m, req)
	if err != nil {
		body.Error = err.Error()
		cs.eng.Trace.Add(trace.ModelFailed, scope, body)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &ProviderError{Issue: issueOf(err)}
	}
	reply.Usage = withCost(reply.Usage, m.Price)
	msg := reply.Message()
	call := callRecord(1, m.Spec, &reply, time.Since(began))
	body.Record = &call
	cs.eng.Trace.Add(trace.ModelCompleted, scope, body)
	return &protocol.CompletionResult{Message: msg, Text: msg.Answer(), Stop: reply.Stop, Call: call}, nil
}

// completionLabel is the source under which the ledger and the trace show the call.
func completionLabel(p *protocol.CompletionParams) string { return cmp.Or(p.Label, "completion") }

// collect reads a reply whole. A panic of the provider is an error of the call.
func (cs *Completions) collect(ctx context.Context, m Model, req *provider.Request) (reply provider.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			cs.eng.group.Recovered("model", m.Name, p)
			err = &provider.Error{Kind: provider.KindUnknown, Code: "provider_panic", Message: "the provider panicked"}
		}
	}()
	var c provider.Collector
	for chunk, err := range m.Provider.Stream(ctx, req) {
		if err != nil {
			return reply, err
		}
		c.Add(&chunk)
	}
	reply = c.Reply()
	sanitize(reply.Parts)
	if reply.Stop == "" {
		err = &provider.Error{Kind: provider.KindStream, Code: "ended_without_evidence", Message: "the reply ended without a stop reason"}
	}
	return reply, err
}

func (cs *Completions) book(ctx context.Context, p *protocol.CompletionParams, result *protocol.CompletionResult, rc receipt.Request) error {
	if p.SessionID == "" {
		if rc.Key == "" {
			return nil
		}
		_, err := cs.eng.store.Commit(ctx, &persistence.Commit{Receipt: rc.With(result), AtMs: now()})
		return err
	}
	row := protocol.UsageRow{Source: completionLabel(p), Model: result.Call.Model, Calls: 1}
	if result.Call.Usage != nil {
		row.Usage = *result.Call.Usage
	} else {
		row.Unknown = 1
	}
	_, err := do(context.WithoutCancel(ctx), cs.eng, p.SessionID, func(ctx context.Context, st *state) (struct{}, error) {
		total, err := st.row.Usage.Add(row.Usage)
		if err != nil {
			return struct{}{}, err
		}
		c := st.change(persistence.Commit{
			Receipt: rc.With(result), Total: &total,
			Usage: []persistence.Usage{{Operation: "completion:" + string(protocol.NewInputID()), Row: row}},
		})
		c.TellOf(protocol.Event{Type: protocol.EventUsageUpdated, Usage: &row.Usage, Total: &total})
		c.Then(func() { st.row.Usage = total })
		return struct{}{}, st.commit(ctx, c)
	})
	return err
}

// Usage sums a ledger.
func (cs *Completions) Usage(ctx context.Context, p *protocol.UsageReadParams) (*protocol.UsageReadResult, error) {
	key := int64(0)
	if p.SessionID != "" {
		row, err := cs.eng.store.Session(ctx, p.SessionID)
		if err != nil {
			return nil, err
		}
		key = row.Key
	}
	rows, err := cs.eng.store.Usage(ctx, key)
	result := &protocol.UsageReadResult{Data: list(rows)}
	for _, r := range rows {
		sum, addErr := result.Total.Add(r.Usage)
		result.Total, err = sum, errors.Join(err, addErr)
	}
	return result, err
}
