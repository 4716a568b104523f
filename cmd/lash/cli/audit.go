package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// auditCommand implements lash audit.
type auditCommand struct {
	Session string   `arg:"" optional:"" help:"Session, with its subagents (default all sessions); lash session lists the ids."`
	Since   timeSpan `help:"List only the calls of this last time, such as 2h or 1d." placeholder:"DURATION"`
	Kind    string   `help:"List only calls that ran outside a sandbox, were allowed, or were refused." enum:",outside,allowed,refused" default:"" placeholder:"outside|allowed|refused"`
	Verify  bool     `help:"Check instead that the logs are complete and unchanged."`
	console.InJSON
}

// Help is shown by --help.
func (auditCommand) Help() string {
	return `Lists the tool calls that ran outside a sandbox, that a rule, a mode or a person allowed, and that were refused, oldest first. Commands in a
sandbox and tools that only read are not listed unless the sandbox refused something. The records are part of a session's log and are
deleted with the session.

Exit codes: 0 success, 1 session not found or, with --verify, a log is damaged.

Example: lash audit --since 1d --kind outside`
}

// Run lists or verifies the records.
func (c auditCommand) Run(ctx context.Context, e *daemon.Environment) error {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return err
	}
	defer l.Close()
	sessions, err := c.sessions(ctx, l)
	if err != nil {
		return err
	}
	if c.Verify {
		return c.verify(ctx, l, sessions)
	}
	entries := []protocol.AuditEntry{}
	progress := console.Begin("reading the logs", "Ctrl-C cancels it")
	defer progress.End()
	for i, id := range sessions {
		progress.Far("%d of %d sessions", i, len(sessions))
		if entries, err = c.read(ctx, l, id, entries); err != nil {
			return err
		}
	}
	progress.End()
	slices.SortStableFunc(entries, func(a, b protocol.AuditEntry) int { return cmp.Compare(a.AtMs, b.AtMs) })
	switch {
	case c.JSON:
		return console.PrintJSON(entries)
	case len(entries) == 0:
		e.Note("nothing to list: no call ran outside a sandbox, needed an answer or a rule, or was refused")
		return nil
	}
	return table(auditRows(entries), lessOfAudit...)
}

// sessions returns the sessions to list: the named one with its subagents, or all, also archived ones.
func (c auditCommand) sessions(ctx context.Context, l *daemon.Link) ([]protocol.SessionID, error) {
	all, err := allSessions(ctx, l)
	if err != nil || c.Session == "" {
		return idsOf(all), err
	}
	named, err := byPrefix(c.Session, "ses_", "session", "lash session", idsOf(all))
	if err != nil {
		return nil, err
	}
	ids := []protocol.SessionID{named}
	for n := 0; n < len(ids); n++ {
		for _, s := range all {
			if s.Relation.Parent == ids[n] {
				ids = append(ids, s.ID)
			}
		}
	}
	return ids, nil
}

// allSessions returns all sessions with subagents, the archived ones last.
func allSessions(ctx context.Context, l *daemon.Link) (all []protocol.Session, err error) {
	for _, archived := range []bool{false, true} {
		for cursor := ""; ; {
			var r protocol.SessionListResult
			if err := l.Call(ctx, "session/list", protocol.SessionListParams{Archived: archived, Children: true, Limit: 200, Cursor: cursor}, &r); err != nil {
				return nil, err
			}
			all, cursor = append(all, r.Data...), r.NextCursor
			if cursor == "" {
				break
			}
		}
	}
	return all, nil
}

// idsOf returns the ids of sessions.
func idsOf(all []protocol.Session) (ids []protocol.SessionID) {
	for _, s := range all {
		ids = append(ids, s.ID)
	}
	return ids
}

// read appends the records of a session.
func (c auditCommand) read(ctx context.Context, l *daemon.Link, id protocol.SessionID, entries []protocol.AuditEntry) ([]protocol.AuditEntry, error) {
	p := protocol.AuditListParams{SessionID: id, Kind: protocol.AuditKind(c.Kind), Limit: 500}
	if c.Since.Duration > 0 {
		p.SinceMs = time.Now().Add(-c.Since.Duration).UnixMilli()
	}
	for {
		var r protocol.AuditListResult
		if err := l.Call(ctx, "audit/list", p, &r); err != nil {
			return nil, err
		}
		entries, p.Cursor = append(entries, r.Data...), r.NextCursor
		if p.Cursor == "" {
			return entries, nil
		}
	}
}

