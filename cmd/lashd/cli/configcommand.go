package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

type configCommand struct {
	File string `arg:"" optional:"" help:"Another file to check; - checks what is on stdin."`
	JSON *bool  `help:"Print JSON; the default unless stdout is a terminal." negatable:""`
}

// Help is shown by --help.
func (configCommand) Help() string {
	return `Tells all that is wrong with config.toml of the data directory, with its line, and starts nothing. A running daemon goes on with
what it read when it started. lashd schema config tells what may be in it.

Exit codes: 0 all is well, or there is no file; 1 something is wrong.

Example: lashd config --no-json`
}

// configReport is what config prints.
type configReport struct {
	File     string          `json:"file"`
	Problems []configProblem `json:"problems"`
}

func (c configCommand) Run(e *environment) error {
	r := configReport{File: cmp.Or(c.File, e.configFile())}
	data, err := r.read()
	if err != nil {
		return err
	}
	if r.Problems = e.configProblems(data); r.Problems == nil {
		r.Problems = []configProblem{} // an empty list is what clients expect
	}
	if err := c.print(r); err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return &exitError{exitFailed, nil}
	}
	return nil
}

func (r configReport) read() ([]byte, error) {
	if r.File == "-" {
		return io.ReadAll(os.Stdin)
	}
	data, err := os.ReadFile(r.File)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

func (c configCommand) print(r configReport) error {
	if c.JSON != nil && *c.JSON || c.JSON == nil && !terminal(os.Stdout) {
		return printJSON(r)
	}
	for _, p := range r.Problems {
		fmt.Fprintln(stdout, printable(fmt.Sprintf("%s: %s", r.File, p.Error())))
	}
	return nil
}

// configProblems are those of a config.toml of the data directory, and of what it names.
func (e *environment) configProblems(data []byte) []configProblem {
	c, problems := readConfig(data)
	if len(problems) > 0 {
		return problems
	}
	if _, err := e.within(c).models(); err != nil {
		return []configProblem{{Line: lineOf(data, []string{"script"}, 0), Message: err.Error()}}
	}
	return nil
}

// within has the paths of a config.toml be from the data directory.
func (e *environment) within(c config) config {
	if c.Script != "" && !filepath.IsAbs(c.Script) {
		c.Script = filepath.Join(e.home, c.Script)
	}
	return c
}
