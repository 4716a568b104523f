package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// runResult is the JSON output of lash run --json.
type runResult struct {
	SessionID  protocol.SessionID   `json:"sessionId"`
	TurnID     protocol.TurnID      `json:"turnId"`
	State      protocol.TurnState   `json:"state"`
	Outcome    protocol.OutcomeKind `json:"outcome"`
	Answer     string               `json:"answer"`          // text of the model; empty without any
	Value      json.RawMessage      `json:"value,omitempty"` // set if the turn ended with a value
	Error      string               `json:"error,omitempty"` // the message on stderr; absent if the exit code is 0
	Usage      protocol.Usage       `json:"usage"`           // of the turn, without subagents
	CostUSD    float64              `json:"costUsd"`         // of the turn and its subagents; 0 without prices
	DurationMs int64                `json:"durationMs"`
}

// finish prints the result of a turn that has ended and returns its error, whose exit code tells scripts how it ended.
func (t *turnRun) finish(ctx context.Context, r *protocol.TurnReport) error {
	err := t.failure(r)
	if err != nil && r.State == protocol.TurnFailed && t.link != nil && t.link.Stale(ctx) {
		t.env.Note("config.toml changed after the daemon started; %s", daemon.FreshConfig)
	}
	if printed := t.printResult(r, err); printed != nil {
		return errors.Join(err, printed)
	}
	return t.brief(err, r)
}

// brief returns the error of a turn that failed without the reason, if a notice of the turn has printed it.
func (t *turnRun) brief(err error, r *protocol.TurnReport) error {
	if err == nil || r.State != protocol.TurnFailed || r.Outcome.Text == "" || r.Outcome.Text != t.view.notice {
		return err
	}
	return console.Exit(console.ExitFailed, fmt.Errorf("the turn failed (%s)", r.Outcome.Kind))
}

// failure returns why the command fails although the turn has ended; nil if it does not. A denied call makes it fail even if the turn
// finished, because the agent may have given up part of the task. So does a turn that a tool ended without a value of the schema.
func (t *turnRun) failure(r *protocol.TurnReport) error {
	if err := outcomeError(r); err != nil {
		return err
	}
	if t.schema != nil && r.Outcome.Kind != protocol.OutcomeFinalValue {
		return console.Exit(console.ExitFailed, fmt.Errorf("the turn ended without a value of the schema (%s)", r.Outcome.Kind))
	}
	if t.asker.denied != "" {
		return console.Exit(console.ExitDenied, fmt.Errorf("a subagent's call of the tool %s was denied", t.asker.denied))
	}
	return nil
}

// printResult prints the object of --json, or the value that matches the schema. It prints nothing with --stream-json, because the last
// event has both.
func (t *turnRun) printResult(r *protocol.TurnReport, failed error) error {
	switch {
	case t.command.Stream || r.Outcome == nil:
	case t.command.JSON:
		return console.PrintJSON(resultOf(r, failed))
	case t.schema != nil && r.Outcome.Kind == protocol.OutcomeFinalValue:
		t.view.print(console.Printable(termtext.Unescaped(r.Outcome.Value)) + "\n")
	}
	return nil
}

// resultOf returns the result of a turn that has ended with an outcome.
func resultOf(r *protocol.TurnReport, failed error) runResult {
	cost := r.Usage.Cost
	for _, child := range r.ChildrenUsage {
		cost += child.Usage.Cost
	}
	result := runResult{
		SessionID: r.SessionID, TurnID: r.TurnID, State: r.State, Outcome: r.Outcome.Kind, Value: r.Outcome.Value,
		Usage: r.Usage, CostUSD: float64(cost) / 1e9, DurationMs: r.DurationMs,
	}
	if r.Outcome.Finished() || r.Outcome.Kind == protocol.OutcomeIncomplete { // others have the error in the text
		result.Answer = r.Outcome.Text
	}
	if failed != nil {
		result.Error = console.Explain(failed)
	}
	return result
}
