// Package rulebook keeps the approval rules that belong to no session: those of the user in config.toml, and those of a workspace in
// the store and in its file .agents/rules.toml, and those of layouts of other agents. The engine asks it for the compiled rules of a directory before it judges a call.
//
// A Book is safe for concurrent use. It notices changes of both files by itself, and the engine reports commits to the store.
package rulebook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"lashd/engine/approval"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// UserRules are the rules in config.toml. The command line implements it.
type UserRules interface {
	// Rules returns the rules that the file has now, and a number that changes with them. If the file has an error, the rules are
	// those before it, and problem is a sentence about it. It is called for every call of a tool, so it reads the file only after
	// a change.
	Rules() (rules []protocol.ApprovalRule, version int, problem string)
	// Add appends a rule to the file and keeps everything else in it.
	Add(context.Context, protocol.ApprovalRule) error
	// Remove removes a rule from the file and keeps everything else in it.
	Remove(context.Context, protocol.ApprovalRule) error
}

// LayoutRules are the rules of layouts of other agents, such as the settings of Claude Code. A UserRules may implement it, too.
type LayoutRules interface {
	// LayoutRules returns the rules that apply in a directory. It is called for every call of a tool, and returns the same lists
	// until they change.
	LayoutRules(cwd string) []Layout
}

// Layout has the rules of one layout. They only ask or deny.
type Layout struct {
	Dir   string // relative paths begin in it
	Name  string // where the rules are kept, such as .claude/settings.json
	Level protocol.RuleLevel
	Rules []protocol.ApprovalRule
}

// Store is the part of the store that has the rules of workspaces.
type Store interface {
	Approvals(ctx context.Context, cwd ...string) ([]persistence.Approval, error)
	Commit(ctx context.Context, c *persistence.Commit) (persistence.Result, error)
}

// maxAge is how long compiled rules are used without looking at the links in their paths again.
const maxAge = 2 * time.Second

// maxCompiled is the number of compiled lists in memory. The oldest are compiled again when needed.
const maxCompiled = 256

// Book has the rules of the user and of all workspaces.
type Book struct {
	store Store
	user  UserRules // nil: there are none

	mu       sync.Mutex
	loaded   bool
	stored   map[string][]persistence.Approval // rules in the store by workspace, oldest first
	files    map[string]*file                  // .agents/rules.toml by workspace
	compiled map[key]compiled
}

// key identifies a list of rules in memory. Lists are never changed in place.
type key struct {
	cwd   string
	level protocol.RuleLevel
	owner string
	first *protocol.ApprovalRule
	n     int
}

// compiled is a compiled list. It keeps the list alive, so that no other one gets its address.
type compiled struct {
	rules *approval.Rules
	list  []protocol.ApprovalRule
	at    time.Time
}

// New returns a book. user may be nil. Load must be called before the first call is judged.
func New(store Store, user UserRules) *Book {
	return &Book{store: store, user: user, stored: map[string][]persistence.Approval{}, files: map[string]*file{}, compiled: map[key]compiled{}}
}

// Load reads the rules of all workspaces from the store, once.
func (b *Book) Load(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.loaded {
		return nil
	}
	rows, err := b.store.Approvals(ctx)
	if err != nil {
		return fmt.Errorf("read the rules of workspaces: %w", err)
	}
	for _, row := range rows {
		b.applyLocked(row)
	}
	b.loaded = true
	return nil
}

// Apply records rows that were committed to the store. Answers about exactly one call are skipped.
func (b *Book) Apply(rows []persistence.Approval) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, row := range rows {
		b.applyLocked(row)
	}
}

// applyLocked records one row. It replaces the list of the workspace, which others may still read.
func (b *Book) applyLocked(row persistence.Approval) {
	if row.Tool != "" {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(b.stored[row.Cwd]), func(r persistence.Approval) bool { return r.Subject == row.Subject })
	if !row.Remove {
		rest = append(rest, row)
	}
	b.stored[row.Cwd] = rest
	delete(b.files, row.Cwd) // the next For reads both again
}

// For returns the compiled rules that limit calls under a policy: its own, and those of the user and of the workspace cwd. owner
// names the policy in a sentence.
func (b *Book) For(cwd, owner string, own []protocol.ApprovalRule) []*approval.Rules {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.fileLocked(cwd)
	all := []*approval.Rules{
		b.compileLocked(cwd, protocol.LevelSession, owner, own),
		b.compileLocked(cwd, protocol.LevelWorkspace, "the workspace", f.stored),
		b.compileLocked(cwd, protocol.LevelWorkspace, f.owner(), f.rules),
	}
	if b.user != nil {
		rules, _, _ := b.user.Rules()
		all = append(all, b.compileLocked(cwd, protocol.LevelUser, "the user", rules))
	}
	for _, l := range b.layouts(cwd) {
		all = append(all, b.compileLocked(l.Dir, l.Level, l.Name, l.Rules))
	}
	return slices.DeleteFunc(all, func(rs *approval.Rules) bool { return rs == nil })
}

// layouts returns the rules of layouts in a directory.
func (b *Book) layouts(cwd string) []Layout {
	if from, ok := b.user.(LayoutRules); ok && cwd != "" {
		return from.LayoutRules(cwd)
	}
	return nil
}

// compileLocked returns the compiled form of a list, from memory if its paths lead where they led.
func (b *Book) compileLocked(cwd string, level protocol.RuleLevel, owner string, list []protocol.ApprovalRule) *approval.Rules {
	if len(list) == 0 {
		return nil
	}
	k, now := key{cwd, level, owner, &list[0], len(list)}, time.Now()
	c, ok := b.compiled[k]
	if ok && now.Sub(c.at) < maxAge {
		return c.rules
	}
	if !ok && len(b.compiled) >= maxCompiled {
		clear(b.compiled)
	}
	if c.at = now; !ok || !c.rules.Current() {
		c.rules, c.list = approval.Compile(cwd, level, owner, list), list
	}
	b.compiled[k] = c
	return c.rules
}

// rulesOf decodes rows of the store.
func rulesOf(rows []persistence.Approval) (rules []protocol.ApprovalRule) {
	for _, row := range rows {
		var r protocol.ApprovalRule
		if json.Unmarshal([]byte(row.Subject), &r) == nil {
			rules = append(rules, r)
		}
	}
	return rules
}
