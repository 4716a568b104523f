package process

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"lashd/engine/authority"
	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// grant is what the plugin may do while one of its calls runs. Its id, which cannot be guessed, is in the call and has to be
// in whatever the plugin then asks of lashd.
type grant struct {
	id     string
	ctx    context.Context // ends with the call
	host   plugin.Capabilities
	tool   tool.Host      // of a tool's call
	state  *artifacts     // of a call about state
	stored *artifactNames // that a tool's call has stored
	clock  *clock         // of the call
	life   *life          // of the process that was granted it
	seat   *seat          // of the session
	task   *registered    // at which the process works by itself; nil: it is a call
}

// artifactNames are the artifacts that a call has stored.
type artifactNames struct {
	mu   sync.Mutex
	refs map[protocol.Digest]bool
}

func (a *artifactNames) add(d protocol.Digest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refs[d] = true
}

func (a *artifactNames) has(d protocol.Digest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refs[d]
}

// grants are those of a life.
type grants struct {
	mu   sync.Mutex
	live map[string]*grant
	over bool
}

func newGrants() *grants { return &grants{live: map[string]*grant{}} }

// give makes g good until the function is called that comes with it.
func (all *grants) give(ctx context.Context, g *grant) (end func()) {
	ctx, cancel := context.WithCancelCause(authority.FromLoaded(ctx))
	if g.life.config.sandboxed() {
		ctx = authority.FromSandbox(ctx)
	}
	g.id, g.ctx = rand.Text(), ctx
	all.mu.Lock()
	defer all.mu.Unlock()
	if !all.over {
		all.live[g.id] = g
	}
	return func() {
		all.mu.Lock()
		delete(all.live, g.id)
		all.mu.Unlock()
		cancel(errOver)
	}
}

var errOver = errors.New("the call that granted it has ended")

// find gives a grant that is good; nil: there is none of that id.
func (all *grants) find(id string) *grant {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.live[id]
}

// revoke ends all of them.
func (all *grants) revoke() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.over = true
	clear(all.live)
}

// empty tells whether nothing is granted.
func (g *grant) empty() bool {
	return g.host == plugin.Capabilities{} && g.tool == nil && g.state == nil
}
