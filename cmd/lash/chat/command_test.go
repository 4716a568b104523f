package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/cmd/lash/prompt"
	"lashd/rpc/protocol"
)

func TestHelpFitsATerminal(t *testing.T) {
	lines := strings.Split(ansi.Strip(help(100)), "\n")
	for _, l := range lines {
		if w := lipgloss.Width(l); w > 99 || strings.HasSuffix(l, " ") {
			t.Errorf("issue/6-4 a line is %d columns wide: %q", w, l)
		}
	}
	if len(lines) > 33 {
		t.Errorf("issue/6-4 it has %d lines", len(lines))
	}
}

func TestLinesAreNotPadded(t *testing.T) {
	e := entry{item: item("itm_u", "short\n"+strings.Repeat("long ", 30)+"\nshort", protocol.ItemUserMessage)}
	if got := ansi.Strip(e.shown(markdown.Style{Width: 60})); strings.Contains(got, "short  ") || strings.Count(got, "\n") != 2 {
		t.Errorf("issue/6-4 it is %q", got)
	}
}

// calls is a session that records the methods called and returns empty results.
type calls struct {
	Session
	made []string
}

func (c *calls) Call(_ context.Context, method string, params, result any) error {
	if r, ok := result.(*protocol.CommandListResult); ok {
		r.Data = []protocol.CommandInfo{{Name: "git:review", Kind: "command", Description: "Review a change", Hint: "<commit>"}}
		return nil
	}
	if _, ok := result.(*protocol.MCPResourcesResult); ok {
		return nil // no servers
	}
	raw, err := json.Marshal(params)
	c.made = append(c.made, method+" "+string(raw))
	return err
}

// entering enters a line in a chat. It returns the note that the chat shows and
// the calls that it makes.
func entering(t *testing.T, line string) (said, made string) {
	t.Helper()
	c := &calls{}
	u := &ui{ctx: t.Context(), session: c, talk: newTranscript(), width: 80, connected: true}
	u.talk.session.ID = "ses_1"
	u.in.Set(line)
	for todo := []tea.Cmd{u.enter()}; len(todo) > 0; {
		cmd := todo[0]
		if todo = todo[1:]; cmd == nil {
			continue
		}
		switch m := cmd().(type) {
		case tea.BatchMsg:
			todo = append(todo, m...)
		case sentMsg:
			todo = append(todo, u.sent(m))
		case offeredMsg:
			todo = append(todo, offered(u, m))
		case saidMsg:
			said = string(m)
		}
	}
	return said, strings.Join(c.made, "\n")
}

func TestCommandMessages(t *testing.T) {
	for _, c := range []struct{ line, said, made string }{
		{"/rename", "Usage: /rename TITLE", ""},
		{"/clear", "This session is new.", ""},
		{"/mode deny", "Tool calls that no rule covers: deny", `"mode":"deny"`},
		{"/rename A name", "", `"title":"A name"`},
		{"/rwename A name", "Unknown command /rwename. Did you mean /rename?", ""},
		{"/tasks cancel all", "All background tasks are being cancelled.", "task/cancelAll"},
		{"/tasks cancel tsk_9", `no running task has an id that begins with "tsk_9"; /tasks lists them.`, ""},
		{"/tasks stop", "Usage: /tasks, or /tasks cancel ID, or /tasks cancel all", ""},
		{"/approve maybe", "current: ask, except for tools that only read", ""},
		{"/sandbox none", "Usage: /sandbox readOnly|workspace|fullAccess (current: fullAccess)", ""},
		{"/sandbox workspace", "Sandbox of commands: workspace", `"sandbox":"workspace"`},
		{"/effort", "The reasoning effort of this model cannot be set.", ""},
		{"/effort high", "Reasoning effort from the next turn on: high", `"effort":"high"`},
		{"/rules add deny command git push", "", `rule/add {"idempotencyKey"`},
		{"/rules add user allow path docs/**", "", `"level":"user","rule":{"path":"docs/**","action":"allow"}}`},
		{"/rules add session ask host example.com", "", `"level":"session","rule":{"host":"example.com","action":"ask"},"sessionId":"ses_1"}`},
		{"/rules add maybe tool shell", "usage: /rules", ""},
		{"/rules add deny command", "usage: /rules", ""},
		{"/rules add deny command 'git push'", "", `"rule":{"command":"git push","action":"deny"}`},
		{`/rules add deny path "**/.env"`, "", `"rule":{"path":"**/.env","action":"deny"}`},
		{"/rules add deny command 'git push", "one quote too many", ""},
		{"/rules test 'git push x'", "", `"command":"git push x"`},
		{"/rules remove rul_1", "", `"ruleId":"rul_1","sessionId":"ses_1"}`},
		{"/compact", "There is nothing to compact: the history has about 0 tokens, and its newest input or up to 0 tokens stay word for word.", "session/compactPreview"}, // part13/7
		{"/compact now keep names", "Nothing to compact.", `"instructions":"keep names"`},
		{"/memory", "", "instruction/list"},
		{"/memory 3", "There are only 0 files of instructions.", "instruction/list"},
		{"/memory sub", "usage: /memory", ""},
		{"/undo", "no file changes left to undo", "session/points"},
		{"/diff", "No file changes to show", "session/points"},
		{"/etc/hosts what is it", "Unknown command /etc/hosts. /help lists the commands; start with // to send a message that begins with /.", ""},
		{"/xyz", "Unknown command /xyz.", ""},
		{"/git:review HEAD~1 all", "", `"text":"/git:review HEAD~1 all"}],"command":{"name":"git:review","arguments":"HEAD~1 all"},"whenBusy":"queue"`},
		{"//etc/hosts what is it", "", `"text":"/etc/hosts what is it"`},
		{"fix the test", "", `"title":"fix the test"`}, // outside/25
	} {
		said, made := entering(t, c.line)
		if !strings.Contains(said, c.said) || (c.made == "") != (made == "") || !strings.Contains(made, c.made) {
			t.Errorf("issue/6-4 %s shows %q and calls %q", c.line, said, made)
		}
	}
}

