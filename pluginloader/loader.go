// Package pluginloader loads plugins from directories and gives sessions the plugins of their
// workspace. The engine calls Loader.Host when a session opens and between turns. The daemon calls
// the other methods for clients.
//
// A plugin goes through these steps:
//
//   - roots.go lists the directories. A set holds those of the user or of one workspace, an entry each.
//   - examine.go scans a directory whose signature has changed. It checks whether the contents may run:
//     plugins of a workspace need approval of their exact digest (trust.go).
//   - package content makes a private copy. What runs cannot be changed afterwards.
//   - assemble.go builds a unit from the copy: its process, MCP servers, commands and texts. entry.bring
//     starts what has to prove that it works.
//   - combine.go puts the wanted units together. A plugin that conflicts with others keeps its last version.
//   - generation.go publishes the result as a plugin.Host and retires the last one once no session uses it.
//
// If a change cannot be loaded, the last good version keeps running, also after a restart
// (lastrun.go). The files of a workspace may be hostile: unapprovedlimits.go bounds the cost of
// looking at them.
package pluginloader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/engine/provider/keystore"
	"lashd/engine/sandbox"
	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/pluginloader/content"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// Config configures a Loader. The functions are required; they may be called on any goroutine and
// must not call back into the Loader synchronously.
type Config struct {
	Base    *plugin.Host               // drivers and built-in plugins
	Driver  string                     // driver of the trial session for a new set of plugins
	User    []string                   // directories with the user's plugins; those of earlier directories register first
	Layout  string                     // directory with the user's .claude and .agents: the home directory; empty: none
	Home    string                     // directory for copies of plugins and for their data
	Environ []string                   // lashd's environment
	Version string                     // of lashd, for MCP servers
	Nonce   string                     // prefix of the mark of processes, for proc.Sweep
	Options map[string]json.RawMessage // options for all sessions, by plugin
	Replace []string                   // built-in plugins that plugins of the user with the same name replace
	Limits  proc.Limits                // defaults for programs whose manifest sets no limits
	Sandbox SandboxMode                // empty: SandboxOn
	Servers ServerConfig               // sandboxes and logins of MCP servers
	Knows   func(model string) bool    // whether there is a model with a name; nil: unknown
	Memory  Memory
	Log     *slog.Logger
	Settle  time.Duration // quiet time before changed files are scanned; 0: the default of package watch
	Scan    time.Duration // limit of one scan of the unapproved plugins of a workspace; 0: five seconds

	// News is called with each change of a plugin's info.
	News func(protocol.ServerEvent)
	// ToolsChanged is called when a plugin's tools changed, in one session or, without an ID, in
	// all.
	ToolsChanged func(ctx context.Context, plugin string, session protocol.SessionID)
	// Revoked is called repeatedly while sessions still use a plugin that the user disabled or no
	// longer trusts. Idle sessions must drop their plugins.
	Revoked func(context.Context)
	// Running returns a turn in progress, if there is one.
	Running func() (protocol.TurnID, bool)
}

// ServerConfig configures the sandboxes and logins of MCP servers, and which of them may use models. The zero value has none.
type ServerConfig struct {
	Places   sandbox.Places
	Default  protocol.SandboxMode              // of new sessions
	Settings map[string]manifest.ServerSandbox // by server; not for servers of a workspace
	Sampling map[string]mcp.Sampling           // servers that may use the models of sessions
	Logins   *keystore.Store                   // OAuth logins; nil: they end with the daemon
	// Denied returns the hosts that rules of a session deny; nil: none.
	Denied func(context.Context, protocol.SessionID) ([]string, error)
}

// Memory is the part of the database that a Loader uses.
type Memory interface {
	PluginFacts(context.Context) ([]persistence.PluginFact, error)
	Commit(context.Context, *persistence.Commit) (persistence.Result, error)
}

