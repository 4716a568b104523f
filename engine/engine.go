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

	"lashd/engine/background"
	"lashd/engine/daemonevents"
	"lashd/engine/plugin"
	"lashd/engine/presence"
	"lashd/engine/provider"
	"lashd/engine/receipt"
	"lashd/engine/tip"
	"lashd/engine/trace"
	"lashd/engine/trigger"
	"lashd/engine/undo"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"

	"github.com/google/uuid"
)

// Config is what an Engine needs. The caller owns the store and runs it for longer than the engine.
type Config struct {
	Store      *persistence.Store
	Plugins    Plugins
	Servers    Servers         // nil: clients bring none
	Models     []Model         // the first is the default
	Keys       *provider.Keys  // of the models' servers; nil: clients hand over none
	Defaults   protocol.Config // of new sessions; Driver and Budget are required
	Log        *slog.Logger
	Trace      *trace.File   // nil: no trace
	StateDir   string        // no tool may touch it
	Idle       time.Duration // after which a session nobody uses leaves memory; default ten minutes
	Environ    []string      // of the commands of tasks, without secrets
	Nonce      string        // begins the mark of their processes, for proc.Sweep
	FileLimits undo.Limits
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

// API groups the methods for clients by noun.
type API struct {
	Sessions    *Sessions
	Turns       *Turns
	Queue       *Queue
	Decisions   *Decisions
	Tools       *Tools
	Operations  *Operations
	Tasks       *Tasks
	Monitors    *Monitors
	Completions *Completions
	History     *History
	Snapshots   *Snapshots
	Artifacts   *Artifacts
	Files       *undo.Files
	Triggers    *trigger.Registry
	Clients     *presence.Clients       // those that are connected
	Events      *daemonevents.Publisher // of the daemon as a whole
}

// Engine runs sessions.
type Engine struct {
	Config
	API
	Models                *Models // part of the API; here because it hides Config.Models
	store                 *persistence.Store
	incarnation           string // of this run: turns of another one are taken over before they are driven
	receipts              *receipt.Flights
	waits                 waits
	sessionIdle           tip.Tip // some session may have become idle
	tasksChanged          tip.Tip // a task has changed
	childDecisionsChanged tip.Tip // a session that works for another asks a person, or is answered
	workers               workers
	races                 taskRaces
	commands              background.Commands
	group                 *workgroup.Group

	running  chan struct{} // closed once Run serves
	mu       sync.Mutex
	ctx      context.Context // of the actors; set before running is closed
	leaseCtx context.Context // of leases; likewise
	sessions map[protocol.SessionID]*session
}

// New makes an engine that does nothing until Run is called.
func New(cfg Config) *Engine {
	if cfg.Idle == 0 {
		cfg.Idle = 10 * time.Minute
	}
	e := &Engine{
		workers: newWorkers(), commands: background.Commands{Environ: cfg.Environ, Nonce: cfg.Nonce, Outputs: background.NewOutputs(cfg.StateDir)},
		Config: cfg, group: workgroup.New(cfg.Log), Models: &Models{cfg.Models, cfg.Keys}, store: cfg.Store, incarnation: uuid.NewString(), running: make(chan struct{}),
		sessions: map[protocol.SessionID]*session{},
		receipts: receipt.NewFlights(cfg.Store), waits: waits{turns: map[protocol.TurnID]*waiting{}},
	}
	e.API = newAPI(e, cfg)
	return e
}

func newAPI(e *Engine, cfg Config) API {
	return API{
		Sessions: &Sessions{e}, Turns: &Turns{e}, Queue: &Queue{e}, Decisions: &Decisions{e}, Tools: &Tools{e}, Operations: &Operations{e},
		Tasks: &Tasks{e}, Monitors: &Monitors{e}, Completions: &Completions{e}, History: &History{e}, Snapshots: &Snapshots{e},
		Artifacts: &Artifacts{store: cfg.Store, receipts: e.receipts, commit: e.commitIn},
		Files:     undo.New(undo.Config{Store: cfg.Store, StateDir: cfg.StateDir, Limits: cfg.FileLimits, Idle: cfg.Idle, Log: cfg.Log}),
		Triggers: trigger.New(trigger.Config{
			Host: triggerHost{e}, Store: cfg.Store, Receipts: e.receipts, Log: cfg.Log, StateDir: cfg.StateDir, Stopped: ErrShuttingDown,
		}),
		Clients: presence.New(), Events: &daemonevents.Publisher{},
	}
}

// Run goes on with what an earlier run left unfinished, and serves until ctx is done. Then it stops every turn where
// it can be resumed, waits for them and returns. Nothing is left running, unless a tool does not return when its
// context is done: that is logged.
func (e *Engine) Run(ctx context.Context) error {
	actors, stopActors := context.WithCancel(context.WithoutCancel(ctx))
	defer stopActors()
	lends, cancelLeases := context.WithCancel(actors)
	defer cancelLeases()
	e.mu.Lock()
	e.ctx, e.leaseCtx = actors, lends
	e.mu.Unlock()
	close(e.running)
	e.group.GoActor(func() { e.watchStore(actors) })
	stopTriggers := e.Triggers.Start(ctx)
	err := e.recover(ctx)
	if err == nil {
		e.group.GoActor(func() { e.Tasks.tidyOutputs(actors) })
		e.group.GoActor(func() { e.Files.Tidy(actors) })
		<-ctx.Done()
	}
	stopTriggers()
	e.stopTurns()
	cancelLeases() // plugins that are borrowed may be at work, which is waited for with the turns
	e.group.WaitTurns()
	e.Tasks.stopWork()
	e.group.WaitCalls(stopTimeout)
	e.mu.Lock() // lookup starts actors under this lock, and only while their context lives
	stopActors()
	e.mu.Unlock()
	e.group.WaitActors()
	return errors.Join(err, e.Files.Close())
}

func (e *Engine) stopTurns() {
	e.group.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.sessions {
		s.haltTurn(errStopped)
	}
}

// tidyFiles tidies copies of files beside whoever calls it, if there are many new ones.
func (e *Engine) tidyFiles() {
	if !e.Files.NeedsTidy() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if ctx := e.ctx; ctx.Err() == nil {
		e.group.GoActor(func() { e.Files.Tidy(ctx) })
	}
}

// Stats are counts for server/status.
func (e *Engine) Stats() (loaded, running int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions), e.group.Turns()
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

// errStopped is why a turn is left as it is, to be resumed: the daemon stops, or the session is loaded again.
var errStopped = errors.New("the daemon stops")

// errDeleted is why the turn of a session that is deleted ends.
var errDeleted = errors.New("the session is deleted")