// verified is the JSON output of --verify.
type verified struct {
	SessionID protocol.SessionID `json:"sessionId"`
	protocol.AuditVerifyResult
}

// verify checks the logs of sessions, and fails if one is damaged.
func (c auditCommand) verify(ctx context.Context, l *daemon.Link, sessions []protocol.SessionID) error {
	results, damaged := []verified{}, 0
	progress := console.Begin("verifying the logs", "Ctrl-C cancels it")
	defer progress.End()
	for i, id := range sessions {
		progress.Far("%d of %d sessions", i, len(sessions))
		v := verified{SessionID: id}
		if err := l.Call(ctx, "audit/verify", protocol.SessionParams{SessionID: id}, &v.AuditVerifyResult); err != nil {
			return err
		}
		if v.Problem != "" {
			damaged++
		}
		results = append(results, v)
	}
	progress.End()
	if err := c.print(results); err != nil {
		return err
	}
	if damaged > 0 {
		return console.Exit(console.ExitFailed, errors.New("logs are damaged: records may be missing or changed. lash doctor says what to do"))
	}
	return nil
}

// print prints the results of --verify.
func (c auditCommand) print(results []verified) error {
	if c.JSON {
		return console.PrintJSON(results)
	}
	rows := [][]string{{"SESSION", "EVENTS", "LOG"}}
	for _, v := range results {
		rows = append(rows, []string{string(v.SessionID), fmt.Sprint(v.Events), cmp.Or(console.Printable(v.Problem), "complete and unchanged")})
	}
	return table(rows)
}

// lessOfAudit are the columns that a narrow terminal does not show, the least important first.
var lessOfAudit = []string{"KIND", "SESSION", "TOOL", "WHERE", "TIME"}

// auditRows returns a table of records with its header.
func auditRows(entries []protocol.AuditEntry) [][]string {
	rows := [][]string{{"TIME", "SESSION", "KIND", "TOOL", "CALL", "WHERE", "DECISION"}}
	for _, a := range entries {
		rows = append(rows, []string{
			moment(a.AtMs), string(a.SessionID), string(a.Kind), console.OneLine(a.Tool, 30), console.OneLine(a.Subject, 80), whereItRan(a.AuditRecord), decidedBy(a.AuditRecord),
		})
	}
	return rows
}

// whereItRan says where the programs of a call ran, if it ran. A call that the sandbox refused something ran in it.
func whereItRan(a protocol.AuditRecord) string {
	switch {
	case a.Kind == protocol.AuditRefused && a.Why.By != protocol.DecidedBySandbox:
		return "did not run"
	case len(a.Granted) > 0:
		return "sandbox (" + string(a.Sandbox) + "), reaching " + console.OneLine(strings.Join(a.Granted, ", "), 200)
	case a.Sandbox != "":
		return "sandbox (" + string(a.Sandbox) + ")"
	case a.Kind == protocol.AuditOutside:
		return "outside"
	}
	return "-"
}

// answers are the choices of a decision in words.
var answers = map[protocol.DecisionChoice]string{
	protocol.ChooseAllowOnce: "allowed once", protocol.ChooseAllowSession: "allowed for the session", protocol.ChooseAllowAlways: "always allowed", protocol.ChooseReject: "denied",
}

// decidedBy says who decided over a call, and why.
func decidedBy(a protocol.AuditRecord) string {
	switch {
	case len(a.Hosts) > 0:
		return "The sandbox refused " + console.OneLine(hostNames(a.Hosts), 2000)
	case a.Choice == "":
		return console.OneLine(a.Why.Text, 160)
	case a.By == "deadline":
		return "no answer before the deadline: " + answers[a.Choice]
	}
	return fmt.Sprintf("%s by %s", cmp.Or(answers[a.Choice], string(a.Choice)), who(a.By))
}

// hostNames lists refused hosts.
func hostNames(hosts []protocol.RefusedHost) string {
	var all []string
	for _, h := range hosts {
		all = append(all, h.Host)
	}
	return strings.Join(all, ", ")
}
