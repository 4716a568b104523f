package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/rpc/protocol"
)

// codeHelp is the text of :help.
const codeHelp = `:globals  List the variables of the session.
:help     Show this help.
Ctrl-C    Stop the running code, or drop the current input.
Ctrl-D    Leave.

A line that ends with a colon or has an open bracket continues on the next line. A blank line ends a block.`

// shell reads cells from the terminal and runs them, until the end of the input.
func (s *codeSession) shell(ctx context.Context) error {
	interrupts, input := s.ownInterrupts(), newLineEditor()
	fmt.Fprintln(os.Stderr, s.banner())
	for {
		text, err := s.readCell(ctx, input)
		switch {
		case errors.Is(err, errInterrupted):
			continue
		case errors.Is(err, io.EOF):
			fmt.Fprintln(os.Stderr)
			return nil
		case err != nil:
			return err
		case strings.TrimSpace(text) != "":
			s.enter(ctx, text, interrupts)
		}
	}
}

// ownInterrupts takes Ctrl-C from the command, which it would end: in a shell it
// stops only the running code.
func (s *codeSession) ownInterrupts() <-chan os.Signal {
	<-s.env.Hears
	signal.Reset(os.Interrupt)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	return interrupts
}

// banner says which session the shell is in, and whether it changes anything.
func (s *codeSession) banner() string {
	what := "read-only: no tools, and assignments are forgotten after each cell"
	if s.command.Write {
		what = "writing: variables are kept, and the code may call tools"
	}
	return fmt.Sprintf("Session %s (%s). :help shows the commands.", s.id, what)
}

// readCell reads one line, or the lines of a block.
func (s *codeSession) readCell(ctx context.Context, input *lineEditor) (string, error) {
	var lines []string
	for {
		prompt := s.state.Language + "> "
		if len(lines) > 0 {
			prompt = strings.Repeat(".", len(s.state.Language)) + ". "
		}
		line, err := input.readLine(ctx, prompt)
		if err != nil {
			return "", err
		}
		lines = append(lines, line)
		if text := strings.Join(lines, "\n"); !continues(text) {
			return text, nil
		}
	}
}

// enter runs an input of the shell: a command that begins with a colon, or a cell.
// Problems are printed, and the shell goes on.
func (s *codeSession) enter(ctx context.Context, text string, interrupts <-chan os.Signal) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() { done <- s.perform(ctx, text) }()
	var err error
	select {
	case err = <-done:
	case <-interrupts:
		stop()
		err = <-done
	}
	if err != nil {
		console.Report(s.env.Name, err)
	}
}

// perform runs an input until it ends or ctx is done.
func (s *codeSession) perform(ctx context.Context, text string) error {
	switch command := strings.TrimSpace(text); {
	case command == ":help":
		fmt.Fprintln(os.Stderr, codeHelp)
		return nil
	case command == ":globals":
		return s.globals(ctx)
	case strings.HasPrefix(command, ":"):
		return fmt.Errorf("unknown command %s; :help lists the commands", console.OneLine(command, 40))
	}
	result, err := s.execute(ctx, text)
	if err != nil {
		return err
	}
	return s.show(text, result)
}

// globals prints the variables of the session.
func (s *codeSession) globals(ctx context.Context) error {
	var r protocol.CodeStateResult
	if err := s.env.Ask(ctx, "code/state", protocol.SessionParams{SessionID: s.id}, &r); err != nil {
		return err
	}
	if s.command.JSON {
		return console.PrintJSON(r)
	}
	if len(r.Globals) == 0 {
		s.env.Note("the session has no variables")
		return nil
	}
	rows := [][]string{{"NAME", "TYPE", "SIZE"}}
	for _, g := range r.Globals {
		rows = append(rows, []string{console.OneLine(g.Name, 60), console.OneLine(g.Type, 40), fmt.Sprintf("%d B", g.Size)})
	}
	return table(rows)
}
