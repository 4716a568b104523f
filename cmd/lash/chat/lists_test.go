package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

// archive is a daemon with many sessions. Its pages are those of the daemon.
type archive struct {
	calls
	sessions int
	fails    error
	indexed  bool
}

func (a *archive) Call(ctx context.Context, method string, params, result any) error {
	if a.fails != nil {
		return a.fails
	}
	switch r := result.(type) {
	case *protocol.SessionListResult:
		p := params.(protocol.SessionListParams)
		from := 0
		fmt.Sscan(p.Cursor, &from)
		for i := from; i < min(from+p.Limit, a.sessions); i++ {
			r.Data = append(r.Data, protocol.Session{ID: protocol.SessionID(fmt.Sprint("ses_", i)), Title: fmt.Sprint("title ", i), Cwd: "/home/me/w", State: protocol.SessionIdle})
		}
		if from+p.Limit < a.sessions {
			r.NextCursor = fmt.Sprint(from + p.Limit)
		}
	case *protocol.SessionInputsResult:
		r.Data = []protocol.SentInput{{SessionID: "ses_7", Text: "newer words"}, {SessionID: "ses_7", Text: "why does it hang?"}}
	case *protocol.SessionSearchResult:
		if params.(protocol.SessionSearchParams).Query == "deadlock" {
			if a.indexed = !a.indexed; a.indexed {
				r.Pending = 5
				break
			}
			r.Data = []protocol.SessionMatch{{SessionID: "ses_4000", Role: protocol.RoleAssistant, Snippet: "this is a deadlock"}}
		}
	case *protocol.SessionReadResult:
		r.Data = []protocol.Item{{Kind: protocol.ItemUserMessage, Text: "preview of " + string(params.(protocol.SessionReadParams).SessionID)}}
	}
	return a.calls.Call(ctx, method, params, result)
}

// runs runs commands and what they cause until nothing is left.
func runs(u *ui, todo ...tea.Cmd) {
	for len(todo) > 0 {
		cmd := todo[0]
		if todo = todo[1:]; cmd == nil {
			continue
		}
		switch m := cmd().(type) {
		case nil, tickMsg:
		case tea.BatchMsg:
			todo = append(todo, m...)
		default:
			todo = append(todo, u.Update(m))
		}
	}
}

// types presses keys in a chat, and lets all that follows happen.
func types(u *ui, keys ...string) {
	for _, k := range keys {
		if code, ok := special[k]; ok {
			runs(u, u.Update(tea.KeyPressMsg{Code: code}))
			continue
		}
		for _, r := range k {
			runs(u, u.Update(tea.KeyPressMsg{Code: r, Text: string(r)}))
		}
	}
}

// onScreen returns what the overlay shows, without styles and empty rows.
func onScreen(u *ui) string {
	if u.over == nil {
		return ""
	}
	rows, _, _ := u.over.view(markdown.Style{Width: u.width}, u.height)
	var shown []string
	for _, r := range rows {
		if r = strings.TrimRight(ansi.Strip(r), " │"); r != "" {
			shown = append(shown, r)
		}
	}
	return strings.Join(shown, "\n")
}

func TestSessionPickerOfManySessions(t *testing.T) { synctest.Test(t, manySessions) }

