package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// triggerAddCommand implements lash trigger add. kong enforces that exactly one
// event and one target is given.
type triggerAddCommand struct {
	Key   string `arg:"" help:"Key of the new trigger."`
	Text  string `help:"Instruction for the agent; the event is appended." required:"" placeholder:"TEXT"`
	Owner string `help:"Session that owns the trigger and is deleted with it (default the user)." placeholder:"SESSION"`

	Cron   string `help:"Fire on this schedule." xor:"when" required:"" placeholder:"'0 9 * * 1-5'"`
	Files  string `help:"Fire when files that match this glob pattern change." xor:"when" required:"" placeholder:"GLOB"`
	On     string `help:"Fire on events of this type; lash call trigger/types lists the types." xor:"when" required:"" placeholder:"TYPE"`
	Zone   string `help:"With --cron: time zone (default the system time zone)." placeholder:"Europe/Zurich"`
	Missed string `help:"With --cron: what to do about times that passed while lashd was stopped: skip, runOnce or runAll (default runOnce)." placeholder:"POLICY" enum:",skip,runOnce,runAll" default:""`
	Dir    string `help:"With --files: directory of the pattern (default the directory of the session)." placeholder:"DIR"`
	Source string `help:"With --on: fire only on events that name this source." placeholder:"KEY"`
	Filter string `help:"JSON Schema that the event payload must match." placeholder:"SCHEMA"`

	Wake   string `help:"Wake this session; lash session lists the ids." xor:"does" required:"" placeholder:"SESSION"`
	In     string `help:"Start a new session in this directory for each event." xor:"does" required:"" placeholder:"DIR"`
	Model  string `help:"With --in: model; lash model lists the names." placeholder:"NAME"`
	Effort string `help:"With --in: reasoning effort; the model must support it." placeholder:"NAME"`
	console.InJSON
}

// Help is shown by --help.
func (triggerAddCommand) Help() string {
	return `Choose one event (--cron, --files or --on) and one target (--wake or --in).

A schedule has five fields (minute, hour, day, month, weekday), or is @hourly, @daily, @weekly, @monthly, @yearly, @every 90m or @every 1d. The
approval settings of the session apply to the turns that a trigger starts.

Examples:
  lash trigger add morning --cron '0 9 * * 1-5' --in ~/src/project --text 'Summarize the merged changes.'
  lash trigger add tests --files '**/*.go' --dir . --wake ses_01a1 --text 'Run the tests.'`
}

// Run registers the trigger and prints when a schedule fires next. A trigger with
// the same key is an error.
// The daemon checks the schedule, the glob and the type of event.
func (c triggerAddCommand) Run(ctx context.Context, e *daemon.Environment) error {
	p, err := c.params()
	if err != nil {
		return console.Exit(console.ExitUsage, err)
	}
	if p.SessionID, err = findSession(ctx, e, c.Owner); err != nil {
		return err
	}
	if p.Action.SessionID, err = findSession(ctx, e, c.Wake); err != nil {
		return err
	}
	var r protocol.TriggerResult
	if err := e.Ask(ctx, "trigger/register", p, &r); err != nil {
		return console.ForFlags(err, triggerFlags)
	}
	if c.JSON {
		return console.PrintJSON(r.Trigger)
	}
	return console.Say(added(&r.Trigger))
}

// triggerFlags are the flags of trigger add by the parameters that they set.
var triggerFlags = map[string]string{
	"/key": "the key", "/filter": "--filter", "/source/type": "--on", "/source/key": "--source", "/source/cron/schedule": "--cron", "/source/cron/timeZone": "--zone",
	"/source/file/glob": "--files", "/source/file/dir": "--dir", "/sessionId": "--owner", "/action/sessionId": "--wake", "/action/text": "--text",
	"/action/session/cwd": "--in", "/action/session/model": "--model", "/action/session/effort": "--effort",
}

// missedTimes say what happens to times that passed while lashd was stopped.
var missedTimes = map[protocol.MissedTicks]string{
	protocol.MissedSkip: "skipped", protocol.MissedRunOnce: "made up for once at the next start", protocol.MissedRunAll: "all made up for at the next start",
}

// added says what a new trigger does next.
func added(g *protocol.Trigger) string {
	text := "added the trigger " + console.OneLine(g.Key, 60)
	if g.Source.Cron == nil {
		return text
	}
	return fmt.Sprintf("%s; next run: %s; times missed while lashd is stopped are %s (--missed)", text, moment(g.NextAtMs), missedTimes[g.Source.Cron.Missed])
}

// params converts the flags to a request. Session ids are still to be filled in,
// because looking them up needs the daemon.
// All of its errors are usage errors.
func (c triggerAddCommand) params() (p protocol.TriggerRegisterParams, err error) {
	p.Key, p.Action.Text = c.Key, c.Text
	if c.Filter != "" {
		if !json.Valid([]byte(c.Filter)) {
			return p, fmt.Errorf("--filter is not valid JSON: %s", c.Filter)
		}
		p.Filter = json.RawMessage(c.Filter)
	}
	if p.Source, err = c.source(); err != nil {
		return p, err
	}
	if c.In == "" {
		p.Action.Kind = protocol.TriggerWakes
		return p, nil
	}
	dir, err := filepath.Abs(c.In)
	p.Action.Kind, p.Action.Session = protocol.TriggerStarts, &protocol.TriggerSession{Cwd: dir, Model: c.Model, Effort: effortParam(c.Effort)}
	return p, err
}

// source converts --cron, --files or --on to the source of the trigger. Paths
// become absolute, since the daemon has another working directory.
func (c triggerAddCommand) source() (protocol.TriggerSource, error) {
	switch {
	case c.Cron == "" && c.Missed+c.Zone != "":
		return protocol.TriggerSource{}, fmt.Errorf("--missed and --zone require --cron")
	case c.Files == "" && c.Dir != "":
		return protocol.TriggerSource{}, fmt.Errorf("--dir requires --files")
	case c.On == "" && c.Source != "":
		return protocol.TriggerSource{}, fmt.Errorf("--source requires --on")
	case c.In == "" && c.Model != "":
		return protocol.TriggerSource{}, fmt.Errorf("--model requires --in")
	case c.In == "" && c.Effort != "":
		return protocol.TriggerSource{}, fmt.Errorf("--effort requires --in")
	case c.Cron != "":
		return protocol.TriggerSource{Type: protocol.TypeCronTick, Cron: &protocol.CronSource{
			Schedule: c.Cron, TimeZone: c.Zone, Missed: cmp.Or(protocol.MissedTicks(c.Missed), protocol.MissedRunOnce)}}, nil
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
