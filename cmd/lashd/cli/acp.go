package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc"
	"lashd/rpc/acp"
	"lashd/rpc/socket"
)

// acpCommand implements lashd acp. It connects package acp to the daemon, or to a
// server in this process with --isolated.
type acpCommand struct {
	Driver   string `help:"How new sessions drive the model: standard, which calls tools natively, or rlm, which writes code cells." placeholder:"NAME"`
	Isolated bool   `help:"Serve from this process instead of a daemon, until stdin closes."`
	Login    bool   `help:"Run lash login on this terminal instead of serving an editor."`
}

// Help is shown by --help.
func (acpCommand) Help() string {
	return `Set "lashd acp" as the agent command of an editor that supports the Agent Client Protocol. docs/editors has the
settings for Zed, JetBrains, Neovim and Emacs. Each message is one line of JSON on stdin or stdout. The log goes to stderr.

The editor shares the sessions of the daemon with all other clients, and turns continue after the editor exits. lashd starts the
daemon if it is not running, and restarts it if it dies; the editor then continues where it was.

With --isolated, no daemon may use the same data directory.

Example: npx acpx --agent 'lashd acp' 'what does this project do?'`
}

// Run serves the editor on stdin and stdout until stdin ends. With --isolated, it
// runs a daemon in this process and gives the editor in-memory connections to it.
// Each of them has a goroutine that serves it; Run waits for all of them before
// the engine stops.
func (c acpCommand) Run(ctx context.Context, e *server) error {
	if c.Login {
		return e.login(ctx)
	}
	if !c.Isolated {
		return e.acp(ctx, c.Driver, e.Connect)
	}
	err := e.daemon(ctx, func(ctx context.Context, srv *rpc.Server, _ *socket.Lock) error {
		var serving sync.WaitGroup
		defer serving.Wait()
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		return e.acp(ctx, c.Driver, func(context.Context, bool) (net.Conn, error) {
			ours, theirs := net.Pipe()
			serving.Go(func() {
				if err := srv.Serve(ctx, theirs, true); err != nil {
					e.Log.Warn("connection of the editor ended", "error", err)
				}
			})
			return ours, nil
		})
	})
	if held, ok := errors.AsType[*socket.HeldError](err); ok {
		return console.Exit(console.ExitHeld, fmt.Errorf("%w; omit --isolated to use that daemon, or set another --home", held))
	}
	return err
}

// acp serves the editor, with dial as the way to the daemon. driver is that of new
// sessions, or "". API keys that the daemon lacks come from the environment of this
// process.
func (e *server) acp(ctx context.Context, driver string, dial func(context.Context, bool) (net.Conn, error)) error {
	return acp.Run(ctx, acp.Config{Dial: dial, Getenv: os.Getenv, Log: e.Log.With("component", "acp"), Version: daemon.Version, Driver: driver}, newBreakable(), os.Stdout)
}

// login runs lash login on the terminal of this process, with its data directory and
// socket. lash is the program beside this one or, without it, that of PATH.
func (e *server) login(ctx context.Context) error {
	lash, err := lashProgram()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, lash, "--home", e.Home, "--socket", e.Socket, "login")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return console.Exit(ended.ExitCode(), errors.New("the login did not succeed"))
	}
	return err
}

// lashProgram returns the path of lash.
func lashProgram() (string, error) {
	name := "lash"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), name)
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find the program lash: %w; install it beside lashd", err)
	}
	return path, nil
}
