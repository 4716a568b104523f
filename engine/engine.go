// Package engine is the runtime of lashd: sessions that live in a store, each with one owner goroutine; turns that run
// beside them and survive the process; decisions, queues and observers. It can be embedded without the daemon. All
// methods of Engine are safe for concurrent use and wait until Run serves. A method that changes something returns when
// the change is durable.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"lashd/engine/background"
	"lashd/engine/filepoint"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/tip"
	"lashd/persistence"
	"lashd/rpc/protocol"

	"github.com/google/uuid"
	"golang.org/x/sync/semaphore"
)

// Config is what an Engine needs. The caller owns the store and runs it for longer than the engine.
type Config struct {
	Store    *persistence.Store
	Plugins  Plugins
	Servers  Servers         // nil: clients bring none
	Models   []Model         // the first is the default
	Keys     *provider.Keys  // of the models' servers; nil: clients hand over none
	Defaults protocol.Config // of new sessions; Driver and Budget are required
	Log      *slog.Logger
	Trace    *Trace        // nil: no trace
	StateDir string        // no tool may touch it
	Idle     time.Duration // after which a session nobody uses leaves memory; default ten minutes
	Environ  []string      // of the commands of tasks, without secrets
	Nonce    string        // begins the mark of their processes, for proc.Sweep
	Files    FileLimits
}

// Plugins are the plugins that sessions have.
type Plugins interface {
	// Host is the host for sessions that work in a directory, as it is now. When plugins have changed another one takes its
	// place, and this one is retired. It is asked before each turn, and may take long only when a directory is new.
	Host(ctx context.Context, cwd string) (*plugin.Host, error)
	// Drivers are the names that a session's configuration may choose from.
	Drivers() []string
}

// Model is a model that sessions can use under a name.
type Model struct {
	Name     string
	Spec     protocol.ModelSpec
	Provider provider.Provider
	Price    *protocol.Price // nil: not known
}

// Engine runs sessions.
type Engine struct {
	Config
	store       *persistence.Store
	incarnation string // of this run: turns of another one are taken over before they are driven
	keys        flights
	uploads     uploads
	presence    presence
	bulletin    bulletin
	waits       waits
	triggers    *triggers
	settled     tip.Tip // some session may have become idle
	callEnded   tip.Tip
	tasksMoved  tip.Tip // a task has changed
	childAsks   tip.Tip // a session that works for another asks a person, or is answered
	workers     workers
	races       taskRaces
	outputs     *background.Outputs
	commands    background.Commands
	files       files
	turns       sync.WaitGroup
	actors      sync.WaitGroup

	running  chan struct{} // closed once Run serves
	mu       sync.Mutex
	ctx      context.Context // of the actors; set before running is closed
	lends    context.Context // of leases; likewise
	stopped  bool            // no turn is started any more
	sessions map[protocol.SessionID]*session
	active   int // turns running
	calls    int // tool calls that have not returned, those nobody waits for included
}

// New makes an engine that does nothing until Run is called.
func New(cfg Config) *Engine {
	if cfg.Idle == 0 {
		cfg.Idle = 10 * time.Minute
	}
	cfg.Files = cfg.Files.withDefaults()
	outputs := background.NewOutputs(cfg.StateDir)
	e := &Engine{
		workers: newWorkers(), outputs: outputs, commands: background.Commands{Environ: cfg.Environ, Nonce: cfg.Nonce, Outputs: outputs},
		Config: cfg, store: cfg.Store, incarnation: uuid.NewString(), running: make(chan struct{}),
		sessions: map[protocol.SessionID]*session{}, presence: presence{clients: map[protocol.ClientID]*clientState{}},
		keys: flights{open: map[string]*flight{}}, waits: waits{turns: map[protocol.TurnID]*waiting{}},
		files: files{shelf: filepoint.NewShelf(cfg.StateDir, cfg.Files.Budget/packShare), open: map[string]*workspace{}, places: semaphore.NewWeighted(fileUsers)},
	}
	e.triggers = newTriggers(e)
	return e
}

