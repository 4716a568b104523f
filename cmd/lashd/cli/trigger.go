package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"lashd/rpc/protocol"
)

type triggerCommand struct {
	List    triggerListCommand    `cmd:"" default:"withargs" help:"List triggers; the default."`
	Add     triggerAddCommand     `cmd:"" help:"Say what is to be done when something happens."`
	Remove  triggerRemoveCommand  `cmd:"" help:"End a trigger."`
	Enable  triggerEnableCommand  `cmd:"" help:"Switch a trigger on again."`
	Disable triggerDisableCommand `cmd:"" help:"Switch a trigger off."`
	Emit    triggerEmitCommand    `cmd:"" help:"Say that something has happened."`
	History triggerHistoryCommand `cmd:"" help:"List what happened, and what has come of it."`
}

type triggerListCommand struct {
	inJSON
	Owner string `help:"Only those of this session; lashd session lists sessions." placeholder:"SESSION"`
}

// Help is shown by --help.
func (triggerListCommand) Help() string {
	return `WHEN is a schedule, a glob of files, or the type of what happens; NEXT is when a schedule is due; DOES is the session that is woken,
or the directory of the new one.

Example: lashd trigger list`
}

func (c triggerListCommand) Run(ctx context.Context, e *environment) error {
	all, err := triggers(ctx, e, protocol.SessionID(c.Owner))
	if err != nil {
		return err
	}
	if wantsJSON(c.JSON) {
		return printJSON(all)
	}
	if len(all) == 0 {
		e.note("there are no triggers; lashd trigger add makes one")
		return nil
	}
	rows := [][]string{{"TRIGGER", "OWNER", "STATE", "WHEN", "NEXT", "DOES"}}
	for _, g := range all {
		rows = append(rows, []string{oneLine(g.Key, 40), cmp.Or(string(g.SessionID), "user"), triggerState(g), when(g.Source), moment(g.NextAtMs), does(g.Action)})
	}
	if err := table(rows); err != nil {
		return err
	}
	for _, g := range all {
		if g.Problem != "" {
			e.note("%s: %s", g.Key, g.Problem)
		}
	}
	return nil
}