// Loader manages the plugins of the user and of the workspaces with sessions.
//
// One goroutine, Run, owns all state and changes it. Other goroutines send it functions over work,
// with do and post, and read under mu. Slow work, such as copying and starting plugins, runs on
// goroutines of its own and posts its result. So a plugin that hangs delays only itself. Methods
// are safe for concurrent use. They wait until Run has scanned the user's plugins.
type Loader struct {
	config   Config
	copies   *content.Store
	servers  *mcp.Pool
	watcher  *watch.Watcher
	facts    *facts // stored decisions and results
	trust    *content.Trust
	programs content.Programs           // checks programs outside plugins
	ready    chan struct{}              // closed after the first scan of the user's plugins, or when starting failed
	over     chan struct{}              // closed when Run accepts no more work
	work     chan func(context.Context) // functions for Run's goroutine
	building sync.WaitGroup             // goroutines that start and end plugins

	// Run's goroutine changes the fields below, under mu. Others read them under mu.
	mu         sync.Mutex
	failed     error // why there are no plugins; nil: there are
	generation int64 // counts published sets
	user       *set
	workspaces map[string]*set          // by directory; only workspaces with plugins
	hosts      map[*plugin.Host][]*unit // current hosts, and older ones that sessions still use
}

// New returns a Loader. It starts nothing; call Run.
func New(c Config) *Loader {
	l := &Loader{
		config: c, ready: make(chan struct{}), over: make(chan struct{}), work: make(chan func(context.Context)), workspaces: map[string]*set{}, hosts: map[*plugin.Host][]*unit{},
		servers: mcp.NewPool(mcp.PoolConfig{
			Environ: c.Environ, Nonce: c.Nonce, Version: c.Version, Sandboxes: c.Servers.Places, Default: c.Servers.Default, Settings: c.Servers.Settings, Sampling: c.Servers.Sampling, Logins: c.Servers.Logins, Denied: c.Servers.Denied,
		}),
		watcher: watch.New(watch.Config{Log: c.Log, Settle: c.Settle}),
		facts:   &facts{memory: c.Memory},
	}
	l.user = &set{loader: l, scope: protocol.ScopeUser, roots: c.User, layout: c.Layout, ready: l.ready}
	return l
}

// Run loads the plugins that ran last, scans the directories and follows changes until ctx is done.
// It returns when all plugins have ended. Stop the users of the plugins first. Call it once. If the
// stored facts cannot be read, Run makes all methods fail and waits for ctx.
func (l *Loader) Run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	_, err := contain(l.config.Log, "begin with plugins", func() (struct{}, error) { return struct{}{}, l.begin(life) })
	if err != nil {
		l.config.Log.Error("cannot read the plugins; no session can be opened", "error", err)
		l.failed = fmt.Errorf("cannot read the plugins: %w", err)
		close(l.ready)
		<-ctx.Done()
		return err
	}
	var watching sync.WaitGroup
	var watchErr error
	watching.Go(func() { watchErr = l.watch(ctx) })
	defer watchAll(l.watcher, append(l.user.watched(), l.user.roots...), watch.Bounds{})()
	l.look(life, l.user, func() { close(l.ready) }) // no session opens before this scan, because a new plugin may deny something
	l.follow(ctx, life)
	close(l.over)
	watching.Wait()
	l.endAll()
	return watchErr
}

// begin reads the stored facts and loads the plugins that ran last. Sessions that need no new
// plugin can continue with these.
func (l *Loader) begin(ctx context.Context) error {
	if err := l.facts.load(ctx); err != nil {
		return err
	}
	var err error
	if l.copies, err = content.NewStore(filepath.Join(l.config.Home, "plugins", "copies"), l.programs.Finder(exec.LookPath)); err != nil {
		return err
	}
	if l.trust, err = content.NewTrust(ctx, l.facts); err != nil {
		return err
	}
	l.user.recall(ctx)
	l.user.swap(ctx)
	return nil
}

// follow runs posted functions and due scans, one after the other, until ctx is done. None of them
// waits for a plugin.
func (l *Loader) follow(ctx, life context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(l.due()))
		select {
		case <-ctx.Done():
			return
		case f := <-l.work:
			_ = l.contained("change plugins", func() { f(life) }) // contained logs the error
		case now := <-timer.C:
			_ = l.contained("look again", func() {
				l.lookAll(life, func(s *set) bool { at := s.due(); return !at.IsZero() && !now.Before(at) })
			})
		case roots := <-l.watcher.Changes():
			_ = l.contained("look at changes", func() { l.lookAll(life, func(s *set) bool { return s.has(roots) }) })
		}
	}
}