func TestEffortsAreListed(t *testing.T) {
	u := &ui{talk: newTranscript()}
	u.talk.session.Config.Model = protocol.ModelSpec{ID: "m", Reasoning: &protocol.ReasoningSpec{Efforts: []string{"low", "high"}, Default: "low"}}
	if got := u.effort("")(); got != saidMsg("Usage: /effort low|high (current: low)") {
		t.Errorf("runtime/M08 it says %q", got)
	}
}

func TestRejectedTextReturnsToTheEditor(t *testing.T) {
	u := &ui{talk: newTranscript(), width: 80}
	u.sent(sentMsg{&outgoing{draft: prompt.DraftOf("//etc/hosts")}, errors.New("no")})
	if got := u.in.Text(); got != "//etc/hosts" {
		t.Errorf("issue/6-4 it is %q", got)
	}
}

func TestFilesAreCounted(t *testing.T) {
	for n, want := range map[int]string{1: "Changed 1 file. /diff shows the changes, /undo reverts them.", 3: "Changed 3 files. /diff shows the changes, /undo reverts them."} {
		if got := pointNote(&protocol.FilePoint{State: protocol.PointClosed, Kind: protocol.PointTurn, Files: n}); got != want {
			t.Errorf("issue/6-4 it is %q, want %q", got, want)
		}
	}
}

func TestTextOfACommand(t *testing.T) {
	t.Run("part13/5 the chat shows a line in place of the text of a command", func(t *testing.T) {
		e := entry{item: &protocol.Item{Kind: protocol.ItemUserMessage, Text: "[The text of the skill /notes of home]\nBase directory\n\nWrite.", Origin: &protocol.Origin{Kind: protocol.OriginPlugin, Plugin: protocol.CommandsID}}}
		if got := ansi.Strip(e.shown(markdown.Style{Width: 80})); got != "· The text of the skill /notes of home (3 lines)" {
			t.Errorf("it shows %q", got)
		}
		e.item.Origin.Plugin = protocol.HistoryID
		e.item.Text = "This is a summary.\n\nWe met.\nWe talked."
		if got := ansi.Strip(e.shown(markdown.Style{Width: 80})); got != "· This is a summary. (2 lines)" {
			t.Errorf("it shows %q", got)
		}
		e.item.Origin.Plugin, e.item.Text = "other", "Other text.\nWrite."
		if got := ansi.Strip(e.shown(markdown.Style{Width: 80})); !strings.Contains(got, "Write.") {
			t.Errorf("the message of another plugin shows %q", got)
		}
	})
}

func TestNewSession(t *testing.T) {
	c := &calls{}
	u := &ui{ctx: t.Context(), session: c, talk: newTranscript(), connected: true, used: true, stop: func() {}}
	u.talk.session = protocol.Session{ID: "ses_1", Cwd: "/work", Config: protocol.Config{Driver: "rlm"}}
	m, ok := u.command("/clear")().(switchMsg)
	if made := strings.Join(c.made, "\n"); !strings.HasPrefix(made, "session/new") || !strings.Contains(made, `"cwd":"/work","driver":"rlm"`) {
		t.Errorf("part/13 it calls %q", made)
	}
	if !ok || !m.made || !strings.Contains(m.note, "/resume ses_1 returns") {
		t.Errorf("part/13 it switches with %+v", m)
	}
	if u.use(m); u.used || !u.next.made {
		t.Errorf("part/13 used is %t and made is %t: an empty session would stay", u.used, u.next.made)
	}
}
