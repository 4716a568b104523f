package chat

import (
	"context"
	"errors"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// rememberer is a daemon that has pages of inputs.
type rememberer struct {
	calls
	pages map[string]protocol.SessionInputsResult // by cursor
}

func (r *rememberer) Call(ctx context.Context, method string, params, result any) error {
	p, ok := params.(protocol.SessionInputsParams)
	if !ok {
		return r.calls.Call(ctx, method, params, result)
	}
	page, ok := r.pages[p.Cursor]
	if !ok || p.Cwd != "/w" {
		return errors.New("no")
	}
	*result.(*protocol.SessionInputsResult) = page
	return nil
}

// remembering returns a chat in which a draft was begun, and whose daemon knows three inputs.
func remembering(t *testing.T) *ui {
	t.Helper()
	s := &rememberer{pages: map[string]protocol.SessionInputsResult{
		"":  {Data: []protocol.SentInput{{Text: "fix the test"}, {Text: "explain it"}}, NextCursor: "c"},
		"c": {NextCursor: "d"},
		"d": {Data: []protocol.SentInput{{Text: "write a test"}}},
	}}
	u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 60, height: 24, connected: true, used: true}
	u.talk.session.ID, u.talk.session.Cwd = "ses_1", "/w"
	u.Update(readEarlier(u, false)())
	press(u, "draft")
	return u
}

func TestSearchOfEarlierInputs(t *testing.T) {
	for _, c := range []struct {
		name  string
		keys  []string
		shows string
	}{
		{"it lists them, the newest first", []string{"ctrl+s"}, "search: words of an earlier input (Enter takes it)\n▸ fix the test\n  explain it\n  write a test"},
		{"words choose", []string{"ctrl+s", "test wr"}, "search: test wr\n▸ write a test"},
		{"Enter takes the marked one and sends nothing", []string{"ctrl+s", "test", "down", "enter"}, "› write a test"},
		{"Ctrl-S again goes on to older ones", []string{"ctrl+s", "ctrl+s", "tab"}, "› explain it"},
		{"Esc returns to the draft", []string{"ctrl+s", "fix", "esc"}, "› draft"},
		{"undo brings the draft back", []string{"ctrl+s", "fix", "enter", "ctrl+_"}, "› draft"},
		{"without a match Enter returns to the draft", []string{"ctrl+s", "xyz", "enter"}, "› draft"},
		{"no match is said", []string{"ctrl+s", "xyz"}, "search: xyz (no earlier input has these words)"},
		{"Up walks through inputs of other sessions", []string{"up", "up"}, "› explain it"},
	} {
		t.Run("part/12 history: "+c.name, func(t *testing.T) {
			u := remembering(t)
			press(u, c.keys...)
			if got := below(u); !strings.HasPrefix(got, c.shows) || strings.Count(got, "\n") != strings.Count(c.shows, "\n") {
				t.Errorf("it shows\n%s\nwant\n%s", got, c.shows)
			}
		})
	}
	t.Run("part/12 history: a daemon that was lost is asked again", func(t *testing.T) {
		u := remembering(t)
		u.earlier, u.session = earlier{}, &rememberer{}
		u.Update(readEarlier(u, false)())
		if readEarlier(u, false) == nil {
			t.Error("it is not asked again")
		}
	})
}
