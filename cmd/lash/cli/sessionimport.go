package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// sessionImportCommand implements lash session import.
type sessionImportCommand struct {
	File  string `arg:"" help:"Document to import, as lash session export --format json writes it."`
	Title string `help:"Title of the new session (default: that of the document)." placeholder:"TITLE"`
	Model string `help:"Model of the new session; lash model lists the names." placeholder:"NAME"`
	Cwd   string `help:"Workspace of the new session (default the current directory)." placeholder:"DIR"`
	console.InJSON
}

// Help is shown by --help.
func (sessionImportCommand) Help() string {
	return `Creates a session with the history of a document, and prints its id. Tool calls in it do not run. Settings, approvals and the state of
plugins are those of a new session. Attachments over 4 KiB come along only if this daemon still has the original session; a text takes
the place of others.

Examples:
  lash session export ses_01a1fcf3 --format json -o review.json
  lash session import review.json`
}

// importPart is the size of a part in bytes.
const importPart = 1 << 20

// Run imports the document and prints the id of the new session.
func (c sessionImportCommand) Run(ctx context.Context, e *daemon.Environment) error {
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	if !utf8.Valid(text) {
		return fmt.Errorf("%s is not a document of lash session export: it is not UTF-8", c.File)
	}
	cwd, err := filepath.Abs(c.Cwd)
	if err != nil {
		return err
	}
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	r, err := upload(ctx, l, text, protocol.SessionImportParams{Cwd: cwd, Title: c.Title, Model: c.Model})
	if _, data := console.WireError(err); data != nil {
		return fmt.Errorf("nothing was imported from %s: %w", c.File, err)
	}
	if err != nil {
		return err
	}
	if r.Missing > 0 {
		e.Note("%d files of the history are not here, so a text takes their place", r.Missing)
	}
	if c.JSON {
		return console.PrintJSON(r)
	}
	e.Note("imported %d turns; to continue: lash chat %s", r.Session.TurnIndex, r.Session.ID)
	_, err = fmt.Fprintln(console.Stdout, r.Session.ID)
	return err
}

// upload sends a document part by part. last has the parameters of the last part.
func upload(ctx context.Context, l *daemon.Link, text []byte, last protocol.SessionImportParams) (*protocol.SessionImportResult, error) {
	progress := console.Begin("importing", "Ctrl-C cancels it")
	defer progress.End()
	id := string(protocol.NewInputID())
	for offset := 0; ; {
		n := partLength(text[offset:])
		p := protocol.SessionImportParams{}
		if offset+n == len(text) {
			p = last
			p.Done, p.IdempotencyKey = true, id
		}
		p.UploadID, p.Offset, p.Document = id, int64(offset), string(text[offset:offset+n])
		r := &protocol.SessionImportResult{}
		if err := l.Call(ctx, "session/import", p, r); err != nil {
			return nil, err
		}
		if offset += n; p.Done {
			if r.Session == nil {
				return nil, errors.New("the daemon did not return the new session")
			}
			return r, nil
		}
		progress.Far("%d of %d KiB", offset>>10, len(text)>>10)
	}
}

// partLength returns the length of the next part, which ends with a whole character.
func partLength(text []byte) int {
	if len(text) <= importPart {
		return len(text)
	}
	n := importPart
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}
