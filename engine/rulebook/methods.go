package rulebook

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"time"

	"lashd/engine/approval"
	"lashd/engine/param"
	"lashd/engine/receipt"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Sessions is the part of the engine that knows sessions.
type Sessions interface {
	// SessionRules returns the workspace of a session, its approval settings, and its answers.
	SessionRules(ctx context.Context, id protocol.SessionID) (cwd string, a protocol.ApprovalConfig, answers []approval.Answer, err error)
	// Policies returns the policies that judge calls of a session outside a turn.
	Policies(ctx context.Context, id protocol.SessionID) ([]approval.Policy, error)
	// SetApproval replaces the approval settings of a session, from its next turn on.
	SetApproval(ctx context.Context, id protocol.SessionID, a protocol.ApprovalConfig) error
	// ForgetAnswers removes answers of a session.
	ForgetAnswers(ctx context.Context, id protocol.SessionID, is func(approval.Answer) bool) error
	// RequestOf returns a call of a session as it would be judged, with the answers that apply to it.
	RequestOf(ctx context.Context, id protocol.SessionID, name string, args json.RawMessage) (*approval.Request, approval.Answers, error)
	// NewApproval returns the approval settings of a new session in a directory. confines means that the system has a sandbox.
	NewApproval(cwd string) (a protocol.ApprovalConfig, confines bool)
}

// Methods is the API of approval rules: clients list, try, add and remove them. Its methods are safe for concurrent use.
type Methods struct {
	Book     *Book
	Sessions Sessions
	Receipts *receipt.Flights
}

// List returns the rules of the user, of the workspace and of the session that the request names.
func (m *Methods) List(ctx context.Context, p *protocol.RuleListParams) (*protocol.RuleListResult, error) {
	cwd, own, err := m.place(ctx, p.SessionID, p.Cwd)
	if err != nil {
		return nil, err
	}
	all, problems, err := m.Book.List(ctx, cwd)
	return &protocol.RuleListResult{Data: append(all, own...), Problems: problems}, err
}

// DeniedHosts returns the hosts that rules of a session deny, for any tool.
func (m *Methods) DeniedHosts(ctx context.Context, id protocol.SessionID) ([]string, error) {
	policies, err := m.Sessions.Policies(ctx, id)
	return approval.DeniedHosts(policies), err
}

// place returns the workspace of a request, and the rules of its session. A directory must be absolute.
func (m *Methods) place(ctx context.Context, id protocol.SessionID, cwd string) (string, []protocol.ListedRule, error) {
	if id != "" {
		cwd, a, answers, err := m.Sessions.SessionRules(ctx, id)
		return cwd, ofSession(id, a.Rules, answers), err
	}
	if cwd != "" && !filepath.IsAbs(cwd) {
		return "", nil, param.Bad("/cwd", "must be an absolute path")
	}
	return param.Where(cwd), nil, nil
}

// Test judges a call without making it.
func (m *Methods) Test(ctx context.Context, p *protocol.RuleTestParams) (*protocol.RuleTestResult, error) {
	name, args, err := callOf(p)
	if err != nil {
		return nil, err
	}
	if p.SessionID != "" {
		q, answers, err := m.Sessions.RequestOf(ctx, p.SessionID, name, args)
		if err != nil {
			return nil, err
		}
		return result(q, answers), nil
	}
	if !filepath.IsAbs(p.Cwd) {
		return nil, param.Bad("/cwd", "must be an absolute path, or name a session in sessionId")
	}
	cwd := param.Where(p.Cwd)
	a, confines := m.Sessions.NewApproval(cwd)
	q, err := m.Book.trial(cwd, a, confines, name, args)
	if err != nil {
		return nil, param.Bad("/tool", "%v", err)
	}
	return result(q, approval.Answers{}), nil
}

// Add stores a rule.
func (m *Methods) Add(ctx context.Context, client protocol.ClientID, p *protocol.RuleAddParams) (*protocol.RuleAddResult, error) {
	if err := param.CheckRule("/rule", p.Rule); err != nil {
		return nil, err
	}
	return once(ctx, m, "rule/add", p, func() (*protocol.RuleAddResult, error) {
		l, err := m.add(ctx, client, p)
		return &protocol.RuleAddResult{Rule: l}, err
	})
}

