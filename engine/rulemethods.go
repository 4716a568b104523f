package engine

import (
	"context"
	"encoding/json"

	"lashd/engine/approval"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// ruleHost implements rulebook.Sessions.
type ruleHost struct{ eng *Engine }

// SessionRules implements rulebook.Sessions.
func (h ruleHost) SessionRules(ctx context.Context, id protocol.SessionID) (cwd string, a protocol.ApprovalConfig, answers []approval.Answer, err error) {
	_, err = do(ctx, h.eng, id, func(_ context.Context, st *state) (struct{}, error) {
		cwd, a, answers = st.row.Cwd, st.row.Config.Approval, st.decisions.standing
		return struct{}{}, nil
	})
	return cwd, a, answers, err
}

// Policies implements rulebook.Sessions.
func (h ruleHost) Policies(ctx context.Context, id protocol.SessionID) ([]approval.Policy, error) {
	s, err := h.eng.store.Session(ctx, id)
	return h.eng.rules.Policies(protocol.Policy{Approval: s.Config.Approval, Cwd: s.Cwd}, s.Authority.Ceiling, nil), err
}

// SetApproval implements rulebook.Sessions.
func (h ruleHost) SetApproval(ctx context.Context, id protocol.SessionID, a protocol.ApprovalConfig) error {
	_, err := h.eng.Sessions.Configure(ctx, &protocol.SessionConfigureParams{SessionID: id, Approval: &a})
	return err
}

// ForgetAnswers implements rulebook.Sessions.
func (h ruleHost) ForgetAnswers(ctx context.Context, id protocol.SessionID, is func(approval.Answer) bool) error {
	_, err := do(ctx, h.eng, id, func(ctx context.Context, st *state) (struct{}, error) {
		c := st.change(persistence.Commit{})
		st.decisions.standing.Forget(c, is)
		return struct{}{}, st.commit(ctx, c)
	})
	return err
}

// RequestOf implements rulebook.Sessions.
func (h ruleHost) RequestOf(ctx context.Context, id protocol.SessionID, name string, args json.RawMessage) (*approval.Request, approval.Answers, error) {
	l, err := h.eng.lend(ctx, id)
	if err != nil {
		return nil, approval.Answers{}, err
	}
	defer l.release()
	d, s, err := l.call(&protocol.ToolCallParams{SessionID: id, Name: name, Args: args}, receipt.Request{})
	if err != nil {
		return nil, approval.Answers{}, err
	}
	q := d.hooks.judge.callToJudge(s)
	answers, err := do(ctx, h.eng, id, func(ctx context.Context, st *state) (approval.Answers, error) {
		return st.decisions.standingFor(ctx, q.Policies)
	})
	return q, answers, err
}

// NewApproval implements rulebook.Sessions.
func (h ruleHost) NewApproval(cwd string) (a protocol.ApprovalConfig, confines bool) {
	cfg, _ := h.eng.Sessions.defaults(cwd) // without a model there are rules, too
	return cfg.Approval, h.eng.Sandbox.Default(cwd).Confines()
}
