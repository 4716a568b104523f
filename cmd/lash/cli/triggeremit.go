package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/rpc/protocol"
)

// triggerEmitCommand implements lash trigger emit, which lets scripts and hooks
// of other programs start work.
type triggerEmitCommand struct {
	Type    string `arg:"" help:"Event type; lash call trigger/types lists the types."`
	Payload string `arg:"" optional:"" default:"{}" help:"Payload as a JSON object."`
	Source  string `help:"Source of the event, for triggers with --source." placeholder:"KEY"`
	Once    string `help:"Key that identifies the event, such as a build id. lashd delivers events with the same key once." placeholder:"KEY"`
	ofWorkspace
	console.InJSON
}

// Help is shown by --help.
func (triggerEmitCommand) Help() string {
	return `The type manual.emitted always exists. Plugins can declare more types.

Example: lash trigger emit manual.emitted '{"branch":"main"}' --once build-1742`
}

// Run emits an event and prints the deliveries that it causes, which may be none.
// It does not wait for the deliveries: a pending one is shown as reserved.
func (c triggerEmitCommand) Run(ctx context.Context, e *daemon.Environment) error {
	cwd, err := c.dir()
	if err != nil {
		return err
	}
	if !json.Valid([]byte(c.Payload)) {
		return console.Exit(console.ExitUsage, fmt.Errorf("the payload is not valid JSON: %s", c.Payload))
	}
	var r protocol.TriggerEmitResult
	err = e.Ask(ctx, "trigger/emit", protocol.TriggerEmitParams{
		Type: c.Type, Cwd: cwd, SourceKey: c.Source, OccurrenceKey: c.Once, Payload: json.RawMessage(c.Payload),
	}, &r)
	if err != nil {
		return console.ForFlags(err, map[string]string{"/type": "the event type", "/payload": "the payload", "/sourceKey": "--source", "/occurrenceKey": "--once"})
	}
	if c.JSON {
		return console.PrintJSON(r)
	}
	return table(deliveries([]protocol.Occurrence{r.Occurrence}), lessOfDelivery...)
}

// triggerHistoryCommand implements lash trigger history.
type triggerHistoryCommand struct {
	Key   string `arg:"" optional:"" help:"Show only events of this trigger."`
	Owner string `help:"Session that owns the trigger (default the user)." placeholder:"SESSION"`
	Lines int    `help:"Number of newest events to show." default:"20" short:"n"`
	console.InJSON
}

// Help is shown by --help.
func (triggerHistoryCommand) Help() string {
	return `STATE of a delivery is reserved (pending), delivered, refused, failed, or targetGone if its session was deleted.

Example: lash trigger history morning`
}

// Run prints the newest events with their deliveries. With a key, only those of
// that trigger of --owner, or of the user.
// A key without a trigger is an error, also if its events are still stored.
func (c triggerHistoryCommand) Run(ctx context.Context, e *daemon.Environment) error {
	p := protocol.TriggerHistoryParams{Limit: c.Lines}
	if c.Key != "" {
		owner, err := findSession(ctx, e, c.Owner)
		if err != nil {
			return err
		}
		all, err := triggers(ctx, e, "")
		if err != nil {
			return err
		}
		for _, g := range all {
			if g.Key == c.Key && g.SessionID == owner {
				p.TriggerID = g.ID
			}
		}
		if p.TriggerID == "" {
			return fmt.Errorf("no trigger %q; lash trigger list lists the keys", c.Key)
		}
	}
	var r protocol.TriggerHistoryResult
	if err := e.Ask(ctx, "trigger/history", p, &r); err != nil {
		return err
	}
	switch {
	case c.JSON:
		return console.PrintJSON(r.Data)
	case len(r.Data) == 0:
		e.Note("no trigger has fired yet")
		return nil
	}
	return table(deliveries(r.Data), lessOfDelivery...)
}

// lessOfDelivery are the columns that a narrow terminal does not show, the least important first.
var lessOfDelivery = []string{"SESSION", "EVENT", "REASON"}

// deliveries returns a table with a row for each delivery, and a header. An event
// without deliveries has one row, with dashes.
func deliveries(all []protocol.Occurrence) [][]string {
	rows := [][]string{{"AT", "EVENT", "TRIGGER", "STATE", "SESSION", "REASON"}}
	for _, o := range all {
		what := console.OneLine(strings.TrimSpace(o.Type+" "+o.SourceKey), 40)
		if len(o.Deliveries) == 0 {
			rows = append(rows, []string{moment(o.AtMs), what, "-", "-", "-", ""})
		}
		for _, d := range o.Deliveries {
			rows = append(rows, []string{moment(o.AtMs), what, console.OneLine(d.Key, 40), string(d.State), string(d.SessionID), console.OneLine(d.Reason, 80)})
		}
	}
	return rows
}
