package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/chat"
	"lashd/cmd/lash/turns"
	"lashd/rpc/protocol"
)

// sessionTurnsCommand implements lash session turns.
type sessionTurnsCommand struct {
	Session string `arg:"" optional:"" help:"Session; lash session lists the ids (default the one last used in this directory)."`
	console.InJSON
}

// Help is shown by --help.
func (sessionTurnsCommand) Help() string {
	return `Lists the turns that the model's history has, oldest first. lash session fork and lash session rewind take their numbers.

RESULT is done, failed, stopped or the state of a turn that has not ended; - if lashd did not run the turn. FILES has the number of
changed files with their added and removed lines; (undone) means that an undo reverted them. COST includes subagents; without prices,
TOKENS takes its place.

Example: lash session turns --json | jq -r '.[].input'`
}

// listedTurn is a turn in the JSON output of session turns.
type listedTurn struct {
	Number  int                  `json:"number"`
	TurnID  protocol.TurnID      `json:"turnId"`
	AtMs    int64                `json:"atMs"`
	Input   string               `json:"input"`             // all that people sent to it; else the first item
	State   protocol.TurnState   `json:"state,omitempty"`   // absent: lashd did not run it
	Outcome protocol.OutcomeKind `json:"outcome,omitempty"` // absent: it has not ended
	Files   int                  `json:"files"`
	Added   int                  `json:"added"`   // lines
	Removed int                  `json:"removed"` // lines
	Undone  bool                 `json:"undone,omitempty"`
	Tokens  int64                `json:"tokens"`  // without subagents
	CostUSD float64              `json:"costUsd"` // with subagents; 0 without prices

	title string
	cost  int64
}

// Run prints the turns, oldest first.
func (c sessionTurnsCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	id, err := ofFiles{Session: c.Session}.session(ctx, l)
	if err != nil {
		return err
	}
	list, err := readTurns(ctx, l, id)
	if err != nil {
		return err
	}
	reports, err := reportsOf(ctx, l, id, list)
	if err != nil {
		return err
	}
	rows := make([]listedTurn, 0, len(list))
	for i, turn := range list {
		rows = append(rows, listed(i+1, turn, reports[turn.ID]))
	}
	switch {
	case c.JSON:
		return console.PrintJSON(rows)
	case len(rows) == 0:
		e.Note("session %s has no turns yet", id)
		return nil
	}
	return table(turnRows(rows), "TOKENS", "COST", "FILES", "AT")
}

// caller returns the methods of the daemon for package turns.
func caller(ctx context.Context, l *daemon.Link) turns.Call {
	return func(method string, params, result any) error { return l.Call(ctx, method, params, result) }
}

// readTurns reads the turns of a session.
func readTurns(ctx context.Context, l *daemon.Link, id protocol.SessionID) (turns.List, error) {
	return turns.Read(caller(ctx, l), id)
}

// reportsOf reads the reports of turns. A fork shares turns with its original. Turns of a deleted session, or of another lashd, have no
// report.
func reportsOf(ctx context.Context, l *daemon.Link, id protocol.SessionID, list turns.List) (map[protocol.TurnID]*protocol.TurnReport, error) {
	reports := map[protocol.TurnID]*protocol.TurnReport{}
	missing := func(t *turns.Turn) bool { return reports[t.ID] == nil }
	for {
		if err := addReports(ctx, l, id, reports); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, missing) {
			return reports, nil
		}
		var r protocol.SessionReadResult
		err := l.Call(ctx, "session/read", protocol.SessionReadParams{SessionID: id, Limit: 1}, &r)
		source := r.Session.Relation.Source
		if _, data := console.WireError(err); data != nil || err == nil && source == nil {
			return reports, nil
		}
		if err != nil {
			return nil, err
		}
		id = source.SessionID
	}
}

