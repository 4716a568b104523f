package cli

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// triggerCommand implements lash trigger.
type triggerCommand struct {
	List    triggerListCommand    `cmd:"" default:"withargs" help:"List triggers (default)."`
	Add     triggerAddCommand     `cmd:"" help:"Add a trigger."`
	Remove  triggerRemoveCommand  `cmd:"" help:"Remove a trigger."`
	Enable  triggerEnableCommand  `cmd:"" help:"Enable a trigger."`
	Disable triggerDisableCommand `cmd:"" help:"Disable a trigger."`
	Emit    triggerEmitCommand    `cmd:"" help:"Emit an event for triggers."`
	History triggerHistoryCommand `cmd:"" help:"List events and their deliveries."`
}

// triggerListCommand implements lash trigger list.
type triggerListCommand struct {
	console.InJSON
	Owner string `help:"Show only triggers of this session; lash session lists the ids." placeholder:"SESSION"`
}

// Help is shown by --help.
func (triggerListCommand) Help() string {
	return `WHEN is a schedule, a glob pattern for files, or an event type. NEXT is the next time of a schedule. TARGET is the session
to wake, or the directory of the new session.

Example: lash trigger list`
}

// Run prints the triggers. Problems of triggers, such as a directory that cannot
// be watched, follow on stderr.
func (c triggerListCommand) Run(ctx context.Context, e *daemon.Environment) error {
	owner, err := findSession(ctx, e, c.Owner)
	if err != nil {
		return err
	}
	all, err := triggers(ctx, e, owner)
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(all)
	}
	if len(all) == 0 {
		e.Note("no triggers; create one with lash trigger add")
		return nil
	}
	rows := [][]string{{"TRIGGER", "OWNER", "STATE", "WHEN", "NEXT", "TARGET"}}
	for _, g := range all {
		rows = append(rows, []string{console.OneLine(g.Key, 40), cmp.Or(string(g.SessionID), "user"), triggerState(g), when(g.Source), moment(g.NextAtMs), target(g.Action)})
	}
	if err := table(rows, "OWNER", "TARGET", "NEXT"); err != nil {
		return err
	}
	for _, g := range all {
		if g.Problem != "" {
			e.Note("%s: %s", g.Key, g.Problem)
		}
	}
	return nil
}

// triggers returns all triggers, or only those of a session. An empty owner means
// all.
func triggers(ctx context.Context, e *daemon.Environment, owner protocol.SessionID) ([]protocol.Trigger, error) {
	l, err := e.Dial(ctx, true, nil)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	all := []protocol.Trigger{}
	for cursor := ""; ; {
		var r protocol.TriggerListResult
		if err := l.Call(ctx, "trigger/list", protocol.TriggerListParams{SessionID: owner, Cursor: cursor, Limit: 200}, &r); err != nil {
			return nil, err
		}
		all, cursor = append(all, r.Data...), r.NextCursor
		if cursor == "" {
			return all, nil
		}
	}
}

// triggerState returns the STATE column of a trigger: off, failing or on.
func triggerState(g protocol.Trigger) string {
	switch {
	case !g.Enabled:
		return "off"
	case g.Problem != "":
		return "failing"
	}
	return "on"
}

// when returns the WHEN column of a trigger: the schedule, the files or the event type.
func when(s protocol.TriggerSource) string {
	switch {
	case s.Cron != nil:
		return console.OneLine(strings.TrimSpace(s.Cron.Schedule+" "+s.Cron.TimeZone), 40)
	case s.File != nil:
		return console.OneLine(filepath.Join(s.File.Dir, s.File.Glob), 60)
	}
	return console.OneLine(strings.TrimSpace(s.Type+" "+s.Key), 40)
}

// target returns the TARGET column of a trigger: the session to wake, or the
// directory of the new session.
func target(a protocol.TriggerAction) string {
	if a.Session != nil {
		return console.OneLine(a.Session.Cwd, 60)
	}
	return string(a.SessionID)
}

// triggerKey are the arguments that name a trigger. Keys are unique for each
// owner.
type triggerKey struct {
	Key   string `arg:"" help:"Trigger key; lash trigger list lists the keys."`
	Owner string `help:"Session that owns the trigger (default the user)." placeholder:"SESSION"`
}

// triggerRemoveCommand implements lash trigger remove.
type triggerRemoveCommand struct{ triggerKey }

// Help is shown by --help.
func (triggerRemoveCommand) Help() string {
	return `Events that occurred before are still delivered.

Example: lash trigger remove morning`
}

// Run deletes the trigger; an unknown key is an error.
func (c triggerRemoveCommand) Run(ctx context.Context, e *daemon.Environment) error {
	owner, err := findSession(ctx, e, c.Owner)
	if err != nil {
		return err
	}
	if err := e.Ask(ctx, "trigger/delete", protocol.TriggerDeleteParams{Key: c.Key, SessionID: owner}, nil); err != nil {
		return err
	}
	e.Note("removed the trigger %s", c.Key)
	return nil
}

// triggerEnableCommand implements lash trigger enable.
type triggerEnableCommand struct{ triggerKey }

// Help is shown by --help.
func (triggerEnableCommand) Help() string {
	return `Events that occurred while the trigger was disabled are skipped.

Example: lash trigger enable morning`
}

// Run enables the trigger. A schedule continues with its next time.
func (c triggerEnableCommand) Run(ctx context.Context, e *daemon.Environment) error {
	return c.set(ctx, e, true)
}

// triggerDisableCommand implements lash trigger disable.
type triggerDisableCommand struct{ triggerKey }

// Help is shown by --help.
func (triggerDisableCommand) Help() string {
	return `Example: lash trigger disable morning`
}

// Run disables the trigger until it is enabled again.
func (c triggerDisableCommand) Run(ctx context.Context, e *daemon.Environment) error {
	return c.set(ctx, e, false)
}

// set enables or disables the trigger. The other settings stay.
func (k triggerKey) set(ctx context.Context, e *daemon.Environment, on bool) error {
	owner, err := findSession(ctx, e, k.Owner)
	if err != nil {
		return err
	}
	if err := e.Ask(ctx, "trigger/update", protocol.TriggerUpdateParams{Key: k.Key, SessionID: owner, Enabled: &on}, nil); err != nil {
		return err
	}
	e.Note("%s the trigger %s", map[bool]string{true: "enabled", false: "disabled"}[on], k.Key)
	return nil
}
