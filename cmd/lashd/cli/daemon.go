package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providersetup"
	"lashd/engine"
	"lashd/engine/builtin/batch"
	"lashd/engine/builtin/history"
	"lashd/engine/builtin/modelquery"
	"lashd/engine/builtin/monitor"
	"lashd/engine/builtin/outputbudget"
	"lashd/engine/builtin/plan"
	"lashd/engine/builtin/promptcontext"
	"lashd/engine/builtin/shell"
	"lashd/engine/builtin/subagents"
	"lashd/engine/builtin/toolsearch"
	"lashd/engine/builtin/workspace"
	"lashd/engine/capture"
	"lashd/engine/driver/rlm"
	"lashd/engine/driver/standard"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/engine/trace"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/rpc"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

// server is a daemon in this process: with lashd serve, stdio --isolated or acp --isolated.
type server struct {
	*daemon.Environment
	extra   Extra
	opening *opening // startup of the daemon
}

// drivers returns the sorted names of the drivers of this build.
func (e *server) drivers() []string {
	names := []string{rlm.ID, standard.ID}
	for _, f := range e.extra.Drivers {
		names = append(names, f.ID())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// daemon runs the daemon in the data directory until ctx is done. It locks the
// directory, opens the database and calls serve with a ready server; it stops when
// serve returns. The order matters: config.toml is read before the lock is
// written, which stale relies on, and nothing touches the database without the
// lock. Errors carry the exit codes of lashd serve.
func (e *server) daemon(ctx context.Context, serve func(context.Context, *rpc.Server, *socket.Lock) error) error {
	if err := proc.Private(); err != nil {
		e.Log.Warn("cannot protect the memory of the daemon from other processes of this user", "error", err)
	}
	go rpc.Warm()
	e.opening = beginOpening()
	defer e.opening.end()
	cfg, err := config.Load(e.Home, e.drivers()...)
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	if err := os.MkdirAll(e.Home, 0o700); err != nil {
		return err
	}
	lock, err := socket.Acquire(e.Home)
	if held, ok := errors.AsType[*socket.HeldError](err); ok {
		return console.Exit(console.ExitHeld, held)
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := checkLocal(e.Environment); err != nil {
		return err
	}
	store, err := openStore(ctx, e.Environment)
	if err != nil {
		return e.notOpened(ctx, err)
	}
	return e.runStore(ctx, store, cfg, lock, serve)
}

// notOpened adds advice and an exit code to an error of openStore. It returns nil
// if the daemon was stopped while the database was being opened.
func (e *server) notOpened(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil
	case errors.Is(err, persistence.ErrNewerSchema):
		return console.Exit(console.ExitNewer, fmt.Errorf("%w: %s (nothing was changed)", err, remedy(err, e.Home)))
	case errors.Is(err, persistence.ErrMissing):
		return console.Exit(console.ExitMissing, fmt.Errorf("%w; %s", err, remedy(err, e.Home)))
	case isNotFile(err):
		return fmt.Errorf("%w; %s", err, remedy(err, e.Home))
	case errors.Is(err, persistence.ErrOtherSchema):
		return fmt.Errorf("%w: %s (nothing was changed)", err, remedy(err, e.Home))
	}
	return err
}

// isNotFile reports whether a directory is in the place of a database file.
func isNotFile(err error) bool {
	_, ok := errors.AsType[*persistence.NotFileError](err)
	return ok
}

// runStore runs the writer of the database and the engine until ctx is done. The
// writer runs on until the engine has stopped, because the engine's last steps
// commit. If the writer fails, runStore stops the engine and leaves the database
// unclosed, because its state is unknown.
func (e *server) runStore(ctx context.Context, store *persistence.Store, cfg config.Config, lock *socket.Lock,
	serve func(context.Context, *rpc.Server, *socket.Lock) error,
) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	var broken error
	var wg sync.WaitGroup
	wg.Go(func() {
		if broken = store.Run(writing); broken != nil {
			stop(broken)
		}
	})
	wg.Go(func() { store.Watch(ctx) })
	wg.Go(func() { keepLog(ctx, e.Environment) })
	err := e.runEngine(ctx, func() { stop(nil) }, store, cfg, lock, serve)
	stop(nil)
	stopWriting()
	wg.Wait()
	if broken != nil {
		return console.Exit(console.ExitIO, broken)
	}
	return errors.Join(err, store.Close())
}

// runEngine builds the engine with its plugins and models, and serves until ctx is
// done. The deferred calls undo the setup in reverse order: first the loader
// stops, then the built-in plugins shut down, and at last leftover processes are
// killed. Plugin loading and recovery of sessions wait until the first request was
// answered or openingMoment has passed.
func (e *server) runEngine(ctx context.Context, stop func(), store *persistence.Store, cfg config.Config, lock *socket.Lock,
	serve func(context.Context, *rpc.Server, *socket.Lock) error,
) error {
	nonce := proc.DirNonce(e.Home, store.Facts().StoreID)
	defer e.mark(nonce)()
	var models models.Source
	instructions := &promptcontext.Factory{Home: daemon.UserLayout(), UserFile: filepath.Join(e.Home, "AGENTS.md")}
	knows := func(name string) bool {
		_, ok := models.Model(name)
		return ok
	}
	host, err := e.shipped(cfg, nonce, instructions, knows)
	if err != nil {
		return err
	}
	defer e.shutdown(ctx, host) // after the engine has closed all sessions
	keys := config.OpenKeySources(e.Home, cfg, nonce)
	keys.Model = config.NewLiveDefault(e.Home, cfg).Get
	models, err = cfg.Source(keys, notSetAtStart(time.Now()))
	if err != nil {
		return err
	}
	trace, err := e.trace(cfg)
	if err != nil {
		return err
	}
	defer trace.Close()
	loader, tell, err := e.loader(store, host, cfg, nonce, knows)
	if err != nil {
		return err
	}
	options, err := cfg.BuiltinOptions(append(plugin.DriverNames(host.Drivers()), host.IDs()...))
	if err != nil {
		return err
	}
	eng := engine.New(engine.Config{
		Store: store, Plugins: loader, Servers: servers{loader}, Models: models, Keys: keys.Memory, Log: e.Log, Trace: trace, StateDir: e.Home,
		Environ: capture.Environment(cfg.Environ(os.Environ())), Nonce: nonce, Sandbox: e.sandboxes(cfg), Idle: cfg.ParkAfter.Duration, UserRules: rules{config.NewLiveRules(e.Home), loader}, FileLimits: cfg.Undo.Limits(), DenyURLs: cfg.DenyURLs,
		Defaults: protocol.Config{
			Driver: cmp.Or(cfg.Driver, standard.ID), Budget: protocol.Budget{Iterations: 100},
			Approval: protocol.ApprovalConfig{Mode: cfg.Approval, Sandbox: cfg.Sandbox}, Options: options,
		},
	})
	defer e.removeUnused(ctx, e.sandboxes(cfg))()
	tell(eng)
	complete(instructions, loader, eng)
	defer e.load(ctx, loader)() // until the engine has closed all sessions
	srv := rpc.New(rpc.Config{Engine: eng, Store: store, Plugins: loader, Servers: pluginloader.ServersOf(loader), Providers: providersetup.NewService(e.Home, keys.Memory), Log: e.Log, Version: daemon.Version, Socket: e.Socket, Nonce: nonce, Trace: trace, Stop: stop, Answered: e.opening.end})
	run := func(ctx context.Context) error {
		<-e.opening.over
		return eng.Run(ctx)
	}
	<-e.Hears
	e.opening.served()
	return beside(ctx, stop, run, func(ctx context.Context) error { return serve(ctx, srv, lock) })
}

// mark kills leftover processes of an earlier run of the daemon. The returned
// function does the same for this run. nonce identifies processes of this data
// directory, so that those of other daemons are left alone. Failures are only
// logged.
func (e *server) mark(nonce string) (end func()) {
	letGo, err := proc.AdoptOrphans()
	if err != nil {
		e.Log.Warn("cannot adopt orphaned processes", "error", err)
	}
	mark, err := proc.Begin(e.Home, nonce)
	if err != nil {
		e.Log.Warn("cannot look for processes of an earlier run", "error", err)
	}
	return func() {
		if err := mark.End(); err != nil {
			e.Log.Warn("cannot look for processes of this run", "error", err)
		}
		letGo()
	}
}

// trace opens the trace file, or returns nil if tracing is off. A nil file is
// valid and records nothing.
func (e *server) trace(cfg config.Config) (*trace.File, error) {
	if !cfg.Trace {
		return nil, nil
	}
	return trace.Open(filepath.Join(e.Home, "trace.jsonl"))
}

// complete gives the plugin with the instructions what depends on the loader and on the engine: the file of the layout of the user while
// it is enabled, and the rules for imported files.
func complete(f *promptcontext.Factory, loader *pluginloader.Loader, eng *engine.Engine) {
	f.More = func() []string {
		if dir := loader.UserLayout(); dir != "" {
			return []string{filepath.Join(dir, ".claude", "CLAUDE.md")}
		}
		return nil
	}
	f.Readable = func(ctx context.Context, id protocol.SessionID, path string) bool {
		r, err := eng.Rules.Test(ctx, &protocol.RuleTestParams{SessionID: id, Tool: "read", Path: path})
		return err == nil && r.Decision == protocol.ApproveAllow
	}
}

// shipped returns the built-in plugins in the order in which they register; custom
// builds register their plugins here. knows reports whether there is a model with a name.
func (e *server) shipped(cfg config.Config, nonce string, instructions *promptcontext.Factory, knows func(model string) bool) (*plugin.Host, error) {
	builtin := plugin.Stack{
		&workspace.Factory{}, shell.New(shell.Config{Environ: cfg.Environ(os.Environ()), Nonce: nonce, Sandbox: e.sandboxes(cfg)}), outputbudget.Factory{},
		instructions, plan.Factory{}, toolsearch.Factory{}, history.Factory{}, batch.Factory{}, monitor.Factory{},
		subagents.Factory{Knows: knows}, modelquery.Factory{},
	}
	coder, err := e.coder(cfg, nonce)
	if err != nil {
		return nil, err
	}
	drivers := plugin.Stack{standard.Factory{}, coder}
	return plugin.NewHost(plugin.Override(drivers, e.extra.Drivers), plugin.Override(builtin, e.extra.Plugins))
}

// beside runs run and serve concurrently. When one ends, it stops the other and
// waits for it. It returns the errors of both.
func beside(ctx context.Context, stop func(), run, serve func(context.Context) error) error {
	failed := make(chan error, 1)
	go func() {
		err := run(ctx)
		if err != nil {
			stop()
		}
		failed <- err
	}()
	err := serve(ctx)
	stop()
	return errors.Join(<-failed, err)
}

// load starts the plugin loader, after the startup period. The returned function
// stops it and waits for its end. The loader outlives ctx, because sessions that
// are closing still use their plugins.
func (e *server) load(ctx context.Context, loader *pluginloader.Loader) (end func()) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		select {
		case <-e.opening.over:
		case <-ctx.Done():
		}
		if err := loader.Run(ctx); err != nil {
			e.Log.Error("cannot load plugins from their directories", "error", err)
		}
	})
	return func() {
		stop()
		running.Wait()
	}
}

