// Package pluginloader loads plugins from directories. It finds and checks them, runs them from private copies, and replaces the
// set of plugins when files change. If a change cannot be loaded, the last good version keeps running. The engine asks this
// package for the plugins of a session.
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
	"lashd/persistence"
	"lashd/pluginloader/content"
	"lashd/pluginloader/mcp"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// Config is what a Loader needs to know.
type Config struct {
	Base    *plugin.Host               // the drivers, and what ships with lashd
	Driver  string                     // with which a set of plugins is tried out
	User    []string                   // directories of the user's plugins: those of an earlier one come first
	Home    string                     // where copies of plugins lie, and what they keep
	Environ []string                   // of the daemon
	Version string                     // of lashd, for MCP servers
	Nonce   string                     // begins the mark of the processes, for proc.Sweep
	Options map[string]json.RawMessage // that a person has set for all sessions, by plugin
	Replace []string                   // ids of plugins of Base whose place a plugin of the user's of that name takes
	Limits  proc.Limits                // of programs whose plugins say nothing of it
	Sandbox SandboxMode                // empty: on
	Memory  Memory
	Log     *slog.Logger
	Settle  time.Duration // how long a change has to be over; zero: as package watch has it

	// News is told what has become of a plugin.
	News func(protocol.ServerEvent)
	// ToolsChanged is told that a plugin offers other tools, in one session or, if that is empty, in all.
	ToolsChanged func(ctx context.Context, plugin string, session protocol.SessionID)
	// Revoked is told that sessions have plugins against which a person has decided: idle ones are to let go of them.
	Revoked func(context.Context)
	// Running tells of a turn that runs, if there is one.
	Running func() (protocol.TurnID, bool)
}

// Memory is where a Loader keeps what is to outlive the daemon.
type Memory interface {
	PluginFacts(context.Context) ([]persistence.PluginFact, error)
	Commit(context.Context, *persistence.Commit) (persistence.Result, error)
}

// Loader has the plugins of the user, and of the workspaces in which somebody works. Its methods may be called by several
// goroutines at once, and wait until Run has looked at the user's.
type Loader struct {
	config   Config
	copies   *content.Store
	servers  *mcp.Pool
	watcher  *watch.Watcher
	facts    *facts
	trust    *content.Trust
	programs content.Programs // that were approved
	ready    chan struct{}    // closed once the user's plugins were looked at, or there is no hope of that
	over     chan struct{}    // closed once nobody takes work any more
	work     chan func(context.Context)
	building sync.WaitGroup // and ending, of plugins

	// What follows is changed by the goroutine of Run only, and read under mu by others.
	mu         sync.Mutex
	failed     error // why there is no set of plugins
	generation int64
	user       *set
	workspaces map[string]*set          // by directory of the workspace; one without plugins is not there
	hosts      map[*plugin.Host][]*unit // that are the newest, or that sessions still have
}

// New makes a Loader. It starts nothing.
func New(c Config) *Loader {
	l := &Loader{
		config: c, ready: make(chan struct{}), over: make(chan struct{}), work: make(chan func(context.Context)), workspaces: map[string]*set{}, hosts: map[*plugin.Host][]*unit{},
		servers: mcp.NewPool(mcp.PoolConfig{Environ: c.Environ, Nonce: c.Nonce, Version: c.Version}),
		watcher: watch.New(watch.Config{Log: c.Log, Settle: c.Settle}),
		facts:   &facts{memory: c.Memory},
	}
	l.user = &set{loader: l, scope: protocol.ScopeUser, roots: c.User, ready: l.ready}
	return l
}

