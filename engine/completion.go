package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"lashd/engine/attachment"
	"lashd/engine/models"
	"lashd/engine/param"
	"lashd/engine/provider"
	"lashd/engine/receipt"
	"lashd/engine/structured"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Completions is the API of model calls outside turns, and of the token ledger. Its methods are
// safe for concurrent use.
type Completions struct{ eng *Engine }

// Create makes one model call outside any turn, without tools. Its tokens are added to the
// session's ledger under the label. A repetition with the same idempotency key returns the first
// reply. If the call fails nothing is stored, so a repetition calls the model again.
func (cs *Completions) Create(ctx context.Context, p *protocol.CompletionParams) (*protocol.CompletionResult, error) {
	return cs.create(ctx, "", p)
}

// create is Create for a caller that works for a turn, under which the call is traced; "" for none. It writes nothing to the turn's
// journal, so a tool attempt that makes the call is recorded, and replayed, as one.
func (cs *Completions) create(ctx context.Context, turn protocol.TurnID, p *protocol.CompletionParams) (*protocol.CompletionResult, error) {
	schema, err := structured.Schema(p.Schema)
	if err != nil {
		return nil, param.Bad("/schema", "%v", err)
	}
	if err := cmp.Or(param.CheckCompletion(p), cs.checkSession(ctx, p.SessionID)); err != nil {
		return nil, err
	}
	m, err := cs.eng.Models.Named(p.Model)
	if err != nil {
		return nil, err
	}
	m.Spec = m.Spec.WithEffort(p.Effort)
	if err := param.CheckEffort(m.Spec); err != nil {
		return nil, err
	}
	return receipt.Once(ctx, cs.eng.receipts, "completion/create", p.Key(), p, func(rc receipt.Request) (*protocol.CompletionResult, error) {
		sent, err := cs.eng.attachments().Messages(ctx, p, &m.Spec)
		if err != nil {
			return nil, err
		}
		result, err := cs.complete(ctx, m, turn, p, schema, sent)
		if err != nil {
			return nil, err
		}
		return result, cs.book(ctx, p, result, rc)
	})
}

// checkSession fails unless the session exists that records the usage, so that a reply never has to be discarded.
func (cs *Completions) checkSession(ctx context.Context, id protocol.SessionID) error {
	if id == "" {
		return nil
	}
	_, err := cs.eng.store.Session(ctx, id)
	return err
}

// complete calls the model and traces the call. A failure of the provider becomes a ProviderError.
func (cs *Completions) complete(ctx context.Context, m models.Model, turn protocol.TurnID, p *protocol.CompletionParams, schema json.RawMessage, sent attachment.Sent) (*protocol.CompletionResult, error) {
	req := &provider.Request{
		Model: m.Spec, System: structured.System(p.System, schema), Messages: sent.Messages, Choice: provider.ToolsNone, Options: p.Generation,
		Output: provider.OutputSpec{Schema: schema, JSON: schema != nil}, Contents: sent.Contents, DenyURLs: cs.eng.DenyURLs,
		Scope: provider.Scope{RequestID: string(protocol.NewInputID())},
	}
	scope, body := trace.Record{SessionID: p.SessionID, TurnID: turn}, trace.Completion{Label: completionLabel(p), Model: m.Spec.ID}
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
	reply.Usage = m.Price.With(reply.Usage)
	msg := reply.Message()
	call := callRecord(1, m.Spec, &reply, time.Since(began))
	body.Record = &call
	cs.eng.Trace.Add(trace.ModelCompleted, scope, body)
	result := &protocol.CompletionResult{Message: msg, Text: msg.Answer(), Stop: reply.Stop, Call: call}
	result.Value, result.Problem = structured.Of(req.Output, &reply)
	if schema != nil && result.Value == nil {
		result.Problem = cmp.Or(result.Problem, "the reply stopped early: "+string(reply.Stop))
	}
	return result, nil
}

// completionLabel returns the name under which ledger and trace show the call; "completion" by
// default.
func completionLabel(p *protocol.CompletionParams) string { return cmp.Or(p.Label, "completion") }

// collect reads the whole reply of the model. A panic of the provider becomes an error of the call,
// and a stream without a stop reason counts as broken off.
func (cs *Completions) collect(ctx context.Context, m models.Model, req *provider.Request) (reply provider.Reply, err error) {
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
	provider.Sanitize(reply.Parts)
	if reply.Stop == "" {
		err = &provider.Error{Kind: provider.KindStream, Code: "ended_without_evidence", Message: "the reply ended without a stop reason"}
	}
	return reply, err
}

// book commits the receipt of a call, and its usage if the request names a session. The usage is
// committed even if the client has cancelled, because the tokens are spent.
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

// Usage returns the rows of a session's ledger and their sum, or those of the whole daemon if the
// request names no session.
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
