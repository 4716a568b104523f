package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/chat"
	"lashd/rpc/protocol"
)

// sessionShowCommand implements lash session show.
type sessionShowCommand struct {
	Session string `arg:"" optional:"" help:"Session; lash session lists the ids (default the one last used in this directory)."`
	Items   int    `help:"Number of newest items to show." default:"20"`
	console.InJSON
}

// Help is shown by --help.
func (sessionShowCommand) Help() string {
	return `Shows the settings, the token usage, the open decisions and the newest items.

Example: lash session show --items 5`
}

// shownSession is the JSON output of session show: the results of several methods
// in one object.
type shownSession struct {
	Session   protocol.Session         `json:"session"`
	Language  string                   `json:"codeLanguage,omitempty"` // of its code cells; empty: it has none yet
	Usage     protocol.UsageReadResult `json:"usage"`                  // includes subagents
	Decisions []protocol.Decision      `json:"decisions"`              // open ones
	Items     []protocol.Item          `json:"items"`                  // the newest, in order
}

// Run prints a summary of a session and its newest items. It changes nothing in
// the session.
func (c sessionShowCommand) Run(ctx context.Context, e *daemon.Environment) error {
	if c.Items < 0 {
		return console.Exit(console.ExitUsage, errors.New("--items must not be negative"))
	}
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	id, err := ofFiles{Session: c.Session}.session(ctx, l)
	if err != nil {
		return err
	}
	s, err := c.read(ctx, l, id)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(s)
	}
	if err := properties(sessionRows(s)); err != nil {
		return err
	}
	for _, item := range s.Items {
		if err := printItem(&item); err != nil {
			return err
		}
	}
	return nil
}

// read reads a session, its usage, its open decisions and its newest items. Pages
// arrive newest first, so each one goes in front of the others.
func (c sessionShowCommand) read(ctx context.Context, l *daemon.Link, id protocol.SessionID) (s shownSession, err error) {
	s.Items = []protocol.Item{}
	for cursor := ""; ; {
		var r protocol.SessionReadResult
		if err := l.Call(ctx, "session/read", protocol.SessionReadParams{SessionID: id, Cursor: cursor}, &r); err != nil {
			return s, err
		}
		s.Session, s.Language, s.Items, cursor = r.Session, r.CodeLanguage, append(r.Data, s.Items...), r.NextCursor
		if cursor == "" || len(s.Items) >= c.Items {
			break
		}
	}
	s.Items = slices.Clip(s.Items[max(0, len(s.Items)-c.Items):])
	if err := l.Call(ctx, "usage/read", protocol.UsageReadParams{SessionID: id}, &s.Usage); err != nil {
		return s, err
	}
	var waiting protocol.DecisionListResult
	err = l.Call(ctx, "decision/list", protocol.DecisionListParams{SessionID: id}, &waiting)
	s.Decisions = waiting.Data
	return s, err
}

// sessionRows returns the properties of a session as a table of names and values.
// Each open decision has a row.
func sessionRows(s shownSession) [][]string {
	of := s.Session
	rows := [][]string{
		{"session", string(of.ID)},
		{"title", console.OneLine(of.Title, 100)},
		{"state", stateOf(of.State)},
		{"directory", console.OneLine(of.Cwd, 200)},
		{"model", console.OneLine(of.Config.Model.ID, 60)},
		{"driver", driverLine(s)},
		{"created", moment(of.CreatedAtMs)},
		{"changed", moment(of.UpdatedAtMs)},
		{"turns", fmt.Sprint(of.TurnIndex)},
		{"tokens", tokens(s.Usage.Total)},
	}
	if of.Relation.Parent != "" {
		rows = append(rows, []string{"parent", string(of.Relation.Parent)})
	}
	for _, d := range s.Decisions {
		text := string(d.Kind)
		if d.Prompt != "" {
			text = chat.Question(&d, &of)
		}
		rows = append(rows, []string{"waiting for", console.OneLine(text, 100)})
	}
	return rows
}

// driverLine returns the driver of a session, with the language of its code cells.
func driverLine(s shownSession) string {
	line := console.OneLine(s.Session.Config.Driver, 60)
	if s.Language != "" {
		line += " (code cells in " + console.OneLine(s.Language, 60) + ")"
	}
	return line
}

// tokens formats the usage of a session: all input tokens, those of them read from
// a cache, and output tokens. The cost follows if prices are configured.
func tokens(u protocol.Usage) string {
	text := fmt.Sprintf("%d in (%d cached), %d out", u.Input+u.CacheRead+u.CacheWrite, u.CacheRead, u.Output)
	if u.Cost > 0 {
		text += ", " + chat.Dollars(u.Cost)
	}
	return text
}

// printItem prints an item of the conversation: messages in full, tool calls with
// their result and other items on one line.
func printItem(item *protocol.Item) (err error) {
	switch item.Kind {
	case protocol.ItemUserMessage:
		_, err = fmt.Fprintf(console.Stdout, "\n> %s\n", shownText(item.Text))
	case protocol.ItemAgentMessage:
		_, err = fmt.Fprintf(console.Stdout, "%s\n", shownMarkdown(item.Text))
	case protocol.ItemToolCall:
		_, err = fmt.Fprintf(console.Stdout, "%s\n", outcomeLine(item, 120))
	case protocol.ItemCodeCell:
		_, err = fmt.Fprintf(console.Stdout, "%s\n%s%s\n", codeLine(item), cellCallLines(item.Cell), cellOutcome(item))
	default:
		_, err = fmt.Fprintf(console.Stdout, "[%s: %s]\n", item.Kind, console.OneLine(item.Text, 150))
	}
	return err
}

// cellCallLines returns the calls of a code cell, one a line; empty without any.
func cellCallLines(r *protocol.CodeResult) string {
	if r == nil {
		return ""
	}
	var lines strings.Builder
	for i := range r.Calls {
		fmt.Fprintf(&lines, "  %s\n", cellCallLine(&r.Calls[i]))
	}
	if r.MoreCalls > 0 {
		fmt.Fprintf(&lines, "  %s\n", moreCallsLine(r.MoreCalls))
	}
	return lines.String()
}
