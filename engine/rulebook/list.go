package rulebook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"lashd/engine/approval"
	"lashd/engine/param"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Where a listed rule comes from.
const (
	fromConfig   = "config.toml"
	fromAnswer   = "answer"
	fromStore    = "lashd"
	fromSettings = "settings"
)

// id returns the id of a rule: its level, where it is kept, and a digest. Remove finds the rule by it.
func id(level protocol.RuleLevel, parts ...string) string {
	digest := protocol.DigestOf([]byte(strings.Join(append(parts, string(level)), "\x00")))
	return "rul_" + string(level[0]) + string(digest)[:15]
}

// List returns the rules of the user and, if cwd is not empty, of a workspace. It also returns the problems of their files.
func (b *Book) List(ctx context.Context, cwd string) (all []protocol.ListedRule, problems []string, err error) {
	all = []protocol.ListedRule{}
	if b.user != nil {
		rules, _, problem := b.user.Rules()
		for _, r := range rules {
			all = append(all, protocol.ListedRule{ID: id(protocol.LevelUser, encode(r)), Level: protocol.LevelUser, Rule: r, From: fromConfig})
		}
		if problem != "" {
			problems = append(problems, problem)
		}
	}
	if cwd == "" {
		return all, problems, nil
	}
	rows, err := b.store.Approvals(ctx, cwd)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		all = append(all, listed(row))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.fileLocked(cwd)
	for _, r := range f.rules {
		all = append(all, protocol.ListedRule{Level: protocol.LevelWorkspace, Rule: r, From: Name})
	}
	for _, l := range b.layouts(cwd) {
		for _, r := range l.Rules {
			all = append(all, protocol.ListedRule{Level: l.Level, Rule: r, From: l.Name})
		}
	}
	return all, append(problems, f.problems...), nil
}

// listed returns a row of the store as clients see it.
func listed(row persistence.Approval) protocol.ListedRule {
	l := protocol.ListedRule{ID: id(protocol.LevelWorkspace, row.Cwd, row.Tool, row.Subject), Level: protocol.LevelWorkspace, From: fromStore, By: row.By}
	if row.Tool != "" {
		l.From, l.Exact, l.About, l.Rule = fromAnswer, true, approval.StoredAnswer(row).About, protocol.ApprovalRule{Tool: row.Tool, Action: protocol.ApproveAllow}
	} else if all := rulesOf([]persistence.Approval{row}); len(all) > 0 {
		l.Rule = all[0]
	}
	return l
}

// addUser stores a rule of the user.
func (b *Book) addUser(ctx context.Context, r protocol.ApprovalRule) (protocol.ListedRule, error) {
	l := protocol.ListedRule{ID: id(protocol.LevelUser, encode(r)), Level: protocol.LevelUser, Rule: r, From: fromConfig}
	if b.user == nil {
		return l, param.Bad("/level", "must not be user: this daemon has no config.toml")
	}
	if err := b.user.Add(ctx, r); err != nil {
		return l, param.Bad("/rule", "cannot be stored: %v", err)
	}
	return l, nil
}

// addWorkspace stores a rule of a workspace, in the name of a client.
func (b *Book) addWorkspace(ctx context.Context, cwd string, r protocol.ApprovalRule, by string) (protocol.ListedRule, error) {
	row := persistence.Approval{Cwd: cwd, Subject: encode(r), By: by}
	return listed(row), b.commit(ctx, row)
}

// remove removes a rule of the user or of a workspace. It fails with a param.Error if none has the id.
func (b *Book) remove(ctx context.Context, which string) (protocol.ListedRule, error) {
	users, _, err := b.List(ctx, "")
	if err != nil {
		return protocol.ListedRule{}, err
	}
	if i := slices.IndexFunc(users, func(l protocol.ListedRule) bool { return l.ID == which }); i >= 0 {
		if err := b.user.Remove(ctx, users[i].Rule); err != nil {
			return users[i], param.Bad("/ruleId", "cannot be removed: %v", err)
		}
		return users[i], nil
	}
	rows, err := b.store.Approvals(ctx)
	if err != nil {
		return protocol.ListedRule{}, err
	}
	for _, row := range rows {
		if l := listed(row); l.ID == which {
			row.Remove = true
			return l, b.commit(ctx, row)
		}
	}
	return protocol.ListedRule{}, param.Bad("/ruleId", "names no rule that applies here; rule/list has the rules")
}

// commit stores or removes a row.
func (b *Book) commit(ctx context.Context, row persistence.Approval) error {
	_, err := b.store.Commit(ctx, &persistence.Commit{Approve: []persistence.Approval{row}, AtMs: time.Now().UnixMilli()})
	if err == nil {
		b.Apply([]persistence.Approval{row})
	}
	return err
}

// ofSession returns the rules and answers of a session as clients see them. An answer without a rule covers exactly one call of its
// tool.
func ofSession(session protocol.SessionID, rules []protocol.ApprovalRule, answers []approval.Answer) (all []protocol.ListedRule) {
	for _, r := range rules {
		all = append(all, protocol.ListedRule{ID: id(protocol.LevelSession, string(session), fromSettings, encode(r)), Level: protocol.LevelSession, Rule: r, From: fromSettings})
	}
	for _, a := range answers {
		l := protocol.ListedRule{ID: id(protocol.LevelSession, string(session), fromAnswer, encode(a)), Level: protocol.LevelSession, From: fromAnswer}
		if l.Exact = a.Rule == nil; l.Exact {
			l.About, l.Rule = a.About, protocol.ApprovalRule{Tool: a.Tool, Action: protocol.ApproveAllow}
		} else {
			l.Rule = *a.Rule
		}
		all = append(all, l)
	}
	return all
}

// encode returns the JSON of one of our own types, which cannot fail.
func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return string(b)
}
