package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// sessionExportCommand implements lash session export.
type sessionExportCommand struct {
	Session   string `arg:"" optional:"" help:"Session; lash session lists the ids (default the one last used in this directory)."`
	Format    string `help:"markdown, for people, or json, with the complete history." enum:"markdown,json" default:"markdown" placeholder:"FORMAT"`
	Reasoning bool   `help:"Include the model's reasoning in Markdown; JSON always has it."`
	Output    string `short:"o" help:"File to create (default stdout)." placeholder:"FILE"`
}

// Help is shown by --help.
func (sessionExportCommand) Help() string {
	return `Writes a session as a document. Markdown has the prompts, the answers, a line for each tool call and the diffs of edits. An existing
file is not overwritten. Attachments are named, but not included.

Examples:
  lash session export -o review.md
  lash session export ses_01a1fcf3 --format json | jq .session.title`
}

// Run writes the document, part by part. A file of an export that failed is removed.
func (c sessionExportCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	id, err := ofFiles{Session: c.Session}.session(ctx, l)
	if err != nil {
		return err
	}
	if c.Output == "" {
		_, err := c.write(ctx, l, id, console.Stdout)
		return err
	}
	f, err := os.OpenFile(c.Output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s already exists; choose another file", c.Output)
	}
	if err != nil {
		return err
	}
	n, err := c.write(ctx, l, id, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(c.Output))
	}
	e.Note("wrote %s (%d KiB)", c.Output, (n+1023)>>10)
	return nil
}

// write writes all parts of the document and returns their size. Text for a terminal has no control characters.
func (c sessionExportCommand) write(ctx context.Context, l *daemon.Link, id protocol.SessionID, out io.Writer) (size int, err error) {
	progress := console.Begin("exporting "+string(shortID(id)), "Ctrl-C cancels it")
	defer progress.End()
	printable := out == io.Writer(console.Stdout) && console.Terminal(os.Stdout)
	for p := (protocol.SessionExportParams{SessionID: id, Format: protocol.ExportFormat(c.Format), Reasoning: c.Reasoning}); ; {
		var r protocol.SessionExportResult
		if err := l.Call(ctx, "session/export", p, &r); err != nil {
			return size, err
		}
		if printable {
			r.Text = console.Printable(r.Text)
		}
		n, err := io.WriteString(out, r.Text)
		size += n
		progress.Far("%d KiB", size>>10)
		if p.Cursor = r.NextCursor; err != nil || p.Cursor == "" {
			return size, err
		}
	}
}
