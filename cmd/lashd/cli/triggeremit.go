package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

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
	if c.wantsJSON() {
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
	if c.wantsJSON() {
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