// Run goes on with what an earlier run left unfinished, and serves until ctx is done. Then it stops every turn where
// it can be resumed, waits for them and returns. Nothing is left running, unless a tool does not return when its
// context is done: that is logged.
func (e *Engine) Run(ctx context.Context) error {
	actors, stopActors := context.WithCancel(context.WithoutCancel(ctx))
	defer stopActors()
	lends, takeBack := context.WithCancel(actors)
	defer takeBack()
	e.mu.Lock()
	e.ctx, e.lends = actors, lends
	e.mu.Unlock()
	close(e.running)
	e.actors.Go(func() { e.watchStore(actors) })
	stopTriggers, err := e.triggers.start(ctx)
	if err == nil {
		err = e.recover(ctx)
	}
	if err == nil {
		e.actors.Go(func() { e.tidyOutputs(actors) })
		e.actors.Go(func() { e.tidyFiles(actors) })
		<-ctx.Done()
	}
	stopTriggers()
	e.stopTurns()
	takeBack() // plugins that are borrowed may be at work, which is waited for with the turns
	e.turns.Wait()
	e.stopWork()
	e.awaitCalls()
	e.mu.Lock() // lookup starts actors under this lock, and only while their context lives
	stopActors()
	e.mu.Unlock()
	e.actors.Wait()
	e.files.forgetIdle()
	return errors.Join(err, e.files.shelf.Close())
}

func (e *Engine) stopTurns() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopped = true
	for _, s := range e.sessions {
		s.haltTurn(errStopped)
	}
}

func (e *Engine) stopping() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}

// goTurn runs a turn, unless the engine stops: then it stays where a later run finds it.
func (e *Engine) goTurn(f func()) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stopped {
		return false
	}
	e.active++
	e.turns.Go(func() {
		f()
		e.mu.Lock()
		e.active--
		e.mu.Unlock()
	})
	return true
}

// goCall runs a tool call, which may outlive whoever waits for it.
func (e *Engine) goCall(f func()) {
	e.mu.Lock()
	e.calls++
	e.mu.Unlock()
	go func() {
		defer e.callEnded.Notify()
		defer func() {
			e.mu.Lock()
			e.calls--
			e.mu.Unlock()
		}()
		f()
	}()
}

// awaitCalls waits for tool calls that were given up before they returned, but not for ever.
func (e *Engine) awaitCalls() {
	limit := time.NewTimer(stopPatience)
	defer limit.Stop()
	for {
		again := e.callEnded.Next()
		e.mu.Lock()
		n := e.calls
		e.mu.Unlock()
		if n == 0 {
			return
		}
		select {
		case <-again:
		case <-limit.C:
			e.Log.Error("tool calls do not return although their context is done", "calls", n)
			return
		}
	}
}

// Stats are counts for server/status.
func (e *Engine) Stats() (loaded, running int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions), e.active
}

// done ends when Run does; before Run it is nil, since nothing stops then.
func (e *Engine) done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil {
		return nil
	}
	return e.ctx.Done()
}

// model finds a model by the name sessions know it by; "" is the default.
func (e *Engine) model(name string) (Model, error) {
	for i, m := range e.Models {
		if m.Name == name || name == "" && i == 0 {
			return m, nil
		}
	}
	return Model{}, fmt.Errorf("%w: %q", ErrModelNotFound, name)
}

// configured finds the model of a spec; a zero one if no model of the configuration is of that spec any more.
func (e *Engine) configured(spec protocol.ModelSpec) Model {
	for _, m := range e.Models {
		if m.Spec.Provider == spec.Provider && m.Spec.ID == spec.ID {
			return m
		}
	}
	return Model{}
}

// errStopped is why a turn is left as it is, to be resumed: the daemon stops, or the session is loaded again.
var errStopped = errors.New("the daemon stops")

// errDeleted is why the turn of a session that is deleted ends.
var errDeleted = errors.New("the session is deleted")
