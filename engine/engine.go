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

	"lashd/engine/artifact"
	"lashd/engine/background"
	"lashd/engine/clientserver"
	"lashd/engine/daemonevents"
	"lashd/engine/imports"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/presence"
	"lashd/engine/provider"
	"lashd/engine/receipt"
	"lashd/engine/rulebook"
	"lashd/engine/sandbox"
	"lashd/engine/search"
	"lashd/engine/tip"
	"lashd/engine/trace"
	"lashd/engine/trigger"
	"lashd/engine/undo"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"

	"github.com/google/uuid"
)

// Config is what an Engine needs. The caller owns the store and keeps it open until Run has
// returned.
type Config struct {
	Store   *persistence.Store
	Plugins Plugins
	// Servers connects MCP servers of clients; nil if clients may not add any.
	Servers clientserver.Host
	// Models has the models that sessions can use.
	Models models.Source
	// Keys are the API keys that clients hand over for model servers; nil if they may not.
	Keys *provider.Keys
	// Defaults are the settings of new sessions. Driver and Budget are required.
	Defaults protocol.Config
	// UserRules are the approval rules of config.toml; nil: none.
	UserRules rulebook.UserRules
	Log       *slog.Logger
	// Trace receives trace records; nil turns tracing off.
	Trace *trace.File
	// StateDir is the data directory of the daemon. Tools may not touch it.
	StateDir string
	// Idle is how long a session stays in memory without being used. Default: ten minutes.
	Idle time.Duration
	// Sandbox has the places for sandboxes of task commands.
	Sandbox sandbox.Places
	// Environ is the environment of task commands, without secrets.
	Environ []string
	// Nonce starts the mark of the processes that tasks start, by which proc.Sweep finds leftovers.
	Nonce      string
	FileLimits undo.Limits
	// DenyURLs refuses attachments by URL. The engine never fetches such a URL; it passes it to the model.
	DenyURLs bool
}

// Plugins provides the plugins of sessions. The plugin loader implements it. Its methods are safe
// for concurrent use.
type Plugins interface {
	// Host is the host for sessions that work in a directory, as it is now. When plugins have changed another one takes its
	// place, and this one is retired. It is asked before each turn, and may take long only when a directory is new.
	Host(ctx context.Context, cwd string) (*plugin.Host, error)
	// Drivers are those that a session's configuration may choose from. They stay the same while the daemon runs.
	Drivers() []protocol.DriverInfo
}

// API groups the methods for clients by noun. Most of them serve one method of the protocol.
type API struct {
	Sessions    *Sessions
	Turns       *Turns
	Queue       *Queue
	Decisions   *Decisions
	Rules       *rulebook.Methods
	Tools       *Tools
	Code        *Code
	Operations  *Operations
	Tasks       *Tasks
	Monitors    *Monitors
	Completions *Completions
	History     *History
	Snapshots   *Snapshots
	Artifacts   *artifact.Artifacts
	Imports     *imports.Imports
	Files       *undo.Files
	Triggers    *trigger.Registry
	Searches    *search.Searches
	// Clients tracks which clients are connected.
	Clients *presence.Clients
	// Events publishes events about the daemon as a whole.
	Events *daemonevents.Publisher
}

// Engine runs sessions. It owns their actors, the goroutines of turns, and the workers of tasks,
// and it stops all of them when Run ends. The API does the work of clients; the remaining fields
// are shared by all sessions.
type Engine struct {
	Config
	API
	// Models is part of the API. It is declared here because it hides Config.Models.
	Models *models.Catalog
	// store is Config.Store.
	store *persistence.Store
	// incarnation identifies this run of the engine. A turn is driven only by the run whose
	// incarnation its row has; recovery takes over the turns of earlier runs.
	incarnation string
	// receipts serializes requests with the same idempotency key that run off the actors.
	receipts *receipt.Flights
	// waits has the requests that wait for a turn to end.
	waits waits
	// rules has the approval rules of the user and of workspaces.
	rules *rulebook.Book
	// sessionIdle is notified when some session may have become idle.
	sessionIdle tip.Tip
	// tasksChanged is notified when a task has changed.
	tasksChanged tip.Tip
	// childDecisionsChanged is notified when a subagent asks a person, or gets an answer.
	childDecisionsChanged tip.Tip
	// workers has the running workers of tasks.
	workers workers
	races   taskRaces
	// commands starts the processes of tasks and monitors.
	commands background.Commands
	// group has all goroutines that a shutdown waits for.
	group *workgroup.Group

	// running is closed once Run serves.
	running chan struct{}
	// mu guards the fields below.
	mu sync.Mutex
	// ctx ends the actors. It is set before running is closed.
	ctx context.Context
	// leaseCtx ends the leases of plugins, before ctx ends. It is set together with ctx.
	leaseCtx context.Context
	// sessions has the handle of each session in memory. mu guards it.
	sessions map[protocol.SessionID]*session
}

