package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/internal/manpage"
)

// manCommand implements lash man.
type manCommand struct {
	Command string `arg:"" optional:"" help:"Command, such as session (default: lash itself)."`
}

// Help is shown by --help.
func (manCommand) Help() string {
	return `Shows the page of a command with all of its subcommands. It needs no installed pages, only the program man.

Example: lash man session`
}

// Run writes the page to a temporary file and has man show it.
func (c manCommand) Run(ctx context.Context) error {
	page, err := c.page()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "lash-man-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, page.Name+".1")
	if err := os.WriteFile(file, []byte(page.Text), 0o600); err != nil {
		return err
	}
	man := exec.CommandContext(ctx, "man", file)
	man.Stdin, man.Stdout, man.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = man.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("the program man is not installed; the same text: lash %s", strings.TrimLeft(c.Command+" --help", " "))
	}
	return err
}

// page returns the page of the command.
func (c manCommand) page() (manpage.Page, error) {
	name := program
	if c.Command != "" {
		name += "-" + c.Command
	}
	for _, p := range manpage.Pages(Model(), daemon.Version, time.Now()) {
		if p.Name == name {
			return p, nil
		}
	}
	return manpage.Page{}, console.Exit(console.ExitUsage, fmt.Errorf("there is no command %s; lash --help lists the commands", console.OneLine(c.Command, 40)))
}
