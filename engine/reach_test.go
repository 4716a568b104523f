package engine_test

import (
	"context"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// loaded is a plugin that is not built into lashd.
type loaded struct{ hooked }

func (loaded) Sandboxed() bool { return false }

func TestReachOfDirectives(t *testing.T) {
	for name, naming := range map[string]func(protocol.SessionID) *protocol.SessionNewParams{
		"starts a session only where its plugin may name one": func(from protocol.SessionID) *protocol.SessionNewParams {
			return &protocol.SessionNewParams{Start: protocol.SessionStart{Kind: protocol.StartExisting, SessionID: from}}
		},
		"creates a child only for a session that its plugin may name": func(from protocol.SessionID) *protocol.SessionNewParams {
			return &protocol.SessionNewParams{Relation: protocol.Relation{Kind: protocol.RelationChild, Parent: from}}
		},
	} {
		t.Run("outside/1 a directive "+name, func(t *testing.T) {
			var from protocol.SessionID
			creating := loaded{hooked{"creating", func(r *plugin.Registrar) {
				r.Turn().Before(func(context.Context, *plugin.TurnContext) ([]plugin.Directive, error) {
					return []plugin.Directive{{Kind: plugin.CreateSession, Session: naming(from)}}, nil
				})
			}}}
			d := start(t, setup{cwd: t.TempDir(), model: replies(), plugins: []plugin.Factory{creating}})
			id, other := d.session(t), d.session(t)
			for at, want := range map[protocol.SessionID]bool{id: false, other: true} {
				from = at
				r := d.turn(t, id, "go")
				refused := len(r.Issues) > 0 && strings.Contains(r.Issues[0].Message, "out of reach")
				if refused != want {
					t.Errorf("of %s: refused %t, want %t: %+v", map[bool]string{true: "another session", false: "its own"}[want], refused, want, r.Issues)
				}
			}
		})
	}
}
