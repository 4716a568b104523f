package persistence

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// applyRows writes the rows of a commit other than history.
//
// The order matters in two places. Blobs come before components, since a component may be a blob of
// the same commit. Snapshots come after components, since a saved snapshot contains the components
// that the commit leaves.
func applyRows(ctx context.Context, t *tx, c *change, h *head) error {
	for _, step := range []func(context.Context, *tx, *change, *head) error{
		applyMeta, applyTurns, applyInputs, applyEffects, applyUsage, applyBlobs, applyComponents, applySnapshots, applyDecisions, applyPins, applyTasks, applyFiles,
	} {
		if err := step(ctx, t, c, h); err != nil {
			return err
		}
	}
	return applyLasting(ctx, t, c)
}

// applyMeta changes the title and the archived mark. They are not part of the head, so its revision
// stays.
func applyMeta(ctx context.Context, t *tx, c *change, h *head) error {
	if c.Meta == nil {
		return nil
	}
	var errs []error
	if c.Meta.Title != nil {
		errs = append(errs, t.exec(ctx, "UPDATE sessions SET title = ? WHERE session = ?", *c.Meta.Title, h.session))
	}
	if c.Meta.Archived != nil {
		errs = append(errs, t.exec(ctx, "UPDATE sessions SET archived = ? WHERE session = ?", *c.Meta.Archived, h.session))
	}
	return errors.Join(errs...)
}

// upsertTurn changes a row only while the turn is open and belongs to the same session.
const upsertTurn = `
INSERT INTO turns (turn, turn_id, session, state, incarnation, cancel, report, accepted_at, started_at)
VALUES (` + nextTurn + `, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (turn_id) DO UPDATE
SET state = excluded.state, incarnation = excluded.incarnation, cancel = excluded.cancel, report = excluded.report,
    started_at = excluded.started_at
WHERE turns.session = excluded.session AND (turns.state = 'queued' OR turns.state = 'running' OR turns.state = 'waiting')`

// applyTurns stores the commit's turns and remembers the open one in h. A turn that has ended or
// that belongs to another session fails the commit with ErrFenced.
func applyTurns(ctx context.Context, t *tx, c *change, h *head) error {
	for i, turn := range c.Turns {
		err := t.changed(ctx, fmt.Errorf("it has ended or belongs to another session: %w", ErrFenced), upsertTurn,
			turn.ID, h.session, turn.State, turn.Incarnation, c.cancels[i], c.reports[i], turn.AcceptedMs, turn.StartedMs)
		if err != nil {
			return fmt.Errorf("turn %s: %w", turn.ID, err)
		}
		h.wrote(turn)
	}
	return nil
}

// wrote remembers the open turn, by which later commits are most likely fenced.
func (h *head) wrote(t Turn) {
	switch t.State {
	case protocol.TurnQueued, protocol.TurnRunning, protocol.TurnWaiting:
		h.turn, h.incarnation = t.ID, t.Incarnation
	default:
		if h.turn == t.ID {
			h.turn = ""
		}
	}
}

// nodeBody is the content of a node, as JSON. Clients and plugins write a NodeBody, and only lashd marks a node as kept.
type nodeBody struct {
	protocol.NodeBody
	Kept bool `json:"kept,omitempty"`
}

// inputBody is the part of an input that never changes, as JSON.
type inputBody struct {
	Input       []protocol.InputPart  `json:"input"`
	TurnOptions *protocol.TurnOptions `json:"turnOptions,omitempty"`
	Switches    int                   `json:"switches,omitempty"`
	Wake        *protocol.QueuedWake  `json:"wake,omitempty"`
	Ceiling     *protocol.Ceiling     `json:"ceiling,omitempty"`
	Effort      string                `json:"effort,omitempty"`
	Iterations  int                   `json:"iterations,omitempty"`
	Schema      json.RawMessage       `json:"schema,omitempty"`
}

// upsertInput inserts an input or changes its state. The content of an input never changes. A
// second input with the same source fails on the unique index inputs_by_source.
const upsertInput = `
INSERT INTO inputs (input, input_id, session, turn_id, state, boundary, source, stream, ordinal, refused, body, plugin_inputs, at)
VALUES (` + nextInput + `, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (input_id) DO UPDATE
SET turn_id = excluded.turn_id, state = excluded.state, boundary = excluded.boundary, refused = excluded.refused
WHERE inputs.session = excluded.session`

// applyInputs stores inputs. A known input changes only its turn, state and boundary, and the
// reason why it was dropped.
func applyInputs(ctx context.Context, t *tx, c *change, h *head) error {
	for i, in := range c.Inputs {
		w := cmp.Or(in.Wake, &protocol.QueuedWake{})
		err := t.changed(ctx, fmt.Errorf("it belongs to another session: %w", ErrExists), upsertInput,
			in.ID, h.session, in.TurnID, in.State, in.Boundary, in.Source, w.Stream, w.Ordinal, in.Refused, c.inputs[i], c.forPlugins[i], in.AtMs)
		if err != nil {
			return fmt.Errorf("input %s: %w", in.ID, err)
		}
	}
	return nil
}

// upsertEffect never turns a finished effect back into a started one.
const upsertEffect = `
INSERT INTO effects (session, turn_id, effect, ordinal, kind, state, hash, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (turn_id, effect, ordinal) DO UPDATE
SET state = excluded.state, hash = excluded.hash, body = excluded.body
WHERE effects.session = excluded.session AND (effects.state = 'started' OR excluded.state = 'finished')`

