package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"lashd/engine"
	"lashd/engine/builtin/outputbudget"
	"lashd/engine/builtin/shell"
	"lashd/engine/builtin/workspace"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/persistence"
	"lashd/rpc"
	"lashd/rpc/protocol"
	"lashd/rpc/socket"
)

// daemon runs lashd in a data directory until ctx is done; serve is called with a server once it is ready.
func (e *environment) daemon(ctx context.Context, serve func(context.Context, *rpc.Server, *socket.Lock) error) error {
	cfg, err := e.config()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	if err := os.MkdirAll(e.home, 0o700); err != nil {
		return err
	}
	lock, err := socket.Acquire(e.home)
	if held, ok := errors.AsType[*socket.HeldError](err); ok {
		return &exitError{exitHeld, held}
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	store, err := persistence.Open(ctx, persistence.Config{Dir: e.home, Log: e.log, Progress: func(s string) { e.log.Info(s) }})
	if errors.Is(err, persistence.ErrNewerSchema) {
		return &exitError{exitNewer, err}
	}
	if err != nil {
		return err
	}
	return e.runStore(ctx, store, cfg, lock, serve)
}

func (e *environment) runStore(ctx context.Context, store *persistence.Store, cfg config, lock *socket.Lock,
	serve func(context.Context, *rpc.Server, *socket.Lock) error,
) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	writing, stopWriting := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWriting()
	written := make(chan error, 1)
	go func() {
		err := store.Run(writing)
		if err != nil {
			stop()
		}
		written <- err
	}()
	err := e.runEngine(ctx, stop, store, cfg, lock, serve)
	stopWriting()
	if writeErr := <-written; writeErr != nil {
		return &exitError{exitIO, writeErr}
	}
	return errors.Join(err, store.Close())
}

func (e *environment) runEngine(ctx context.Context, stop func(), store *persistence.Store, cfg config, lock *socket.Lock,
	serve func(context.Context, *rpc.Server, *socket.Lock) error,
) error {
	nonce := store.Facts().StoreID
	if _, err := proc.Sweep(nonce); err != nil {
		e.log.Warn("processes of an earlier run could not be looked for", "error", err)
	}
	host, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{
		&workspace.Factory{}, shell.New(shell.Config{Environ: os.Environ(), Nonce: nonce}), outputbudget.Factory{},
	})
	if err != nil {
		return err
	}
	models, err := cfg.models()
	if err != nil {
		return err
	}
	var trace *engine.Trace
	if cfg.Trace {
		if trace, err = engine.OpenTrace(filepath.Join(e.home, "trace.jsonl")); err != nil {
			return err
		}
		defer trace.Close()
	}
	eng := engine.New(engine.Config{
		Store: store, Host: host, Models: models, Log: e.log, Trace: trace, StateDir: e.home,
		Defaults: protocol.Config{
			Driver: standard.ID, Budget: protocol.Budget{Iterations: 100},
			Approval: protocol.ApprovalConfig{Mode: protocol.ApprovalMode(cfg.Approval)},
		},
	})
	srv := rpc.New(rpc.Config{Engine: eng, Store: store, Log: e.log, Version: Version, Socket: e.socket, Trace: trace, Stop: stop})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	failed := make(chan error, 1)
	wg.Go(func() {
		if err := eng.Run(ctx); err != nil {
			failed <- err
			stop()
		}
	})
	err = serve(ctx, srv, lock)
	stop()
	wg.Wait()
	select {
	case engineErr := <-failed:
		return errors.Join(engineErr, err)
	default:
		return err
	}
}

type serveCommand struct{}

func (serveCommand) Run(ctx context.Context, e *environment) error {
	return e.daemon(ctx, func(ctx context.Context, srv *rpc.Server, lock *socket.Lock) error {
		l, err := socket.Listen(lock, e.socket, e.log)
		if err != nil {
			return err
		}
		defer l.Close()
		e.log.Info("serving", "socket", e.socket, "data", e.home)
		return srv.Listen(ctx, l)
	})
}
