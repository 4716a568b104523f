package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/foreign"
	"lashd/rpc/protocol"
)

// sessionImportCommand implements lash session import.
type sessionImportCommand struct {
	File  string `arg:"" optional:"" help:"Session file to import (default: list the files that Claude Code and Codex have of the current directory)."`
	Title string `help:"Title of the new session (default: that of the file)." placeholder:"TITLE"`
	Model string `help:"Model of the new session; lash model lists the names." placeholder:"NAME"`
	Cwd   string `help:"Workspace of the new session (default the current directory)." placeholder:"DIR"`
	console.InJSON
}

// Help is shown by --help.
func (sessionImportCommand) Help() string {
	return `Creates a session with the history of a file, and prints its id. The file is a document of lash session export --format json, or a
session file of Claude Code or Codex. Tool calls in it do not run. Settings, approvals and the state of plugins are those of a new
session. Attachments over 4 KiB of a document come along only if this daemon still has the original session; a text takes the place of
others.

Without a file, lists the files of the directory in ~/.claude/projects (CLAUDE_CONFIG_DIR) and ~/.codex/sessions (CODEX_HOME).

Examples:
  lash session export ses_01a1fcf3 --format json -o review.json
  lash session import review.json
  lash session import ~/.claude/projects/-home-me-app/5c6e7f80.jsonl`
}

// importPart is the size of a part in bytes.
const importPart = 1 << 20

// Run imports the document and prints the id of the new session.
func (c sessionImportCommand) Run(ctx context.Context, e *daemon.Environment) error {
	cwd, err := filepath.Abs(c.Cwd)
	if err != nil {
		return err
	}
	if c.File == "" {
		return c.list(e, cwd)
	}
	text, err := documentOf(c.File)
	if err != nil {
		return fmt.Errorf("nothing was imported from %s: %w", c.File, err)
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

// documentOf returns the document to import: the file, or a converted one.
func documentOf(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8 text")
	}
	agent, err := foreign.Recognize(text)
	if err != nil || agent == foreign.Lashd {
		return text, err
	}
	s, err := foreign.Convert(text)
	if err != nil {
		return nil, err
	}
	return s.Document()
}

// list prints the session files of other agents in a directory, newest first: what each is, and its whole path on the next line. It does
// not start the daemon.
func (c sessionImportCommand) list(e *daemon.Environment, cwd string) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	found, err := foreign.DefaultPlaces(os.Getenv, home).Find(cwd)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return console.PrintJSON(importables(found))
	case len(found) == 0:
		e.Note("Claude Code and Codex have no session files of %s", cwd)
		return nil
	}
	for _, f := range found {
		title := console.OneLine(fmt.Sprintf("%s %s, %s: %s", f.Agent, f.Version, moment(f.ModifiedMs), f.Title), 200)
		if width := console.Columns(os.Stdout); width > 0 {
			title = ansi.Truncate(title, width, "…")
		}
		if _, err := fmt.Fprintf(console.Stdout, "%s\n  %s\n", title, console.OneLine(f.Path, 4000)); err != nil {
			return err
		}
	}
	e.Note("to import one: lash session import FILE")
	return nil
}

// importable is a session file in the JSON output of session import without a file.
type importable struct {
	Agent   foreign.Agent `json:"agent"`
	Version string        `json:"version"`
	AtMs    int64         `json:"changedAtMs"`
	Title   string        `json:"title"`
	File    string        `json:"file"`
	Size    int64         `json:"size"`
}

// importables returns the files that were found as they are printed.
func importables(found []foreign.Found) []importable {
	all := []importable{}
	for _, f := range found {
		all = append(all, importable{f.Agent, f.Version, f.ModifiedMs, f.Title, f.Path, f.Size})
	}
	return all
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
