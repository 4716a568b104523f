package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// kept is the size in tokens of the newest history that stays beside a summary. It is at
// most a quarter of the context.
const kept = 20_000

// compact replaces all but the newest history by a summary. It implements plugin.Compactor.
// If there is nothing old to summarise, it returns nothing, and other compactors may run.
func compact(ctx context.Context, req *plugin.CompactRequest) ([]protocol.NodeBody, error) {
	if req.View == nil {
		return nil, nil
	}
	old, recent := split(req.View.Messages(), req.View.Window)
	if !compactable(old) {
		return nil, nil
	}
	text, err := summarise(ctx, req, old)
	if err != nil {
		return nil, fmt.Errorf("summarise: %w", err)
	}
	nodes := []protocol.NodeBody{{Message: summary(text)}}
	for _, m := range recent {
		nodes = append(nodes, protocol.NodeBody{Message: &m})
	}
	return nodes, nil
}

// split divides history at an input. It picks the first input after which the rest fits the
// limit, or else the newest input.
func split(messages []protocol.Message, window int64) (old, recent []protocol.Message) {
	limit := keeps(window)
	all := sums(messages)
	at := 0
	for _, at = range inputs(messages) {
		if all[len(messages)]-all[at] <= limit {
			break
		}
	}
	return messages[:at], messages[at:]
}

// keeps returns how many of the newest tokens stay, at most. If the newest input is longer, all of it stays.
func keeps(window int64) int64 {
	if window > 0 {
		return min(kept, window/4)
	}
	return kept
}

// summary returns the message that replaces the old history.
func summary(text string) *protocol.Message {
	return &protocol.Message{
		Role:   protocol.RoleUser,
		Parts:  []protocol.Part{{Kind: protocol.PartText, Text: heading + strings.TrimSpace(text)}},
		Origin: &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: ID},
	}
}

// isSummary reports whether a message is a summary of this plugin.
func isSummary(m *protocol.Message) bool {
	return m.Origin != nil && m.Origin.Kind == protocol.OriginPlugin && m.Origin.Plugin == ID
}

// heading is the beginning of each summary, as the model reads it.
const heading = "This is a summary of the earlier conversation. It replaces the older history.\n\n"

// errNoSummary means that the child's turn ended without a text. History stays unchanged
// then.
var errNoSummary = errors.New("the model returned no summary")

// summarise lets a temporary child session write the summary, in one model call without
// tools and without this plugin. A child session is used so that the call has its own
// budget, and its usage appears as compaction in the session's ledger. The child is deleted
// afterwards, even if ctx has ended.
func summarise(ctx context.Context, req *plugin.CompactRequest, old []protocol.Message) (string, error) {
	life, err := req.Host.NeedLifecycle()
	if err != nil {
		return "", err
	}
	made, err := life.CreateSession(ctx, summariser(req.View))
	if err != nil {
		return "", err
	}
	text, err := ask(ctx, life, made.SessionID, task(old, req))
	return text, errors.Join(err, life.DeleteSession(context.WithoutCancel(ctx), made.SessionID))
}

// summariser returns the settings of that child session.
func summariser(v *plugin.View) *protocol.SessionNewParams {
	return &protocol.SessionNewParams{
		Cwd: v.Session.Cwd, Title: "Summary of " + string(v.Session.ID), Driver: v.Session.Config.Driver,
		Budget: &protocol.Budget{Iterations: 1}, Authority: protocol.Authority{NoTools: true},
		Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: v.Session.ID, Temporary: true}, UsageLabel: "compaction", PluginSource: protocol.PluginsFresh,
		Options: protocol.PluginOptions{ID: []byte(`{"off":true}`)},
	}
}

// ask runs one turn of the child and returns its answer. It cancels the turn if ctx ends.
func ask(ctx context.Context, life plugin.LifecycleService, id protocol.SessionID, input string) (string, error) {
	turn, err := life.StartTurn(ctx, &plugin.TurnRequest{
		TurnID: protocol.NewTurnID(), SessionID: id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: input}},
	})
	if err != nil {
		return "", err
	}
	report, err := life.AwaitTurn(ctx, turn)
	if err != nil {
		return "", errors.Join(err, life.CancelTurn(context.WithoutCancel(ctx), turn))
	}
	if o := report.Outcome; o != nil && o.Kind == protocol.OutcomeAssistantMessage && strings.TrimSpace(o.Text) != "" {
		return o.Text, nil
	}
	return "", errNoSummary
}