func triggers(ctx context.Context, e *environment, owner protocol.SessionID) ([]protocol.Trigger, error) {
	l, err := e.dial(ctx, true, nil)
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

func triggerState(g protocol.Trigger) string {
	switch {
	case !g.Enabled:
		return "off"
	case g.Problem != "":
		return "ailing"
	}
	return "on"
}

func when(s protocol.TriggerSource) string {
	switch {
	case s.Cron != nil:
		return oneLine(strings.TrimSpace(s.Cron.Schedule+" "+s.Cron.TimeZone), 40)
	case s.File != nil:
		return oneLine(filepath.Join(s.File.Dir, s.File.Glob), 60)
	}
	return oneLine(strings.TrimSpace(s.Type+" "+s.Key), 40)
}

func moment(ms int64) string {
	if ms == 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format("2006-01-02 15:04")
}

func does(a protocol.TriggerAction) string {
	if a.Session != nil {
		return oneLine(a.Session.Cwd, 60)
	}
	return string(a.SessionID)
}

// triggerKey names a trigger.
type triggerKey struct {
	Key   string `arg:"" help:"Key of the trigger; lashd trigger list lists them."`
	Owner string `help:"Session that owns it; the default is the user." placeholder:"SESSION"`
}

type triggerAddCommand struct {
	Key   string `arg:"" help:"What it is called from now on."`
	Text  string `help:"What the model is told, before what has happened." required:"" placeholder:"TEXT"`
	Owner string `help:"Session that owns it, and with which it goes; the default is the user." placeholder:"SESSION"`

	Cron   string `help:"When: at the times of a schedule." xor:"when" required:"" placeholder:"'0 9 * * 1-5'"`
	Files  string `help:"When: files change whose path fits a glob." xor:"when" required:"" placeholder:"GLOB"`
	On     string `help:"When: something else happens; lashd call trigger/types lists what may." xor:"when" required:"" placeholder:"TYPE"`
	Zone   string `help:"With --cron: time zone; the default is that of the machine." placeholder:"Europe/Zurich"`
	Missed string `help:"With --cron: what becomes of times at which nobody was there: skip, runOnce or runAll." placeholder:"POLICY"`
	Dir    string `help:"With --files: directory in which they are; the default is that of the session." placeholder:"DIR"`
	Source string `help:"With --on: only that of this source." placeholder:"KEY"`
	Filter string `help:"JSON Schema that what comes with it must fit." placeholder:"SCHEMA"`

	Wake  string `help:"Does: wakes a session; lashd session lists sessions." xor:"does" required:"" placeholder:"SESSION"`
	In    string `help:"Does: begins a session in a directory, each time." xor:"does" required:"" placeholder:"DIR"`
	Model string `help:"With --in: a name from lashd model." placeholder:"NAME"`
	inJSON
}

// Help is shown by --help.
func (triggerAddCommand) Help() string {
	return `A schedule has five fields (minute, hour, day, month, weekday), or is @hourly, @daily, @weekly, @monthly, @yearly or @every 90m. What a
trigger does is a turn like any other: what it may do without being asked is for the settings of its session to say.

Example: lashd trigger add morning --cron '0 9 * * 1-5' --missed runOnce --in ~/src/project --text 'Summarise what was merged since yesterday.'`
}

func (c triggerAddCommand) Run(ctx context.Context, e *environment) error {
	p, err := c.params()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	var r protocol.TriggerResult
	if err := e.ask(ctx, "trigger/register", p, &r); err != nil {
		return err
	}
	if wantsJSON(c.JSON) {
		return printJSON(r.Trigger)
	}
	if r.Trigger.NextAtMs > 0 {
		fmt.Fprintln(stdout, "due at", moment(r.Trigger.NextAtMs))
	}
	return nil
}

func (c triggerAddCommand) params() (p protocol.TriggerRegisterParams, err error) {
	p.Key, p.SessionID, p.Action.Text = c.Key, protocol.SessionID(c.Owner), c.Text
	if c.Filter != "" {
		if !json.Valid([]byte(c.Filter)) {
			return p, fmt.Errorf("--filter is not JSON: %s", c.Filter)
		}
		p.Filter = json.RawMessage(c.Filter)
	}
	if p.Source, err = c.source(); err != nil {
		return p, err
	}
	if c.In == "" {
		p.Action.Kind, p.Action.SessionID = protocol.TriggerWakes, protocol.SessionID(c.Wake)
		return p, nil
	}
	dir, err := filepath.Abs(c.In)
	p.Action.Kind, p.Action.Session = protocol.TriggerStarts, &protocol.TriggerSession{Cwd: dir, Model: c.Model}
	return p, err
}

func (c triggerAddCommand) source() (protocol.TriggerSource, error) {
	switch {
	case c.Cron != "" && c.Missed == "":
		return protocol.TriggerSource{}, fmt.Errorf("--missed must say what becomes of times at which nobody was there: skip, runOnce or runAll")
	case c.Cron != "":
		return protocol.TriggerSource{Type: protocol.TypeCronTick, Cron: &protocol.CronSource{
			Schedule: c.Cron, TimeZone: c.Zone, Missed: protocol.MissedTicks(c.Missed)}}, nil
	case c.Files != "":
		f := &protocol.FileSource{Glob: c.Files}
		if c.Dir == "" {
			return protocol.TriggerSource{Type: protocol.TypeFileChanged, File: f}, nil
		}
		dir, err := filepath.Abs(c.Dir)
		f.Dir = dir
		return protocol.TriggerSource{Type: protocol.TypeFileChanged, File: f}, err
	}
	return protocol.TriggerSource{Type: c.On, Key: c.Source}, nil
}

type triggerRemoveCommand struct{ triggerKey }

// Help is shown by --help.
func (triggerRemoveCommand) Help() string {
	return `What has happened before is still delivered.

Example: lashd trigger remove morning`
}

func (c triggerRemoveCommand) Run(ctx context.Context, e *environment) error {
	return e.ask(ctx, "trigger/delete", protocol.TriggerDeleteParams{Key: c.Key, SessionID: protocol.SessionID(c.Owner)}, nil)
}

type triggerEnableCommand struct{ triggerKey }

// Help is shown by --help.
func (triggerEnableCommand) Help() string {
	return `What happened while it was off is not made up for.

Example: lashd trigger enable morning`
}

func (c triggerEnableCommand) Run(ctx context.Context, e *environment) error {
	return c.set(ctx, e, true)
}

type triggerDisableCommand struct{ triggerKey }

// Help is shown by --help.
func (triggerDisableCommand) Help() string {
	return `Example: lashd trigger disable morning`
}

func (c triggerDisableCommand) Run(ctx context.Context, e *environment) error {
	return c.set(ctx, e, false)
}

func (k triggerKey) set(ctx context.Context, e *environment, on bool) error {
	return e.ask(ctx, "trigger/update", protocol.TriggerUpdateParams{Key: k.Key, SessionID: protocol.SessionID(k.Owner), Enabled: &on}, nil)
}

type triggerEmitCommand struct {
	Type    string `arg:"" help:"What has happened; lashd call trigger/types lists what may."`
	Payload string `arg:"" optional:"" default:"{}" help:"What comes with it, as a JSON object."`
	Source  string `help:"Which one of that type it happened to." placeholder:"KEY"`
	Once    string `help:"What makes it the same occurrence, such as the id of a mail: it then comes once, however often it is said." placeholder:"KEY"`
	ofWorkspace
	inJSON
}

// Help is shown by --help.
func (triggerEmitCommand) Help() string {
	return `manual.emitted is always there; others are declared by plugins.

Example: lashd trigger emit manual.emitted '{"branch":"main"}' --once build-1742`
}

func (c triggerEmitCommand) Run(ctx context.Context, e *environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	if !json.Valid([]byte(c.Payload)) {
		return &exitError{exitUsage, fmt.Errorf("the payload is not JSON: %s", c.Payload)}
	}
	var r protocol.TriggerEmitResult
	err = e.ask(ctx, "trigger/emit", protocol.TriggerEmitParams{
		Type: c.Type, Cwd: cwd, SourceKey: c.Source, OccurrenceKey: c.Once, Payload: json.RawMessage(c.Payload),
	}, &r)
	if err != nil {
		return err
	}
	if wantsJSON(c.JSON) {
		return printJSON(r)
	}
	return table(deliveries([]protocol.Occurrence{r.Occurrence}))
}

type triggerHistoryCommand struct {
	Key   string `arg:"" optional:"" help:"Only what is something to this trigger."`
	Owner string `help:"Session that owns it; the default is the user." placeholder:"SESSION"`
	Lines int    `help:"How many of the newest." default:"20" short:"n"`
	inJSON
}

// Help is shown by --help.
func (triggerHistoryCommand) Help() string {
	return `STATE is reserved, as long as it is to be done; delivered, refused or failed; or targetGone, when the session is deleted.

Example: lashd trigger history morning`
}

func (c triggerHistoryCommand) Run(ctx context.Context, e *environment) error {
	p := protocol.TriggerHistoryParams{Limit: c.Lines}
	if c.Key != "" {
		all, err := triggers(ctx, e, "")
		if err != nil {
			return err
		}
		for _, g := range all {
			if g.Key == c.Key && string(g.SessionID) == c.Owner {
				p.TriggerID = g.ID
			}
		}
		if p.TriggerID == "" {
			return fmt.Errorf("there is no trigger %s; lashd trigger list lists them", c.Key)
		}
	}
	var r protocol.TriggerHistoryResult
	if err := e.ask(ctx, "trigger/history", p, &r); err != nil {
		return err
	}
	if wantsJSON(c.JSON) {
		return printJSON(r.Data)
	}
	return table(deliveries(r.Data))
}

// deliveries is a row for each delivery, or for an occurrence that is nothing to anybody.
func deliveries(all []protocol.Occurrence) [][]string {
	rows := [][]string{{"AT", "WHAT", "TRIGGER", "STATE", "SESSION", "REASON"}}
	for _, o := range all {
		what := oneLine(strings.TrimSpace(o.Type+" "+o.SourceKey), 40)
		if len(o.Deliveries) == 0 {
			rows = append(rows, []string{moment(o.AtMs), what, "-", "-", "-", ""})
		}
		for _, d := range o.Deliveries {
			rows = append(rows, []string{moment(o.AtMs), what, oneLine(d.Key, 40), string(d.State), string(d.SessionID), oneLine(d.Reason, 80)})
		}
	}
	return rows
}