// due returns when the next scan is due that no change of files triggers.
func (l *Loader) due() time.Time {
	at := time.Now().Add(time.Hour)
	for _, s := range l.sets() {
		if d := s.due(); !d.IsZero() && s.looking == nil && d.Before(at) {
			at = d
		}
	}
	return at
}

// lookAll scans the sets that which selects.
func (l *Loader) lookAll(life context.Context, which func(*set) bool) {
	for _, s := range l.sets() {
		if which(s) {
			l.look(life, s)
		}
	}
}

// changed publishes the changes of a set. A workspace's host contains the user's plugins too, so
// changes of those affect all workspaces.
func (l *Loader) changed(ctx context.Context, s *set) {
	s.swap(ctx)
	if s == l.user {
		for _, w := range l.sets()[1:] {
			w.swap(ctx)
		}
	}
	l.tidy()
}

// tidy removes copies that are no longer needed.
func (l *Loader) tidy() {
	if err := l.copies.Keep(l.facts.kept); err != nil {
		l.config.Log.Warn("removing unused copies of plugins failed", "error", err)
	}
}

// sets returns all sets, the user's first.
func (l *Loader) sets() []*set {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []*set{l.user}
	for _, w := range l.workspaces {
		all = append(all, w)
	}
	return all
}

// do runs f on Run's goroutine and returns its result. If ctx ends first, f may still run. After
// the end of Run the error is persistence.ErrClosed.
func do[T any](ctx context.Context, l *Loader, f func(context.Context) (T, error)) (v T, err error) {
	if err := l.started(ctx); err != nil {
		return v, err
	}
	type answer struct {
		v   T
		err error
	}
	done := make(chan answer, 1)
	select {
	case l.work <- func(ctx context.Context) {
		v, err := contain(l.config.Log, "change plugins", func() (T, error) { return f(ctx) })
		done <- answer{v, err}
	}:
	case <-l.over:
		return v, persistence.ErrClosed
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
	select {
	case a := <-done:
		return a.v, a.err
	case <-ctx.Done():
		return v, context.Cause(ctx)
	}
}

// post runs f on Run's goroutine, or without on this one if Run has ended.
func (l *Loader) post(f func(context.Context), without func()) {
	select {
	case l.work <- f:
	case <-l.over:
		without()
	}
}

// wait waits for done, the end of the loader, or ctx.
func (l *Loader) wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-l.over:
		return persistence.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// started waits for the first scan and returns the error that prevented it.
func (l *Loader) started(ctx context.Context) error {
	if err := l.wait(ctx, l.ready); err != nil {
		return err
	}
	return l.failed
}

// Drivers returns the drivers that sessions can use.
func (l *Loader) Drivers() []protocol.DriverInfo { return l.config.Base.Drivers() }

// Host returns the current host for sessions that work in cwd. The first call for a workspace with
// plugins waits until the approved ones are loaded. It fails if a link leads elsewhere from the path, so
// that a session never gets the plugins of another workspace. The engine calls it when a session opens and
// between turns.
func (l *Loader) Host(ctx context.Context, cwd string) (*plugin.Host, error) {
	if err := pathresolve.Elsewhere(cwd); err != nil {
		return nil, err
	}
	s, err := l.setOf(ctx, cwd)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.host, nil
}

// endAll releases all sets and waits until all plugins have ended.
func (l *Loader) endAll() {
	for _, s := range l.sets() {
		s.end()
	}
	l.building.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	if err := l.servers.Shutdown(ctx); err != nil {
		l.config.Log.Warn("MCP servers did not end", "error", err)
	}
}

// stopPatience is how long plugins may take to end before they are killed.
const stopPatience = 5 * time.Second

// ErrNoPlugin means that no plugin has the name that was asked for.
var ErrNoPlugin = errors.New("no such plugin")