func manySessions(t *testing.T) {
	a := &archive{sessions: 5000}
	u := &ui{ctx: t.Context(), session: a, talk: newTranscript(), width: 100, height: 30, connected: true, used: true, ticking: true, stop: func() {}}
	u.talk.session = protocol.Session{ID: "ses_1", Cwd: "/home/me/w"}
	types(u, "/resume", "enter")
	for _, c := range []struct{ name, keys, shows string }{
		{"all of 5,000 are listed", "", "1 of 5000"},
		{"the marked one has a preview", "", "preview of ses_0"},
		{"words filter titles", "4321", "▸ title 4321"},
		{"its preview follows", "", "preview of ses_4321"},
	} {
		if types(u, c.keys); !strings.Contains(onScreen(u), c.shows) {
			t.Errorf("part/12 sessions: %s: %q is not shown:\n%s", c.name, c.shows, onScreen(u))
		}
	}
	types(u, "backspace", "backspace", "backspace", "backspace", "hang")
	if got := onScreen(u); !strings.Contains(got, "▸ title 7") || !strings.Contains(got, "1 of 1") {
		t.Errorf("part/12 sessions: an input does not find its session:\n%s", got)
	}
	types(u, "backspace", "backspace", "backspace", "backspace", "deadlock")
	if got := onScreen(u); !strings.Contains(got, "▸ title 4000") || !strings.Contains(got, "“this is a") || strings.Contains(got, "indexing") {
		t.Errorf("part/12 sessions: the search of messages finds\n%s", got)
	}
	types(u, "backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "backspace", "hang")
	types(u, "tab")
	if got := onScreen(u); !strings.Contains(got, "Sessions of all directories") || !strings.Contains(got, "idle · ") || !strings.Contains(got, "me/w") {
		t.Errorf("part/12 sessions: Tab shows\n%s", got)
	}
	a.made = nil
	if types(u, "enter"); u.over != nil || len(a.made) == 0 || !strings.Contains(a.made[0], `session/read {"sessionId":"ses_7"`) {
		t.Errorf("part/12 sessions: Enter calls %q", a.made)
	}
}

func TestSessionPickerSaysWhatFailed(t *testing.T) {
	a := &archive{fails: errors.New("the disk is full")}
	u := &ui{ctx: t.Context(), session: a, talk: newTranscript(), width: 60, height: 20, connected: true, used: true, ticking: true}
	if types(u, "/sessions", "enter"); !strings.Contains(onScreen(u), "the disk is full") {
		t.Errorf("part/12 sessions: it shows\n%s", onScreen(u))
	}
	if types(u, "esc"); u.over != nil || u.in.Text() != "" {
		t.Errorf("part/12 sessions: after Esc the prompt has %q", u.in.Text())
	}
}

func TestAQuestionBehindAList(t *testing.T) {
	u := &ui{ctx: t.Context(), session: &archive{}, talk: newTranscript(), width: 80, height: 20, connected: true, used: true, ticking: true}
	types(u, "/sessions", "enter")
	u.Update(eventsMsg{events: []protocol.Event{{Type: protocol.EventDecisionOpened, Decision: &protocol.Decision{ID: "dec_1", Kind: protocol.DecisionApproval, Choices: []protocol.DecisionChoice{protocol.ChooseAllowOnce}}}}})
	types(u, "y")
	u.style.Width = 80
	if rows, _, _ := overlayScreen(u); !strings.Contains(rows[len(rows)-1], "Esc returns to its question") || len(u.unsent) > 0 {
		t.Errorf("part/12 lists: the last row is %q; %d requests", rows[len(rows)-1], len(u.unsent))
	}
}

// historian is a daemon with a session of three turns.
type historian struct {
	calls
	rewind protocol.SessionRewindResult
	fails  error
}

func (h *historian) Call(ctx context.Context, method string, params, result any) error {
	if err := h.calls.Call(ctx, method, params, result); err != nil {
		return err
	}
	switch r := result.(type) {
	case *protocol.SessionReadResult:
		for i := range 3 {
			turn := protocol.TurnID(fmt.Sprint("trn_", i))
			r.Data = append(r.Data, protocol.Item{Kind: protocol.ItemUserMessage, TurnID: turn, Text: fmt.Sprint("input ", i)}, protocol.Item{Kind: protocol.ItemUserMessage, TurnID: turn, Text: "steered"},
				protocol.Item{Kind: protocol.ItemAgentMessage, TurnID: turn, Text: fmt.Sprint("answer ", i)})
		}
	case *protocol.SessionPointsResult:
		r.Data = []protocol.FilePoint{{ID: "fpt_1", Kind: protocol.PointTurn, TurnID: "trn_1", Files: 2, Undone: true}}
	case *protocol.SessionDiffResult:
		r.Data = []protocol.FileDiff{{Path: "a.txt", Effect: protocol.FileModified, Added: 3, Removed: 1}}
	case *protocol.SessionRewindResult:
		*r = h.rewind
		return h.fails
	case *protocol.GraphReadResult:
		r.Data = []protocol.Node{{ID: "nod_1", TurnID: "trn_1"}, {ID: "nod_2", TurnID: "trn_1"}, {ID: "nod_3", TurnID: "trn_2"}}
	case *protocol.SessionNewResult:
		r.SessionID = "ses_9"
	}
	return nil
}

func TestTurnsGoBack(t *testing.T) {
	conflict := protocol.SessionRewindResult{Files: []protocol.FileRewind{{Path: "a.txt", Effect: protocol.FileModified, Conflict: protocol.ConflictChanged}}}
	for _, c := range []struct {
		name   string
		rewind protocol.SessionRewindResult
		fails  error
		keys   []string
		shows  string // on the screen
		done   string // a call that is no dry run; "": there is none
		prompt string
	}{
		{"the list has files, lines and undone changes", protocol.SessionRewindResult{}, nil, nil, " ago · 2 files +3 -1 · undone", "", ""},
		{"turns have numbers", protocol.SessionRewindResult{}, nil, nil, "▸ input 2\n  turn 3 · ", "", ""},
		{"files are offered only if this session can restore some", protocol.SessionRewindResult{}, nil, []string{"r"}, "Go back to before this turn\n› input 2\nThe agent forgets this turn. Your input returns to the prompt.\nFiles stay as they are.", "", ""},
		{"words filter", protocol.SessionRewindResult{}, nil, []string{"/", "input 0", "enter"}, "1 of 1", "", ""},
		{"Enter shows the whole turn", protocol.SessionRewindResult{}, nil, []string{"down", "enter"}, "answer 1\nChanges of files\nmodified a.txt +3 -1", "", ""},
		{"r asks first", protocol.SessionRewindResult{}, nil, []string{"down", "r"}, "The agent forgets this turn and 1 later one.", "", ""},
		{"Enter goes back, and the inputs return to the prompt", protocol.SessionRewindResult{}, nil, []string{"down", "r", "enter"}, "", `"toTurn":"trn_1","files":"also"}`, "input 1\nsteered"},
		{"only the conversation", protocol.SessionRewindResult{}, nil, []string{"down", "r", "2", "enter"}, "", `"toTurn":"trn_1"}`, "input 1\nsteered"},
		{"only the files", protocol.SessionRewindResult{}, nil, []string{"down", "r", "3", "enter"}, "", `"toTurn":"trn_1","files":"only"}`, ""},
		{"u undoes files", protocol.SessionRewindResult{}, nil, []string{"down", "u", "enter"}, "", `"toTurn":"trn_1","files":"only"}`, ""},
		{"u needs files", protocol.SessionRewindResult{}, nil, []string{"u"}, "This turn changed no files.", "", ""},
		{"a conflict needs o", conflict, nil, []string{"down", "r", "enter"}, "it has changed since, and the change would be lost", "", ""},
		{"o overwrites", conflict, nil, []string{"down", "r", "o", "enter"}, "", `"files":"also","force":true}`, "input 1\nsteered"},
		{"what is not possible is not done", protocol.SessionRewindResult{}, errors.New("a turn is running"), []string{"r", "enter"}, "Not possible: a turn is running", "", ""},
		{"Esc changes nothing", protocol.SessionRewindResult{}, nil, []string{"r", "esc"}, "1 of 3", "", ""},
		{"f forks after the turn", protocol.SessionRewindResult{}, nil, []string{"down", "f"}, "1 of 3", `session/fork`, ""},
	} {
		t.Run("part/12 turns: "+c.name, func(t *testing.T) {
			h := &historian{rewind: c.rewind, fails: c.fails}
			u := &ui{ctx: t.Context(), session: h, talk: newTranscript(), width: 70, height: 24, connected: true, used: true, ticking: true, stop: func() {}}
			u.talk.session.ID, u.style.Width = "ses_1", 70
			types(u, "esc", "esc")
			if h.made = nil; c.name != "f forks after the turn" {
				types(u, c.keys...)
			} else if types(u, c.keys...); u.next.id != "ses_9" || !strings.Contains(strings.Join(h.made, ""), `"atNode":"nod_2"`) {
				t.Fatalf("it switches to %q; it calls %q", u.next.id, h.made)
			} else {
				return
			}
			if got := onScreen(u); !strings.Contains(got, c.shows) || (c.shows == "") != (got == "") {
				t.Errorf("it shows\n%s\nwant %s", got, c.shows)
			}
			var done []string
			for _, m := range h.made {
				if strings.HasPrefix(m, "session/rewind") && !strings.Contains(m, `"dryRun":true`) {
					done = append(done, m)
				}
			}
			if got := strings.Join(done, "\n"); !strings.HasSuffix(got, c.done) || c.done == "" && got != "" {
				t.Errorf("it calls %q, want %q", got, c.done)
			}
			if u.in.Text() != c.prompt {
				t.Errorf("the prompt has %q, want %q", u.in.Text(), c.prompt)
			}
		})
	}
}

func TestEscTwiceOpensTheTurns(t *testing.T) {
	for _, c := range []struct {
		name string
		turn protocol.TurnID
		keys []string
		want bool
	}{
		{"in the empty prompt", "", []string{"esc", "esc"}, true},
		{"not in a text", "", []string{"text", "esc", "esc"}, false},
		{"not with another key between", "", []string{"esc", "x", "backspace", "esc"}, false},
		{"not while a turn runs, which it stops", "trn_1", []string{"esc", "esc"}, false},
	} {
		u := &ui{ctx: t.Context(), session: &historian{}, talk: newTranscript(), width: 70, height: 24, connected: true, used: true, ticking: true}
		u.talk.session.ID, u.talk.turn = "ses_1", c.turn
		if types(u, c.keys...); (u.over != nil) != c.want {
			t.Errorf("part/12 turns: Esc Esc %s opens the list: %t", c.name, u.over != nil)
		}
	}
}

func TestAgo(t *testing.T) {
	for minutes, want := range map[int64]string{-5: "now", 0: "now", 1: "1 min ago", 59: "59 min ago", 60: "1 h ago", 47 * 60: "47 h ago", 48 * 60: "2 days ago", 24 * 60 * 400: "400 days ago"} {
		if got := ago(time.Now().UnixMilli() - minutes*60_000); got != want {
			t.Errorf("part/12 %d minutes are %q, want %q", minutes, got, want)
		}
	}
}

func TestPickASessionByNumber(t *testing.T) {
	a := &archive{sessions: 3}
	call := func(ctx context.Context, method string, params, result any) error {
		return a.Call(ctx, method, params, result)
	}
	for typed, want := range map[string]struct {
		id    protocol.SessionID
		fault string
	}{"2\n": {"ses_1", ""}, "3.\n": {"ses_2", ""}, "\n": {}, "": {}, "4\n": {"", `"4" is no number of the list`}} {
		var out strings.Builder
		id, err := pickByNumber(t.Context(), call, "/home/me/w", strings.NewReader(typed), &out)
		if id != want.id || (err == nil) != (want.fault == "") || err != nil && err.Error() != want.fault {
			t.Errorf("issue/21-2 reader: %q takes %q (%v), want %q (%s)", typed, id, err, want.id, want.fault)
		}
		if !strings.HasPrefix(out.String(), "1. title 0, idle, ") || strings.Contains(out.String(), "\x1b") {
			t.Errorf("issue/21-2 reader: the list is %q", out.String())
		}
	}
}

func TestUndoNamesWhatCameBack(t *testing.T) {
	h := &historian{rewind: protocol.SessionRewindResult{Files: []protocol.FileRewind{{Path: "a.txt", Effect: protocol.FileModified}}}}
	u := &ui{ctx: t.Context(), session: h, talk: newTranscript(), width: 70, height: 24, connected: true, used: true, ticking: true}
	u.talk.session.ID = "ses_1"
	types(u, "/undo fpt_1", "enter")
	if got := ansi.Strip(strings.Join(u.paper.take(), "\n")); !strings.Contains(got, "Files of session ses_1 are as they were before turn 2: \"input 1\"\n  modified a.txt") {
		t.Errorf("issue/21-2 /undo prints %q", got)
	}
}
