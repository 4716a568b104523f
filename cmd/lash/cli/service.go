package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/installation"
	"lashd/cmd/lash/service"
)

// serviceCommand implements lash service.
type serviceCommand struct {
	Install serviceInstall `cmd:"" help:"Start lashd at login, and again after a crash."`
	Status  serviceStatus  `cmd:"" default:"withargs" help:"Show whether the service is installed and runs (default)."`
	Remove  serviceRemove  `cmd:"" help:"Stop the service and remove it; data stays."`
}

// Help is shown by --help.
func (serviceCommand) Help() string {
	return `Without a service, lash starts lashd when it needs it. With one, lashd also runs after a restart of the machine, so schedules and
other triggers work without a command of yours.

On Linux it is a systemd unit of your user, on macOS an agent of launchd. Neither needs root. On Linux it stops when you log out,
unless you run: loginctl enable-linger

The service does not see API keys of your shell. Store them with lash login. It gets the PATH that you have when you install it.`
}

// serviceInstall implements lash service install.
type serviceInstall struct{}

// Run writes the service and starts it, unless a daemon already runs.
func (serviceInstall) Run(ctx context.Context, e *daemon.Environment) error {
	s, err := service.New()
	if err != nil {
		return err
	}
	program, err := e.Program()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(e.Home, 0o700); err != nil { // for the log
		return err
	}
	running := daemonRuns(ctx, e)
	d := service.Daemon{Program: installation.Stable(program), Home: e.Home, Socket: e.Socket, Log: e.LogFile(), Path: os.Getenv("PATH")}
	switch err := s.Install(ctx, d, !running); {
	case errors.Is(err, service.ErrNoManager):
		return fmt.Errorf("the service is not enabled, because %w; %s is written, so where %s answers, run: %s", err, s.File, s.Manager(), s.Later())
	case err != nil:
		return err
	case running:
		fmt.Fprintf(console.Stdout, "Installed %s. lashd starts at login. A daemon already runs and was left alone; to let the service take over: lash stop && %s\n", s.File, s.Start())
	default:
		fmt.Fprintf(console.Stdout, "Installed %s. lashd runs, and starts at login.\n", s.File)
	}
	return nil
}

// daemonRuns reports whether a daemon answers.
func daemonRuns(ctx context.Context, e *daemon.Environment) bool {
	l, err := e.Dial(ctx, false, nil)
	if err != nil {
		return false
	}
	l.Close()
	return true
}

// serviceStatus implements lash service status.
type serviceStatus struct{}

// Help is shown by --help.
func (serviceStatus) Help() string {
	return "Exit codes: 0 installed, 1 not installed, or systemd or launchd does not answer."
}

// Run prints the file of the service and its state.
func (serviceStatus) Run(ctx context.Context) error {
	s, err := service.New()
	if err != nil {
		return err
	}
	if !s.Installed() {
		return fmt.Errorf("the service is not installed: there is no %s; to install it: lash service install", s.File)
	}
	state, err := s.State(ctx)
	if err != nil {
		return fmt.Errorf("the state of the service is unknown, because %w; it is installed in %s", err, s.File)
	}
	fmt.Fprintf(console.Stdout, "%s: %s\n", s.File, state)
	return nil
}

// serviceRemove implements lash service remove.
type serviceRemove struct{}

// Run removes the service. Sessions, configuration and keys stay.
func (serviceRemove) Run(ctx context.Context, e *daemon.Environment) error {
	s, err := service.New()
	if err != nil {
		return err
	}
	if !s.Installed() {
		fmt.Fprintln(console.Stdout, "The service is not installed.")
		return nil
	}
	if err := s.Remove(ctx); err != nil {
		return fmt.Errorf("remove the service: %w", err)
	}
	fmt.Fprintf(console.Stdout, "Removed %s. The data in %s stays. lash starts lashd when it needs it.\n", s.File, e.Home)
	return nil
}