// New returns an engine. Its methods block until Run serves.
func New(cfg Config) *Engine {
	if cfg.Idle == 0 {
		cfg.Idle = 10 * time.Minute
	}
	e := &Engine{
		workers: newWorkers(), commands: background.Commands{Environ: cfg.Environ, Nonce: cfg.Nonce, Sandbox: cfg.Sandbox, Outputs: background.NewOutputs(cfg.StateDir)},
		Config: cfg, group: workgroup.New(cfg.Log), Models: models.New(cfg.Models, cfg.Keys), store: cfg.Store, incarnation: uuid.NewString(), running: make(chan struct{}),
		sessions: map[protocol.SessionID]*session{},
		receipts: receipt.NewFlights(cfg.Store), waits: waits{turns: map[protocol.TurnID]*waiting{}},
	}
	e.rules = rulebook.New(cfg.Store, cfg.UserRules)
	e.API = newAPI(e, cfg)
	return e
}

// newAPI returns the API of an engine that has its other fields.
func newAPI(e *Engine, cfg Config) API {
	return API{
		Sessions: &Sessions{e}, Turns: &Turns{e}, Queue: &Queue{e}, Decisions: &Decisions{e}, Rules: &rulebook.Methods{Book: e.rules, Sessions: ruleHost{e}, Receipts: e.receipts}, Tools: &Tools{e}, Code: &Code{e}, Operations: &Operations{e},
		Tasks: &Tasks{e}, Monitors: &Monitors{e}, Completions: &Completions{e}, History: &History{e}, Snapshots: &Snapshots{e},
		Artifacts: artifact.New(cfg.Store, e.receipts, e.commitIn),
		Files:     undo.New(undo.Config{Store: cfg.Store, StateDir: cfg.StateDir, Limits: cfg.FileLimits, Idle: cfg.Idle, Log: cfg.Log}),
		Triggers: trigger.New(trigger.Config{
			Host: triggerHost{e}, Store: cfg.Store, Receipts: e.receipts, Log: cfg.Log, StateDir: cfg.StateDir, Stopped: ErrShuttingDown,
		}),
		Imports: imports.New(cfg.Store, e.receipts, func() imports.Sessions { return e.Sessions }, cfg.DenyURLs),
		Clients: presence.New(), Events: &daemonevents.Publisher{}, Searches: search.New(cfg.Store, cfg.Log),
	}
}

// Run resumes what an earlier run left unfinished, and then serves until ctx is done. It returns
// after everything has stopped, in this order: triggers, turns (each where it can be resumed),
// leases, tasks, tool calls, actors. A tool that ignores its context can outlive Run; that is
// logged. Call Run once.
func (e *Engine) Run(ctx context.Context) error {
	if err := e.rules.Load(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(err, e.Files.Close())
	}
	actors, stopActors := context.WithCancel(context.WithoutCancel(ctx))
	defer stopActors()
	lends, cancelLeases := context.WithCancel(actors)
	defer cancelLeases()
	e.mu.Lock()
	e.ctx, e.leaseCtx = actors, lends
	e.mu.Unlock()
	close(e.running)
	e.group.GoActor(func() { e.watchStore(actors) })
	e.group.GoActor(func() { e.Searches.Run(actors) })
	stopTriggers := e.Triggers.Start(ctx)
	err := e.recover(ctx)
	if err == nil {
		e.group.GoActor(func() { e.Tasks.tidyOutputs(actors) })
		e.group.GoActor(func() { e.Files.Tidy(actors) })
		<-ctx.Done()
	}
	stopTriggers()
	e.stopTurns()
	cancelLeases() // calls of leased plugins end; WaitTurns and WaitCalls wait for them
	e.group.WaitTurns()
	e.Tasks.stopWork()
	e.group.WaitCalls(stopTimeout)
	e.mu.Lock() // lookup starts actors under this lock, and only while their context lives
	stopActors()
	e.mu.Unlock()
	e.group.WaitActors()
	return errors.Join(err, e.Files.Close())
}

// stopTurns refuses new turns and halts the running ones, so that the next run can resume them.
func (e *Engine) stopTurns() {
	e.group.Close()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.sessions {
		s.haltTurn(errStopped)
	}
}

// tidyFiles starts a cleanup of file copies in the background, if there are many new ones.
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

// Drivers returns the drivers of new sessions, ordered by name, for server/status.
func (e *Engine) Drivers() []protocol.DriverInfo {
	all := e.Plugins.Drivers()
	for i := range all {
		all[i].Default = all[i].Name == e.Defaults.Driver
	}
	return all
}

// Stats returns the number of sessions in memory and of running turns, for server/status.
func (e *Engine) Stats() (loaded, running int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.sessions), e.group.Turns()
}

// done returns a channel that is closed when Run stops the actors. Before Run it is nil and blocks.
func (e *Engine) done() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx == nil {
		return nil
	}
	return e.ctx.Done()
}

// errStopped is the cause when a turn is halted so that it can be resumed: the daemon stops, or the session is reloaded.
var errStopped = errors.New("the daemon is stopping")

// errDeleted is the cause when a turn ends because its session is deleted.
var errDeleted = errors.New("the session was deleted")
