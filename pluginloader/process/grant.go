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

// grant is what the plugin may ask of lashd while one of its calls runs. Its ID is random and part
// of the call. Every request of the plugin must contain it. So a plugin cannot act outside its
// calls, and it cannot use the rights of another session's call, even though one process serves all
// sessions.
//
// A grant is the upper limit: the manifest must also declare the capability that a request needs.
// The engine then checks each request against the rights of the session.
type grant struct {
	id     string
	ctx    context.Context // ends with the call
	host   plugin.Capabilities
	tool   tool.Host       // host of a tool call; nil: none
	cell   plugin.CellHost // host of a code cell; nil: none
	state  *artifacts      // of a call that writes or restores state; nil: none
	stored *artifactNames  // artifacts that a tool call has stored
	clock  *clock          // time limit of the call
	life   *life           // the process that has the grant
	seat   *seat           // the session in that process
	found  string          // text for the model about files that the call changed and that start programs; valid when the call has ended
	task   *registered     // a task that the process runs by itself; nil: the grant belongs to a call

	told chan struct{} // closed once the cancellation is sent, or the call has ended; nil: the grant belongs to a task
}

// settle waits, if the call of the grant was cancelled, until lashd has sent the plugin the cancellation. The plugin would otherwise
// take the answer to its request for an ordinary failure, and continue.
func (g *grant) settle() {
	if g != nil && g.told != nil && g.ctx.Err() != nil {
		<-g.told
	}
}

// artifactNames is the set of artifacts that a call has stored. It is safe for concurrent use.
type artifactNames struct {
	mu   sync.Mutex
	refs map[protocol.Digest]bool
}

// add records an artifact that the call stored.
func (a *artifactNames) add(d protocol.Digest) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refs[d] = true
}

// has reports whether the call stored an artifact.
func (a *artifactNames) has(d protocol.Digest) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refs[d]
}

// grants are the grants of one process. The methods are safe for concurrent use.
type grants struct {
	mu   sync.Mutex
	live map[string]*grant // by ID
	over bool              // the process has ended; new grants do not work
}

// newGrants returns an empty set, for a new process.
func newGrants() *grants { return &grants{live: map[string]*grant{}} }

// give makes g valid until end is called. It sets g.id and g.ctx. The context marks requests as
// coming from a loaded plugin, and from a sandbox if there is one, which limits what they can pass
// on.
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

// errOver rejects requests whose call has ended.
var errOver = errors.New("the call that the grant belongs to has ended")

// find returns a valid grant; nil: none has the ID.
func (all *grants) find(id string) *grant {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.live[id]
}

// revoke ends all grants, now and later.
func (all *grants) revoke() {
	all.mu.Lock()
	defer all.mu.Unlock()
	all.over = true
	clear(all.live)
}

// empty reports whether the grant allows nothing, so the call needs no ID.
func (g *grant) empty() bool {
	return g.host == plugin.Capabilities{} && g.tool == nil && g.cell == nil && g.state == nil
}