// shutdown shuts the built-in plugins down, for at most five seconds.
func (e *server) shutdown(ctx context.Context, host *plugin.Host) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := host.Shutdown(ctx); err != nil {
		e.Log.Error("plugins did not shut down", "error", err)
	}
}

// serveCommand implements lashd serve.
type serveCommand struct{}

// Help is shown by --help.
func (serveCommand) Help() string {
	return `You rarely need this command: other commands start a daemon in the background, which logs to lashd.log in the data
directory. lash stop stops it.

In the foreground, the daemon logs to stderr. SIGINT or SIGTERM stops it within seconds, and turns continue at the next start.

Exit codes: 0 stopped, 1 failure, 2 config.toml has errors, 65 the database was written by a newer lashd, 66 the database is
missing, 74 the database cannot be written or was moved, 75 another lashd uses the data directory.

Example: lashd --log debug serve`
}

// Run serves clients on the socket until a signal arrives, a client calls
// shutdown, or the database fails.
func (serveCommand) Run(ctx context.Context, e *server) error {
	return e.daemon(ctx, func(ctx context.Context, srv *rpc.Server, lock *socket.Lock) error {
		l, err := socket.Listen(lock, e.Socket, e.Log)
		if err != nil {
			return err
		}
		defer l.Close()
		e.Log.Info("serving", "socket", e.Socket, "data", e.Home)
		return srv.Listen(ctx, l)
	})
}
