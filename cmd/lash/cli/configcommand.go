package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
)

// configCommand implements lash config. It runs lashd config, because only lashd knows the drivers of a custom build.
type configCommand struct {
	File string `arg:"" optional:"" help:"File to check; - reads stdin (default config.toml of the data directory)."`
	console.InJSON
}

// Help is shown by --help.
func (configCommand) Help() string {
	return `Lists all errors in config.toml with their line numbers. lashd schema config describes the keys.

The daemon reads config.toml when it starts. If the file has changed since then, lash config says so.

Exit codes: 0 valid, or no config.toml; 1 errors, or the named file does not exist.

Example: lash config`
}

// Run checks the file. The output and the exit code are those of lashd config.
func (c configCommand) Run(ctx context.Context, e *daemon.Environment) error {
	lashd, err := e.Program()
	if err != nil {
		return err
	}
	args := []string{"--home", e.Home, "--socket", e.Socket, "config"}
	if c.JSON {
		args = append(args, "--json")
	}
	if c.File != "" {
		args = append(args, "--", c.File)
	}
	cmd := exec.CommandContext(ctx, lashd, args...)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, console.Stdout, &said
	err = cmd.Run()
	if said.Len() > 0 {
		console.Stderr(strings.TrimSuffix(asLash(said.String()), "\n"))
	}
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		return console.Exit(exited.ExitCode(), nil)
	}
	return err
}

// asLash returns messages of lashd with the name of this program in front.
func asLash(text string) string {
	if rest, ok := strings.CutPrefix(text, "lashd: "); ok {
		text = "lash: " + rest
	}
	return strings.ReplaceAll(text, "\nlashd: ", "\nlash: ")
}
