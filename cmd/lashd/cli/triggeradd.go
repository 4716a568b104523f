package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"

	"lashd/rpc/protocol"
)

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
	if p.SessionID, err = e.sessionID(ctx, c.Owner); err != nil {
		return err
	}
	if p.Action.SessionID, err = e.sessionID(ctx, c.Wake); err != nil {
		return err
	}
	var r protocol.TriggerResult
	if err := e.ask(ctx, "trigger/register", p, &r); err != nil {
		return err
	}
	if c.wantsJSON() {
		return printJSON(r.Trigger)
	}
	if r.Trigger.NextAtMs > 0 {
		fmt.Fprintln(stdout, "due at", moment(r.Trigger.NextAtMs))
	}
	return nil
}

func (c triggerAddCommand) params() (p protocol.TriggerRegisterParams, err error) {
	p.Key, p.Action.Text = c.Key, c.Text
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
		p.Action.Kind = protocol.TriggerWakes
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
