package history

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// kept is how much of the newest history stays beside a summary, in tokens; it is never more than a quarter of the context.
const kept = 20_000

// compact summarises all but the newest history. It leaves the rest to other compactors if there is nothing older.
func compact(ctx context.Context, req *plugin.CompactRequest) ([]protocol.NodeBody, error) {
	if req.View == nil {
		return nil, nil
	}
	old, recent := split(req.View.Messages(), req.View.Window)
	if len(old) == 0 || len(old) == 1 && isSummary(&old[0]) {
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

// split cuts history at an input: the first one after which there is little enough, or else the newest.
func split(messages []protocol.Message, window int64) (old, recent []protocol.Message) {
	limit := int64(kept)
	if window > 0 {
		limit = min(limit, window/4)
	}
	all := sums(messages)
	at := 0
	for _, at = range inputs(messages) {
		if all[len(messages)]-all[at] <= limit {
			break
		}
	}
	return messages[:at], messages[at:]
}

func summary(text string) *protocol.Message {
	return &protocol.Message{
		Role:   protocol.RoleUser,
		Parts:  []protocol.Part{{Kind: protocol.PartText, Text: heading + strings.TrimSpace(text)}},
		Origin: &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: ID},
	}
}

func isSummary(m *protocol.Message) bool {
	return m.Origin != nil && m.Origin.Kind == protocol.OriginPlugin && m.Origin.Plugin == ID
}

const heading = "This is a summary of what was said and done before. It stands in for the older history.\n\n"

var errNoSummary = errors.New("the model gave none")

// summarise has a child of the session write the summary: with one model call, without tools, and without this plugin. What that
// uses is in the ledger of the session, and nothing else is left of the child.
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

func summariser(v *plugin.View) *protocol.SessionNewParams {
	return &protocol.SessionNewParams{
		Cwd: v.Session.Cwd, Title: "Summary of " + string(v.Session.ID), Driver: v.Session.Config.Driver,
		Budget: &protocol.Budget{Iterations: 1}, Authority: protocol.Authority{NoTools: true},
		Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: v.Session.ID, Temporary: true}, UsageLabel: "compaction", PluginSource: protocol.PluginsFresh,
		Options: protocol.PluginOptions{ID: []byte(`{"off":true}`)},
	}
}

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
