// Package service makes the service manager of the user start lashd: systemd on Linux, launchd on macOS. It needs no root, and writes one
// file. Each Service is used by one command at a time.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Daemon is what the service starts.
type Daemon struct {
	Program string // absolute path of lashd that stays valid after upgrades
	Home    string // data directory
	Socket  string
	Log     string // file for stdout and stderr
	Path    string // PATH, in which commands of agents look for programs
}

// Service is the service of one service manager.
type Service struct {
	File string // that defines the service
	// text writes the content of File.
	text func(Daemon) (string, error)
	// Commands of the service manager. loaded succeeds if disable can; without it, disable always can.
	probe, enable, start, restart, state, loaded, disable, forget command
	manager                                                       string
}

// command is a program and its arguments.
type command []string

// String returns the command as a person would enter it.
func (c command) String() string {
	var words []string
	for _, word := range c {
		if strings.ContainsAny(word, " \t'\"$\\`&;()<>|*?") {
			word = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// ErrNoManager means that the service manager does not run here, or not for this user.
var ErrNoManager = errors.New("does not answer")

// New returns the service for this system. It touches no files.
func New() (Service, error) {
	user, err := os.UserHomeDir()
	if err != nil {
		return Service{}, err
	}
	switch runtime.GOOS {
	case "linux":
		config, err := os.UserConfigDir()
		return systemd(config), err
	case "darwin":
		return launchd(user, os.Getuid()), nil
	}
	return Service{}, fmt.Errorf("there is no service for %s; lash starts lashd when it needs it", runtime.GOOS)
}

// Restart returns the command that restarts the daemon: that of the service if there is one.
func Restart() string {
	if s, err := New(); err == nil && s.Installed() {
		return s.restart.String()
	}
	return "lash stop; the next command starts the new one"
}

// Installed reports whether the file of the service exists.
func (s Service) Installed() bool {
	_, err := os.Lstat(s.File)
	return err == nil
}

// Install writes the file and enables the service, so that it starts at login. With start it also starts now. After ErrNoManager the file
// is written; Later says what is left to do.
func (s Service) Install(ctx context.Context, d Daemon, start bool) error {
	text, err := s.text(d)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.File), 0o755); err != nil {
		return err
	}
	if err := replace(s.File, text); err != nil {
		return err
	}
	if err := s.answers(ctx); err != nil {
		return err
	}
	if err := run(ctx, s.enable); err != nil || !start {
		return err
	}
	return run(ctx, s.start)
}

// replace writes a file in one step.
func replace(path, text string) error {
	temp := path + ".new"
	if err := os.WriteFile(temp, []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

// Later returns the commands that Install could not run.
func (s Service) Later() string { return s.enable.String() + " && " + s.start.String() }

// Manager returns the name of the service manager.
func (s Service) Manager() string { return s.manager }

// Start returns the command that starts an installed service.
func (s Service) Start() string { return s.start.String() }

// Remove stops and disables the service, and removes its file. It is not an error if there is none. Data stays.
func (s Service) Remove(ctx context.Context) error {
	if !s.Installed() {
		return nil
	}
	manages := s.answers(ctx) == nil
	if manages && (s.loaded == nil || run(ctx, s.loaded) == nil) {
		if err := run(ctx, s.disable); err != nil {
			return err
		}
	}
	if err := os.Remove(s.File); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if manages && s.forget != nil {
		return run(ctx, s.forget)
	}
	return nil
}

// State returns what the service manager says about the service, in one line.
func (s Service) State(ctx context.Context) (string, error) {
	if err := s.answers(ctx); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, s.state[0], s.state[1:]...).Output() // which fails for a service that does not run
	said := strings.TrimSpace(string(out))
	if _, after, ok := strings.Cut(said, "state = "); ok { // launchd describes the agent in many lines
		said = after
	}
	if state, _, _ := strings.Cut(said, "\n"); state != "" {
		return state, nil
	}
	return "", fmt.Errorf("%s: %w", s.state, err)
}

// answers returns ErrNoManager, with what the service manager says, if it does not serve this user.
func (s Service) answers(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, s.probe[0], s.probe[1:]...).CombinedOutput()
	if err == nil {
		return nil
	}
	said, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return fmt.Errorf("%s %w (%s)", s.manager, ErrNoManager, cmp.Or(said, err.Error()))
}

// run runs a command of the service manager. An error has what the command says.
func run(ctx context.Context, c command) error {
	out, err := exec.CommandContext(ctx, c[0], c[1:]...).CombinedOutput()
	if said := strings.TrimSpace(string(out)); err != nil && said != "" {
		return fmt.Errorf("%s: %w: %s", c, err, said)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	return nil
}