// Run loads what ran last, then what the directories hold by now, and follows their changes until ctx is done. It ends when
// nothing is left of the plugins: whoever uses them has ended before.
func (l *Loader) Run(ctx context.Context) error {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	_, err := contain(l.config.Log, "begin with plugins", func() (struct{}, error) { return struct{}{}, l.begin(life) })
	if err != nil {
		l.config.Log.Error("no session can be opened: what plugins there are cannot be found out", "error", err)
		l.failed = fmt.Errorf("what plugins there are cannot be found out: %w", err)
		close(l.ready)
		<-ctx.Done()
		return err
	}
	var watching sync.WaitGroup
	var watchErr error
	watching.Go(func() { watchErr = l.watch(ctx) })
	for _, root := range l.user.roots {
		defer l.watcher.Watch(root)()
	}
	l.look(life, l.user, func() { close(l.ready) }) // a plugin that is new may deny something: no session is opened without it
	l.follow(ctx, life)
	close(l.over)
	watching.Wait()
	l.endAll()
	return watchErr
}

// begin has the plugins that ran last run again.
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

// follow does what is to be done, one after the other, until ctx is done. Nothing of it waits for a plugin.
func (l *Loader) follow(ctx, life context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(l.due()))
		select {
		case <-ctx.Done():
			return
		case f := <-l.work:
			_ = l.contained("change plugins", func() { f(life) }) // the log has it
		case now := <-timer.C:
			_ = l.contained("look again", func() {
				l.lookAll(life, func(s *set) bool { at := s.due(); return !at.IsZero() && !now.Before(at) })
			})
		case roots := <-l.watcher.Changes():
			_ = l.contained("look at changes", func() { l.lookAll(life, func(s *set) bool { return s.has(roots) }) })
		}
	}
}

// due is when a directory is to be looked at without any news of it.
func (l *Loader) due() time.Time {
	at := time.Now().Add(time.Hour)
	for _, s := range l.sets() {
		if d := s.due(); !d.IsZero() && s.looking == nil && d.Before(at) {
			at = d
		}
	}
	return at
}

func (l *Loader) lookAll(life context.Context, which func(*set) bool) {
	for _, s := range l.sets() {
		if which(s) {
			l.look(life, s)
		}
	}
}

// changed puts what has changed in a set in its place.
func (l *Loader) changed(ctx context.Context, s *set) {
	s.swap(ctx)
	if s == l.user {
		for _, w := range l.sets()[1:] {
			w.swap(ctx)
		}
	}
	l.tidy()
}

// tidy removes the copies that nobody needs any more.
func (l *Loader) tidy() {
	if err := l.copies.Keep(l.facts.kept); err != nil {
		l.config.Log.Warn("copies of plugins that nobody needs are not removed", "error", err)
	}
}

// sets are all sets, that of the user first.
func (l *Loader) sets() []*set {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := []*set{l.user}
	for _, w := range l.workspaces {
		all = append(all, w)
	}
	return all
}

// do runs f where the state of the loader may be changed. If ctx is done first, nobody knows what comes of it.
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

// post has f run where the state of the loader may be changed, or, if the loader ends, without.
func (l *Loader) post(f func(context.Context), without func()) {
	select {
	case l.work <- f:
	case <-l.over:
		without()
	}
}

// wait waits until something is done, or the loader ends.
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

func (l *Loader) started(ctx context.Context) error {
	if err := l.wait(ctx, l.ready); err != nil {
		return err
	}
	return l.failed
}

// Drivers are the names that a session's configuration may choose from.
func (l *Loader) Drivers() []string { return l.config.Base.Drivers() }

// Host is the host for sessions that work in a directory, as it is now. The first time that a workspace has plugins it takes as
// long as it takes to load those that a person has approved.
func (l *Loader) Host(ctx context.Context, cwd string) (*plugin.Host, error) {
	s, err := l.setOf(ctx, cwd)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.host, nil
}

// endAll lets go of all sets, and waits until nothing is left of their plugins.
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

// stopPatience is how long plugins have to end. After it they are killed.
const stopPatience = 5 * time.Second

// ErrNoPlugin means that no plugin has the name that was asked for.
var ErrNoPlugin = errors.New("no such plugin")