// once answers a request, and stores the result for its repetitions.
func once[T any, P receipt.Result[T]](ctx context.Context, m *Methods, method string, params interface{ Key() string }, f func() (*T, error)) (*T, error) {
	return receipt.Once[T, P](ctx, m.Receipts, method, params.Key(), params, func(rc receipt.Request) (*T, error) {
		result, err := f()
		if err != nil || rc.Key == "" {
			return result, err
		}
		_, err = m.Book.store.Commit(context.WithoutCancel(ctx), &persistence.Commit{Receipt: rc.With(result), AtMs: time.Now().UnixMilli()})
		return result, err
	})
}

// add stores a rule at its level.
func (m *Methods) add(ctx context.Context, client protocol.ClientID, p *protocol.RuleAddParams) (protocol.ListedRule, error) {
	cwd, _, err := m.place(ctx, p.SessionID, p.Cwd)
	switch {
	case err != nil:
		return protocol.ListedRule{}, err
	case p.Level == protocol.LevelUser:
		return m.Book.addUser(ctx, p.Rule)
	case p.Level == protocol.LevelWorkspace && cwd == "":
		return protocol.ListedRule{}, param.Bad("/cwd", "is missing: a rule of a workspace needs cwd or sessionId")
	case p.Level == protocol.LevelWorkspace:
		return m.Book.addWorkspace(ctx, cwd, p.Rule, string(client))
	case p.Level != protocol.LevelSession:
		return protocol.ListedRule{}, param.NotOneOf("/level", []protocol.RuleLevel{protocol.LevelUser, protocol.LevelWorkspace, protocol.LevelSession})
	case p.SessionID == "":
		return protocol.ListedRule{}, param.Bad("/sessionId", "is missing: a rule of level session needs it")
	}
	_, a, _, err := m.Sessions.SessionRules(ctx, p.SessionID)
	if err != nil {
		return protocol.ListedRule{}, err
	}
	a.Rules = append(slices.Clip(a.Rules), p.Rule)
	return ofSession(p.SessionID, []protocol.ApprovalRule{p.Rule}, nil)[0], m.Sessions.SetApproval(ctx, p.SessionID, a)
}

// Remove removes a rule or an answer.
func (m *Methods) Remove(ctx context.Context, p *protocol.RuleRemoveParams) (*protocol.RuleRemoveResult, error) {
	return once(ctx, m, "rule/remove", p, func() (*protocol.RuleRemoveResult, error) {
		l, err := m.remove(ctx, p)
		return &protocol.RuleRemoveResult{Rule: l}, err
	})
}

// remove removes a rule where it is kept: in the settings of a session, among its answers, or in the book.
func (m *Methods) remove(ctx context.Context, p *protocol.RuleRemoveParams) (protocol.ListedRule, error) {
	if p.SessionID == "" {
		return m.Book.remove(ctx, p.ID)
	}
	_, a, answers, err := m.Sessions.SessionRules(ctx, p.SessionID)
	if err != nil {
		return protocol.ListedRule{}, err
	}
	own := ofSession(p.SessionID, a.Rules, answers)
	at := slices.IndexFunc(own, func(l protocol.ListedRule) bool { return l.ID == p.ID })
	switch {
	case at < 0:
		return m.Book.remove(ctx, p.ID)
	case own[at].From == fromSettings:
		a.Rules = slices.DeleteFunc(slices.Clone(a.Rules), func(r protocol.ApprovalRule) bool { return r == own[at].Rule })
		return own[at], m.Sessions.SetApproval(ctx, p.SessionID, a)
	}
	return own[at], m.Sessions.ForgetAnswers(ctx, p.SessionID, func(a approval.Answer) bool {
		return ofSession(p.SessionID, nil, []approval.Answer{a})[0].ID == p.ID
	})
}
