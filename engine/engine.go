// Package engine is the runtime of lashd: sessions that live in a store, each with one owner goroutine; turns that run
// beside them and survive the process; decisions, queues and observers. It can be embedded without the daemon. All
// methods of Engine are safe for concurrent use and wait until Run serves. A method that changes something returns when
// the change is durable.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tip"
	"lashd/persistence"
	"lashd/rpc/protocol"

	"github.com/google/uuid"
)

// Config is what an Engine needs. The caller owns the store and runs it for longer than the engine.
type Config struct {
	Store    *persistence.Store
	Host     *plugin.Host
	Models   []Model         // the first is the default
	Defaults protocol.Config // of new sessions; Driver and Budget are required
	Log      *slog.Logger
	Trace    *Trace        // nil: no trace
	StateDir string        // no tool may touch it
	Idle     time.Duration // after which a session nobody uses leaves memory; default ten minutes
}

// Model is a model that sessions can use under a name.
type Model struct {
	Name     string
	Spec     protocol.ModelSpec
	Provider provider.Provider
}

// Engine runs sessions.
type Engine struct {
	Config
	store       *persistence.Store
	incarnation string // of this run: turns of another one are taken over before they are driven
	once        singleflight.Group
	presence    presence
	turnEnded   tip.Tip // some turn ended, or some session became idle
	turns       sync.WaitGroup
	actors      sync.WaitGroup

	running  chan struct{} // closed once Run serves
	mu       sync.Mutex
	ctx      context.Context // of the actors; set before running is closed
	sessions map[protocol.SessionID]*session
	active   int // turns running
}

// New makes an engine that does nothing until Run is called.
func New(cfg Config) *Engine {
	if cfg.Idle == 0 {
		cfg.Idle = 10 * time.Minute
	}
	return &Engine{
		Config: cfg, store: cfg.Store, incarnation: uuid.NewString(),
		running: make(chan struct{}), sessions: map[protocol.SessionID]*session{}, presence: presence{clients: map[protocol.ClientID]*clientState{}},
	}
}

// Run goes on with what an earlier run left unfinished, and serves until ctx is done. Then it stops every turn where
// it can be resumed, waits for them and returns; nothing is left running.
func (e *Engine) Run(ctx context.Context) error {
	actors, stopActors := context.WithCancel(context.WithoutCancel(ctx))
	defer stopActors()
	e.mu.Lock()
	e.ctx = actors
	e.mu.Unlock()
	close(e.running)
	err := e.recover(ctx)
	if err == nil {
		<-ctx.Done()
	}
	e.interruptAll()
	e.turns.Wait()
	stopActors()
	e.actors.Wait()
	return err
}

// recover loads every session that has a turn which has not ended; loading it drives the turn on.
func (e *Engine) recover(ctx context.Context) error {
	ids, err := e.store.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		_, err := do(ctx, e, id, func(context.Context, *state) (struct{}, error) { return struct{}{}, nil })
		if err != nil && !errors.Is(err, context.Canceled) {
			e.Log.Error("session cannot be resumed", "session", id, "error", err)
		}
	}
	return nil
}

func (e *Engine) interruptAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.sessions {
		s.stopTurn()
	}
}

// Stats are counts for server/status.
func (e *Engine) Stats() (loaded, running int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions), e.active
}

// model finds a model by the name sessions know it by; "" is the default.
func (e *Engine) model(name string) (Model, error) {
	for i, m := range e.Models {
		if m.Name == name || name == "" && i == 0 {
			return m, nil
		}
	}
	return Model{}, ErrModelNotFound
}

// provider finds who serves a model spec.
func (e *Engine) provider(spec protocol.ModelSpec) (provider.Provider, error) {
	for _, m := range e.Models {
		if m.Spec.Provider == spec.Provider && m.Spec.ID == spec.ID {
			return m.Provider, nil
		}
	}
	return nil, ErrModelNotFound
}
