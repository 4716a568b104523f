package pluginloader

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lashd/persistence"
	"lashd/pluginloader/content"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
)

// Kinds of facts, and what they say.
const (
	// Kinds of stored facts.
	factGood  = "good"    // by directory: the contents that ran last
	factTrust = "trusted" // by trustKey: contents that a person approved
	factOff   = "off"     // by directory: the plugin is disabled
)

// good describes contents of a directory that have run. They run again after a restart.
type good struct {
	Name      string              `json:"name"`
	Digest    protocol.Digest     `json:"digest"`
	Signature string              `json:"signature"`       // of the directory when it was copied
	Known     map[string]mcp.List `json:"known,omitempty"` // tool lists of MCP servers
}

// facts are the stored decisions and results, with a copy in memory. They are written to the
// database first, so a decision that the user sees as done survives a crash. They are safe for
// concurrent use.
type facts struct {
	memory Memory

	mu      sync.Mutex
	good    map[string]good
	trusted map[string]content.Approval // by trustKey
	off     map[string]bool             // by directory
}

// trustKey returns the key under which an approval is stored. It contains every field, so two
// approvals never overwrite each other.
func trustKey(a content.Approval) string {
	return fmt.Sprintf("%s\n%s\n%d %d %s", a.At, a.Dir, a.Dev, a.Ino, a.Digest)
}

// load reads all facts from the database. It is called once, before any other method.
func (f *facts) load(ctx context.Context) error {
	all, err := f.memory.PluginFacts(ctx)
	if err != nil {
		return err
	}
	f.good, f.trusted, f.off = map[string]good{}, map[string]content.Approval{}, map[string]bool{}
	for _, fact := range all {
		if err := f.learn(fact); err != nil {
			return fmt.Errorf("plugin fact %s %s: %w", fact.Kind, fact.Key, err)
		}
	}
	return nil
}

// learn applies a fact to the copy in memory.
func (f *facts) learn(fact persistence.PluginFact) error {
	switch fact.Kind {
	case factGood:
		return learn(f.good, fact)
	case factTrust:
		return learn(f.trusted, fact)
	case factOff:
		return learn(f.off, fact)
	}
	return nil
}

// learn decodes a fact into the map of its kind, or removes it if it has no value.
func learn[T any](into map[string]T, fact persistence.PluginFact) error {
	if fact.Body == nil {
		delete(into, fact.Key)
		return nil
	}
	var v T
	if err := json.Unmarshal(fact.Body, &v); err != nil {
		return err
	}
	into[fact.Key] = v
	return nil
}

// store writes facts to the database and then to memory. After an error, memory is unchanged.
func (f *facts) store(ctx context.Context, facts ...persistence.PluginFact) error {
	if len(facts) == 0 {
		return nil
	}
	if _, err := f.memory.Commit(ctx, &persistence.Commit{Facts: facts, AtMs: time.Now().UnixMilli()}); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fact := range facts {
		if err := f.learn(fact); err != nil {
			return err
		}
	}
	return nil
}

// fact returns a fact to store. Without a value it removes the fact.
func fact(kind, key string, value any) persistence.PluginFact {
	if value == nil {
		return persistence.PluginFact{Kind: kind, Key: key}
	}
	body, err := json.Marshal(value)
	if err != nil {
		panic("encode a plugin fact: " + err.Error())
	}
	return persistence.PluginFact{Kind: kind, Key: key, Body: body}
}

// ranLast returns the contents of a directory that ran last.
func (f *facts) ranLast(dir string) (good, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, ok := f.good[dir]
	return g, ok
}

// under returns the directories in a root from which something ran.
func (f *facts) under(root string) (dirs []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for dir := range f.good {
		if filepath.Dir(dir) == root {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// All implements content.Approvals.
func (f *facts) All(context.Context) ([]content.Approval, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.trusted)), nil
}

// Add implements content.Approvals.
func (f *facts) Add(ctx context.Context, a content.Approval) error {
	return f.store(ctx, fact(factTrust, trustKey(a), a))
}

// Remove implements content.Approvals.
func (f *facts) Remove(ctx context.Context, a content.Approval) error {
	return f.store(ctx, fact(factTrust, trustKey(a), nil))
}

// disabled reports whether the user disabled the plugin in a directory.
func (f *facts) disabled(dir string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.off[dir]
}

// kept returns the digests of copies that may be needed after a restart. All other closed copies
// are removed.
func (f *facts) kept() map[protocol.Digest]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[protocol.Digest]bool{}
	for _, g := range f.good {
		all[g.Digest] = true
	}
	return all
}
