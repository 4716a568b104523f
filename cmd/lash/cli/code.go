package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/client"
	"lashd/rpc/protocol"
)

// codeCommand implements lash code, which runs code cells in a session without a
// model: a shell on a terminal, else one cell.
type codeCommand struct {
	Session string  `arg:"" help:"Session; lash session lists the ids."`
	Code    *string `short:"c" help:"Code to run. Default: a shell on a terminal, else stdin as one cell." placeholder:"CODE"`
	Write   bool    `help:"Keep the variables that the code sets, and let it call tools within the rules of the session."`
	JSON    bool    `name:"json" help:"Print each result as a line of JSON."`
}

// Help is shown by --help.
func (codeCommand) Help() string {
	return `Runs code in a session whose model writes code cells (driver rlm), with the variables of its cells. Without --write, the code
only looks: it calls no tools, and the session forgets its assignments after each cell. No turn may be running.

In the shell, a line that ends with a colon or has an open bracket continues on the next line. A blank line ends a block. Ctrl-C stops the
code, Ctrl-D leaves.

Exit codes: 0 success, 1 an error of the code or a failure, 2 wrong usage, 4 cancelled.

Examples:
  lash code 0198 -c 'print(len(results))'
  lash code 0198 --write < fix.star`
}

// codeSession runs the cells of one session.
type codeSession struct {
	env     *daemon.Environment
	command codeCommand
	id      protocol.SessionID
	state   protocol.CodeStateResult // as of the start
}

// Run runs the code of the command line or of stdin, or a shell.
func (c codeCommand) Run(ctx context.Context, e *daemon.Environment) error {
	s, err := c.open(ctx, e)
	if err != nil {
		return err
	}
	if c.Code == nil && console.Terminal(os.Stdin) {
		return s.shell(ctx)
	}
	source, err := c.source()
	if err != nil {
		return err
	}
	result, err := s.execute(ctx, source)
	if err != nil {
		return err
	}
	return s.show(source, result)
}

// source returns the code of the command line, or all of stdin.
func (c codeCommand) source() (string, error) {
	text := ""
	if c.Code != nil {
		text = *c.Code
	} else {
		all, err := io.ReadAll(os.Stdin)
		if err != nil {
			return "", fmt.Errorf("read the code from stdin: %w", err)
		}
		text = string(all)
	}
	if strings.TrimSpace(text) == "" {
		return "", console.Exit(console.ExitUsage, errors.New("there is no code to run; pass it with -c or on stdin"))
	}
	return text, nil
}

// open finds the session and checks that it runs code.
func (c codeCommand) open(ctx context.Context, e *daemon.Environment) (*codeSession, error) {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	s := &codeSession{env: e, command: c}
	if s.id, err = sessionID(ctx, l, c.Session); err != nil {
		return nil, err
	}
	return s, l.Call(ctx, "code/state", protocol.SessionParams{SessionID: s.id}, &s.state)
}

// executeTries is how often a cell is requested if the daemon goes away.
const executeTries = 3

// execute runs a cell. If ctx ends, it stops the cell and waits until it has
// stopped. If the daemon is killed, execute asks the next one: a cell that only
// looks has no effects, and one that may write has an idempotency key.
func (s *codeSession) execute(ctx context.Context, source string) (*protocol.CodeExecuteResult, error) {
	p := protocol.CodeExecuteParams{SessionID: s.id, Source: source, Write: s.command.Write}
	if p.Write {
		p.IdempotencyKey = string(protocol.NewInputID())
	}
	for try := 1; ; try++ {
		result, err := s.executeOnce(ctx, &p)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, ctx.Err()
		case !client.Lost(err) || try == executeTries:
			return result, err
		}
	}
}

// executeOnce requests a cell and waits for its result. The connection outlives ctx,
// because the request to cancel the cell goes over it.
func (s *codeSession) executeOnce(ctx context.Context, p *protocol.CodeExecuteParams) (*protocol.CodeExecuteResult, error) {
	l, err := s.env.Dial(context.WithoutCancel(ctx), true, nil)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	result := &protocol.CodeExecuteResult{}
	return result, l.CallOrCancel(ctx, "code/execute", p, result)
}

// show prints a result: calls and errors on stderr, the rest on stdout. An error
// of the code has console.ExitFailed.
func (s *codeSession) show(source string, r *protocol.CodeExecuteResult) error {
	failed := r.Result.Error != ""
	if s.command.JSON {
		if err := console.PrintJSON(r); err != nil {
			return err
		}
	} else {
		s.showText(source, r)
	}
	if failed {
		return console.Exit(console.ExitFailed, nil)
	}
	return nil
}

// showText prints a result for a person.
func (s *codeSession) showText(source string, r *protocol.CodeExecuteResult) {
	for _, c := range r.Calls {
		fmt.Fprintln(os.Stderr, callLine(&c))
	}
	if r.Result.MoreCalls > 0 {
		fmt.Fprintf(os.Stderr, "[%d more calls]\n", r.Result.MoreCalls)
	}
	if printed := strings.TrimRight(r.Result.Printed, "\n"); printed != "" {
		fmt.Fprintln(console.Stdout, console.Printable(printed))
	}
	if value := string(r.Result.Value); value != "" && value != "null" {
		fmt.Fprintln(console.Stdout, console.Printable(console.Readable(r.Result.Value)))
	}
	for _, u := range r.Result.Unsaved {
		if s.command.Write {
			s.env.Note("%s is not stored and is lost when the session is unloaded: %s", u.Name, u.Reason)
		}
	}
	if r.Result.Error != "" {
		fmt.Fprintln(os.Stderr, console.Printable(markedError(source, &r.Result)))
	}
}

// callLine describes a tool call of a cell on one line.
func callLine(c *protocol.ToolCallRecord) string {
	item := &protocol.Item{Tool: c.Name, Args: c.Args, Title: protocol.TitleOf(protocol.ToolCall{Name: c.Name, Args: c.Args}), Output: &c.Output, DurationMs: c.DurationMs}
	switch c.Output.Status {
	case protocol.OutputUnknown:
		item.Status = protocol.ItemUnknown
	case protocol.OutputSuccess:
		item.Status = protocol.ItemDone
	}
	return outcomeLine(item, 120)
}

// markedError returns the error of a cell with the lines of the code before it. The
// line of the error has an arrow, and its column a caret. It replaces the copy of
// the line that the error may have.
func markedError(source string, r *protocol.CodeResult) string {
	lines := strings.Split(strings.TrimRight(source, "\n"), "\n")
	p := r.Position
	if p == nil || p.Line < 1 || p.Line > len(lines) {
		return r.ErrorText()
	}
	var text []string
	for line := range strings.SplitSeq(r.ErrorText(), "\n") {
		if !strings.HasPrefix(strings.TrimSpace(line), fmt.Sprintf("%d | ", p.Line)) {
			text = append(text, line)
		}
	}
	for n := max(1, p.Line-2); n <= p.Line; n++ {
		arrow := " "
		if n == p.Line {
			arrow = ">"
		}
		text = append(text, fmt.Sprintf("%s %d | %s", arrow, n, lines[n-1]))
	}
	if p.Column > 0 && p.Column <= len(lines[p.Line-1])+1 {
		before := len(fmt.Sprintf("> %d | ", p.Line)) + p.Column - 1
		text = append(text, strings.Repeat(" ", before)+"^")
	}
	return strings.Join(text, "\n")
}
