package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/console"
)

// configCommand implements lashd config, which editors and people use to check
// config.toml.
type configCommand struct {
	File string `arg:"" optional:"" help:"File to check; - reads stdin (default config.toml of the data directory)."`
	console.InJSON
}

// Help is shown by --help.
func (configCommand) Help() string {
	return `Lists all errors in config.toml with their line numbers. lashd schema config describes the keys.

The daemon reads config.toml when it starts. If the file has changed since then, lashd config says so.

Exit codes: 0 valid, or no config.toml; 1 errors, or the named file does not exist.

Example: lashd config`
}

// configReport is the JSON output of lashd config. Problems is an empty list for a
// valid file.
type configReport struct {
	File     string           `json:"file"`
	Problems []config.Problem `json:"problems"`
}

// Run checks the file without a daemon. For config.toml of the data directory it
// also notes whether the running daemon still uses an older version.
func (c configCommand) Run(ctx context.Context, e *server) error {
	r := configReport{File: cmp.Or(c.File, config.File(e.Home))}
	data, err := r.read()
	if errors.Is(err, os.ErrNotExist) && c.File == "" {
		err = nil // config.toml is optional, but a named file must exist
	}
	if err != nil {
		return err
	}
	if r.Problems = config.Problems(e.Home, data, e.drivers()...); r.Problems == nil {
		r.Problems = []config.Problem{} // JSON clients expect a list
	}
	if err := c.print(r); err != nil {
		return err
	}
	if len(r.Problems) == 0 && !c.JSON {
		e.Note("%s is valid", r.File)
	}
	if c.File == "" {
		e.NoteStale(ctx)
	}
	if len(r.Problems) > 0 {
		return console.Exit(console.ExitFailed, nil)
	}
	return nil
}

// read reads the file, or stdin for "-".
func (r configReport) read() ([]byte, error) {
	if r.File == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(r.File)
}

// print prints the problems, one per line, or the report as JSON.
func (c configCommand) print(r configReport) error {
	if c.JSON {
		return console.PrintJSON(r)
	}
	for _, p := range r.Problems {
		fmt.Fprintln(console.Stdout, console.Printable(fmt.Sprintf("%s: %s", r.File, p.Error())))
	}
	return nil
}