// applyEffects stores the commit's effects, and then deletes those of retired turns.
func applyEffects(ctx context.Context, t *tx, c *change, h *head) error {
	for _, e := range c.Effects {
		state := "started"
		if e.Finished {
			state = "finished"
		}
		err := t.changed(ctx, fmt.Errorf("it is already finished or belongs to another session: %w", ErrFenced), upsertEffect,
			h.session, e.Turn, e.ID, e.Ordinal, e.Kind, state, nonNil(e.Hash), nonNil(e.Body))
		if err != nil {
			return fmt.Errorf("effect %d of turn %s: %w", e.ID, e.Turn, err)
		}
	}
	for _, turn := range c.Retire {
		if err := t.exec(ctx, "DELETE FROM effects WHERE turn_id = ?", turn); err != nil {
			return err
		}
	}
	return nil
}

// insertUsage ignores a row that exists, so a repeated commit counts once.
const insertUsage = `
INSERT INTO usage (operation, ordinal, session, source, model, input, output, cache_read, cache_write, reasoning, cost, calls, unknown)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session, operation, ordinal) DO NOTHING`

// applyUsage adds the commit's rows to the ledger.
func applyUsage(ctx context.Context, t *tx, c *change, h *head) error {
	for _, u := range c.Usage {
		r := u.Row
		err := t.exec(ctx, insertUsage, u.Operation, u.Ordinal, h.session, r.Source, r.Model, r.Usage.Input, r.Usage.Output,
			r.Usage.CacheRead, r.Usage.CacheWrite, r.Usage.Reasoning, r.Usage.Cost, r.Calls, r.Unknown)
		if err != nil {
			return err
		}
	}
	return nil
}

// upsertDecision changes a decision only while it is open: the first answer counts.
const upsertDecision = `
INSERT INTO decisions (decision_id, session, turn_id, open, body)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (decision_id) DO UPDATE
SET open = excluded.open, body = excluded.body
WHERE decisions.session = excluded.session AND decisions.open = 1`

// applyDecisions stores decisions. A decision that is already answered fails with ErrFenced.
func applyDecisions(ctx context.Context, t *tx, c *change, h *head) error {
	for i, d := range c.Decisions {
		err := t.changed(ctx, fmt.Errorf("it is already answered: %w", ErrFenced), upsertDecision,
			d.ID, h.session, d.TurnID, d.Answer == nil, c.decisions[i])
		if err != nil {
			return fmt.Errorf("decision %s: %w", d.ID, err)
		}
	}
	return nil
}

// insertPin accepts a node only if some branch of the session contains it. Abandoned branches
// count.
const insertPin = `
WITH RECURSIVE held (branch, upto) AS (
  SELECT branch, 0xffffffff
  FROM branches
  WHERE session = ?1
  UNION
  SELECT b.parent_branch, b.parent_generation
  FROM branches b JOIN held USING (branch)
  WHERE b.parent_branch IS NOT NULL)
INSERT INTO pins (session, node_id, place, reason, at)
SELECT ?1, node_id, place, ?2, ?3
FROM nodes
WHERE node_id = ?4
  AND EXISTS (SELECT 1 FROM held WHERE branch = place >> 32 AND place & 0xffffffff <= upto)
ON CONFLICT (session, node_id) DO UPDATE SET reason = excluded.reason`

// applyPins stores the commit's pins, then removes those in Unpin.
func applyPins(ctx context.Context, t *tx, c *change, h *head) error {
	for _, p := range c.Pins {
		if err := t.changed(ctx, ErrNotRetained, insertPin, h.session, p.Reason, p.AtMs, p.Node); err != nil {
			return fmt.Errorf("pin node %s: %w", p.Node, err)
		}
	}
	for _, id := range c.Unpin {
		if err := t.exec(ctx, "DELETE FROM pins WHERE session = ? AND node_id = ?", h.session, id); err != nil {
			return err
		}
	}
	return nil
}

// insertApproval keeps the first rule for a subject, with its author and time.
const insertApproval = `
INSERT INTO approvals (cwd, tool, subject, by, at)
VALUES (?, ?, ?, ?, ?)
ON CONFLICT (cwd, tool, subject) DO NOTHING`

// applyApprovals stores or removes the commit's approval rules.
func applyApprovals(ctx context.Context, t *tx, c *change) error {
	for _, a := range c.Approve {
		if a.Remove {
			if err := t.exec(ctx, "DELETE FROM approvals WHERE cwd = ? AND tool = ? AND subject = ?", a.Cwd, a.Tool, a.Subject); err != nil {
				return err
			}
			continue
		}
		if err := t.exec(ctx, insertApproval, a.Cwd, a.Tool, a.Subject, a.By, c.AtMs); err != nil {
			return err
		}
	}
	return nil
}

// applyLasting stores the parts of a commit that belong to no session.
func applyLasting(ctx context.Context, t *tx, c *change) error {
	if err := applyApprovals(ctx, t, c); err != nil {
		return err
	}
	if err := applyFacts(ctx, t, c); err != nil {
		return err
	}
	return applyTriggers(ctx, t, c)
}

const (
	upsertFact = `
INSERT INTO plugin_facts (kind, key, body, at)
VALUES (?, ?, ?, ?)
ON CONFLICT (kind, key) DO UPDATE SET body = excluded.body, at = excluded.at`
	deleteFact = "DELETE FROM plugin_facts WHERE kind = ? AND key = ?"
)

// applyFacts stores or removes plugin facts.
func applyFacts(ctx context.Context, t *tx, c *change) (err error) {
	for _, f := range c.Facts {
		if f.Body == nil {
			err = t.exec(ctx, deleteFact, f.Kind, f.Key)
		} else {
			err = t.exec(ctx, upsertFact, f.Kind, f.Key, f.Body, c.AtMs)
		}
		if err != nil {
			return fmt.Errorf("plugin fact %s %s: %w", f.Kind, f.Key, err)
		}
	}
	return nil
}