// addReports adds the reports of the turns that a session has run. A session that does not exist has none.
func addReports(ctx context.Context, l *daemon.Link, id protocol.SessionID, reports map[protocol.TurnID]*protocol.TurnReport) error {
	for p := (protocol.TurnListParams{SessionID: id, Limit: 200}); ; {
		var r protocol.TurnListResult
		err := l.Call(ctx, "turn/list", p, &r)
		if _, data := console.WireError(err); data != nil && (data.Kind == protocol.KindSessionNotFound || data.Kind == protocol.KindSessionDeleted) {
			return nil
		}
		if err != nil {
			return err
		}
		for i := range r.Data {
			reports[r.Data[i].TurnID] = &r.Data[i]
		}
		if p.Cursor = r.NextCursor; p.Cursor == "" {
			return nil
		}
	}
}

// listed describes a turn. A turn without a report has no state and no usage.
func listed(number int, turn *turns.Turn, r *protocol.TurnReport) listedTurn {
	t := listedTurn{Number: number, TurnID: turn.ID, AtMs: turn.AtMs(), title: turn.Title()}
	if t.Input, _ = turn.Input(); t.Input == "" {
		t.Input = t.title
	}
	if p := turn.Point; p != nil {
		t.Files, t.Undone = p.Files, p.Undone
		t.Added, t.Removed = turns.Lines(turn.Files)
	}
	if r == nil {
		return t
	}
	t.State, t.Tokens, t.cost = r.State, r.Usage.Total(), r.Usage.Cost
	for _, child := range r.ChildrenUsage {
		t.cost += child.Usage.Cost
	}
	t.CostUSD = float64(t.cost) / 1e9
	if r.Outcome != nil {
		t.Outcome = r.Outcome.Kind
	}
	return t
}

// turnRows returns a table of turns with its header.
func turnRows(all []listedTurn) [][]string {
	priced, usage := slices.ContainsFunc(all, func(t listedTurn) bool { return t.cost > 0 }), "TOKENS"
	if priced {
		usage = "COST"
	}
	rows := [][]string{{"TURN", "AT", "RESULT", "FILES", usage, "INPUT"}}
	for _, t := range all {
		rows = append(rows, []string{strconv.Itoa(t.Number), moment(t.AtMs), t.result(), t.files(), t.usage(priced), console.OneLine(firstLine(t.title), 200)})
	}
	return rows
}

// firstLine returns the first line of a text that is not blank.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// result names how a turn ended, or its state.
func (t listedTurn) result() string {
	names := map[protocol.TurnState]string{"": "-", protocol.TurnCompleted: "done", protocol.TurnCancelled: "stopped"}
	if name, ok := names[t.State]; ok {
		return name
	}
	return string(t.State)
}

// files describes the file changes of a turn.
func (t listedTurn) files() string {
	if t.Files == 0 {
		return "-"
	}
	text := fmt.Sprintf("%d +%d -%d", t.Files, t.Added, t.Removed)
	if t.Undone {
		text += " (undone)"
	}
	return text
}

// usage returns the cost of a turn, or its tokens.
func (t listedTurn) usage(priced bool) string {
	switch {
	case t.State == "":
		return "-"
	case priced:
		return chat.Dollars(t.cost)
	}
	return fmt.Sprint(t.Tokens)
}

// mostDigits is the length of the largest number of a turn. Longer digits are an id.
const mostDigits = 6

// turnNamed returns the turn that text names: its number, its id or a unique prefix of it.
func turnNamed(list turns.List, id protocol.SessionID, text string) (*turns.Turn, error) {
	if n, err := strconv.Atoi(text); err == nil && len(text) <= mostDigits && !strings.HasPrefix(text, "0") {
		if len(list) == 0 {
			return nil, fmt.Errorf("session %s has no turns", id)
		}
		if n < 1 || n > len(list) {
			return nil, console.Exit(console.ExitUsage, fmt.Errorf("there is no turn %d; the turns of session %s are 1 to %d", n, id, len(list)))
		}
		return list[n-1], nil
	}
	var ids []protocol.TurnID
	for _, turn := range list {
		ids = append(ids, turn.ID)
	}
	found, err := byPrefix(text, "trn_", "turn", "lash session turns "+string(id), ids)
	if err != nil {
		return nil, err
	}
	if turn := list.Find(found); turn != nil {
		return turn, nil
	}
	return nil, errors.New("turn not found")
}
