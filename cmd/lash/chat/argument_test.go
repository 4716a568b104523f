package chat

import (
	"context"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// lister is a daemon with two models and three sessions.
type lister struct{ calls }

func (l *lister) Call(ctx context.Context, method string, params, result any) error {
	switch r := result.(type) {
	case *protocol.ModelListResult:
		r.Data = []protocol.ModelInfo{{Name: "small", Model: protocol.ModelSpec{ContextWindow: 8000}}, {Name: "large-1"}}
	case *protocol.SessionListResult:
		r.Data = []protocol.Session{{ID: "ses_1", Title: "this one"}, {ID: "ses_7", Title: "Mend the lock"}, {ID: "ses_8", Title: "docs"}}
	default:
		return l.calls.Call(ctx, method, params, result)
	}
	return nil
}

func TestMenuOfArguments(t *testing.T) {
	for _, c := range []struct {
		name  string
		keys  []string
		shows string
		made  string
	}{
		{"models have their context window", []string{"/model "}, "› /model \n  small    8.0k window\n  large-1", ""},
		{"a model is completed and chosen", []string{"/model lar", "enter", "enter"}, "› Ask lashd", `"model":"large-1"`},
		{"Enter after a whole name runs the command", []string{"/model small", "enter"}, "› Ask lashd", `"model":"small"`},
		{"other sessions have their titles", []string{"/resume "}, "› /resume \n  ses_7  Mend the lock\n  ses_8  docs", ""},
		{"a session is found by its title", []string{"/resume lock", "tab"}, "› /resume ses_7", ""},
		{"efforts of the model", []string{"/effort h"}, "› /effort h\n▸ high", ""},
		{"a second word has no menu", []string{"/model small x"}, "› /model small x", ""},
	} {
		t.Run("part/12 arguments: "+c.name, func(t *testing.T) {
			u, _ := inWorkspace(t)
			s := &lister{}
			u.session, u.talk.session.Title = s, "named"
			u.talk.session.Config.Model.Reasoning = &protocol.ReasoningSpec{Efforts: []string{"low", "high"}}
			press(u, c.keys...)
			if got := below(u); !strings.HasPrefix(got, c.shows) || strings.Count(got, "\n") != strings.Count(c.shows, "\n") {
				t.Errorf("it shows\n%s\nwant\n%s", got, c.shows)
			}
			if made := strings.Join(s.made, "\n"); !strings.Contains(made, c.made) || c.made == "" && made != "" {
				t.Errorf("it calls %q", made)
			}
		})
	}
}
