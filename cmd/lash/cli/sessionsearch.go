package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// sessionSearchCommand implements lash session search.
type sessionSearchCommand struct {
	Words    []string `arg:"" help:"Words to find; a word also finds longer ones that begin with it."`
	Here     bool     `help:"Search only sessions of the current directory."`
	Archived bool     `help:"Search archived sessions instead."`
	Limit    int      `short:"n" help:"Maximum number of matches, 1 to 100." default:"20"`
	console.InJSON
}

// Help is shown by --help.
func (sessionSearchCommand) Help() string {
	return `Finds messages and titles that have all words: titles first, then messages, each newest first. Case and accents do not matter.
Quote a phrase for the shell and for the search: '"off by one"'. The first search makes an index, which takes a while in a large store.

Example: lash session search parser '"off by one"'`
}

// foundMatches is the JSON output of session search.
type foundMatches struct {
	Matches []protocol.SessionMatch `json:"matches"`
	Pending int64                   `json:"pending,omitempty"` // messages that are not in the index yet
}

// Run prints the matches. A note says if there are more, or if the index is not complete.
func (c sessionSearchCommand) Run(ctx context.Context, e *daemon.Environment) error {
	p := protocol.SessionSearchParams{Query: strings.Join(c.Words, " "), Archived: c.Archived, Limit: c.Limit}
	if c.Here {
		var err error
		if p.Cwd, err = filepath.Abs("."); err != nil {
			return err
		}
	}
	found, more, err := c.search(ctx, e, p)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return console.PrintJSON(found)
	case len(found.Matches) == 0:
		e.Note("no session has these words%s", pendingNote(found.Pending))
		return nil
	}
	if more || found.Pending > 0 {
		e.Note("these are the first %d matches%s", len(found.Matches), pendingNote(found.Pending))
	}
	return table(matchRows(found.Matches), lessOfMatch...)
}

// search reads pages until it has enough matches; a page can be empty although more follow.
func (c sessionSearchCommand) search(ctx context.Context, e *daemon.Environment, p protocol.SessionSearchParams) (found foundMatches, more bool, err error) {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return found, false, err
	}
	defer l.Close()
	progress := console.Begin("searching; the first search makes an index", "Ctrl-C cancels it")
	defer progress.End()
	found.Matches = []protocol.SessionMatch{}
	for {
		var r protocol.SessionSearchResult
		if err := l.Call(ctx, "session/search", p, &r); err != nil {
			return found, false, console.ForFlags(err, map[string]string{"/query": "the words", "/limit": "--limit"})
		}
		found.Matches, found.Pending = append(found.Matches, r.Data...), r.Pending
		progress.Far("%d matches", len(found.Matches))
		if p.Cursor = r.NextCursor; p.Cursor == "" || len(found.Matches) >= c.Limit {
			rest := len(found.Matches) > c.Limit
			found.Matches = found.Matches[:min(len(found.Matches), c.Limit)]
			return found, rest || p.Cursor != "", nil
		}
	}
}

// pendingNote says that the index is not complete; empty if it is.
func pendingNote(pending int64) string {
	if pending == 0 {
		return ""
	}
	return fmt.Sprintf("; lashd has not indexed about %d messages yet, so search again later", pending)
}

// lessOfMatch are the columns that a narrow terminal does not show, the least important first.
var lessOfMatch = []string{"DIRECTORY", "FROM", "TIME"}

// matchRows returns a table of matches with its header.
func matchRows(matches []protocol.SessionMatch) [][]string {
	rows := [][]string{{"SESSION", "TIME", "FROM", "DIRECTORY", "TEXT"}}
	for _, m := range matches {
		from, at := string(m.Role), m.AtMs
		if from == "" {
			from, at = "title", m.UpdatedAtMs
		}
		rows = append(rows, []string{string(m.SessionID), moment(at), from, console.OneLine(m.Cwd, 60), console.OneLine(m.Snippet, 200)})
	}
	return rows
}
