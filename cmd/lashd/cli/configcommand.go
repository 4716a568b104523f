package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// configCommand implements lashd config, which editors and people use to check
// config.toml.
type configCommand struct {
	File string `arg:"" optional:"" help:"File to check; - reads stdin (default config.toml of the data directory)."`
	inJSON
}

// Help is shown by --help.
func (configCommand) Help() string {
	return `Lists all errors in config.toml with their line numbers. lashd schema config describes the keys.

The daemon reads config.toml when it starts. If the file has changed since then, lashd config says so.

Exit codes: 0 valid, or no config.toml; 1 errors, or the named file does not exist.

Example: lashd config --no-json`
}

// configReport is the JSON output of lashd config. Problems is an empty list for a
// valid file.
type configReport struct {
	File     string          `json:"file"`
	Problems []configProblem `json:"problems"`
}

// Run checks the file without a daemon. For config.toml of the data directory it
// also notes whether the running daemon still uses an older version.
func (c configCommand) Run(ctx context.Context, e *environment) error {
	r := configReport{File: cmp.Or(c.File, e.configFile())}
	data, err := r.read()
	if errors.Is(err, os.ErrNotExist) && c.File == "" {
		err = nil // config.toml is optional, but a named file must exist
	}
	if err != nil {
		return err
	}
	if r.Problems = e.configProblems(data); r.Problems == nil {
		r.Problems = []configProblem{} // JSON clients expect a list
	}
	if err := c.print(r); err != nil {
		return err
	}
	if len(r.Problems) == 0 && !c.wantsJSON() {
		e.note("%s is valid", r.File)
	}
	if c.File == "" {
		e.noteStale(ctx)
	}
	if len(r.Problems) > 0 {
		return &exitError{exitFailed, nil}
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
	if c.wantsJSON() {
		return printJSON(r)
	}
	for _, p := range r.Problems {
		fmt.Fprintln(stdout, printable(fmt.Sprintf("%s: %s", r.File, p.Error())))
	}
	return nil
}

// noteStale prints a note if the running daemon has read an older config.toml.
// Without a daemon it does nothing.
func (e *environment) noteStale(ctx context.Context) {
	l, err := e.dial(ctx, false, nil)
	if err != nil {
		return // no daemon: the next one reads the current file
	}
	defer l.Close()
	if l.stale() {
		e.note("config.toml changed after the daemon started; %s", freshConfig)
	}
}

// freshConfig is the advice for a daemon that uses an old config.toml.
const freshConfig = `restart the daemon to apply it: lashd call shutdown '{"daemon":true}'`

// stale reports whether config.toml has changed since the daemon read it. It
// compares the time of the file with that of the lock file, which the daemon
// writes just after it has read config.toml. Both times come from the clock of the
// file system. If a file cannot be read, it returns false.
func (l *link) stale() bool {
	read, err := os.Stat(filepath.Join(l.daemon.DataDir, "lashd.lock.json"))
	if err != nil {
		return false
	}
	now, err := os.Stat(filepath.Join(l.daemon.DataDir, "config.toml"))
	return err == nil && now.ModTime().After(read.ModTime())
}

// configProblems returns the problems of a config.toml and of the script that it
// may name.
func (e *environment) configProblems(data []byte) []configProblem {
	c, problems := readConfig(data)
	if problems = append(problems, e.badDriver(data, c)...); len(problems) > 0 {
		return problems
	}
	if _, err := e.within(c).source(e.keySources(c, ""), notSet); err != nil {
		return []configProblem{{Line: lineOf(data, []string{"script"}, 0), Message: err.Error()}}
	}
	return nil
}

// within resolves relative paths of a config.toml against the data directory, so
// that they do not depend on where the daemon was started.
func (e *environment) within(c config) config {
	if c.Script != "" && !filepath.IsAbs(c.Script) {
		c.Script = filepath.Join(e.home, c.Script)
	}
	return c
}
