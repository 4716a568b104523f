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
	factGood  = "good"    // by directory: the content that ran last
	factTrust = "trusted" // by directory and digest: a person has approved that content
	factOff   = "off"     // by directory: a person has switched the plugin off
)

// good is content of a directory that has run.
type good struct {
	Name      string              `json:"name"`
	Digest    protocol.Digest     `json:"digest"`
	Signature string              `json:"signature"` // of the directory when it was copied
	Known     map[string]mcp.List `json:"known,omitempty"`
}

// facts are what is remembered of plugins, as it is stored.
type facts struct {
	memory Memory

	mu      sync.Mutex
	good    map[string]good
	trusted map[string]content.Approval // by trustKey
	off     map[string]bool
}

func trustKey(a content.Approval) string {
	return fmt.Sprintf("%s\n%s\n%d %d %s", a.At, a.Dir, a.Dev, a.Ino, a.Digest)
}

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

// store makes facts durable, and then remembers them.
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

// fact is one that holds; without a value it is one that does not hold any more.
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

func (f *facts) ranLast(dir string) (good, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g, ok := f.good[dir]
	return g, ok
}

// under are the directories of a root of which something ran last.
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

func (f *facts) disabled(dir string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.off[dir]
}

// kept are the digests that something may need again.
func (f *facts) kept() map[protocol.Digest]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[protocol.Digest]bool{}
	for _, g := range f.good {
		all[g.Digest] = true
	}
	return all
}
