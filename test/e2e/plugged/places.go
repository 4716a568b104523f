package main

import (
	"context"
	"strings"
	"sync"

	"lashd/engine/plugin"
	"lashd/engine/turn"
)

// places is a code executor whose state is the list of visited places.
type places struct {
	mu           sync.Mutex
	seen, stored string
}

// Execute implements plugin.CodeExecutor.
func (p *places) Execute(_ context.Context, call *plugin.CodeCall, _ plugin.CellHost) (turn.CellReply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = strings.TrimSpace(p.seen + " " + call.Source)
	return turn.CellReply{Printed: "been to " + p.seen}, nil
}

// Dirty implements plugin.ExecutionState.
func (p *places) Dirty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen != p.stored
}

// Snapshot implements plugin.ExecutionState.
func (p *places) Snapshot(context.Context) (plugin.ExecutionChange, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return plugin.ExecutionChange{Changed: map[string][]byte{"seen": []byte(p.seen)}}, nil
}

// Stored implements plugin.ExecutionState.
func (p *places) Stored() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored = p.seen
}

// Restore implements plugin.ExecutionState.
func (p *places) Restore(_ context.Context, values map[string][]byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = string(values["seen"])
	p.stored = p.seen
	return nil
}
