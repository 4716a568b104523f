package chat

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/screen"
	"lashd/rpc/protocol"
)

func TestNumbersAnswerForAScreenReader(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	for _, c := range []struct {
		name string
		keys []string
		want []string
	}{
		{"once", []string{"1", "enter"}, []string{`"choice":"allowOnce"`}},
		{"no", []string{"4", "enter"}, []string{`"choice":"reject"`}},
		{"always with another width", []string{"3", "enter", "2", "enter"}, []string{`"choice":"allowAlways","width":1`}},
		{"back from the widths", []string{"3", "enter", "4", "enter", "1", "enter"}, []string{`"choice":"allowOnce"`}},
		{"a reason", []string{"6", "enter", "use make", "enter"}, []string{`"choice":"reject","reason":"use make"`}},
		{"an unchanged command", []string{"5", "enter", "enter"}, []string{`"choice":"allowOnce"`}},
		{"a letter without Enter", []string{"y"}, nil},
		{"a number without a meaning", []string{"9", "enter"}, []string{`"input":[{"type":"text","text":"9"}],"whenBusy":"steer"`}},
	} {
		t.Run("issue/21-2 reader: "+c.name, func(t *testing.T) {
			u, calls := showing(t, goTest())
			u.used, u.reader = true, &reader{}
			u.reader.follow(u)
			press(u, c.keys...)
			if got := answers(calls); !slices.Equal(got, c.want) {
				t.Errorf("%q calls %q, want %q; it says\n%s", c.keys, got, c.want, strings.Join(u.paper.take(), "\n"))
			}
		})
	}
}

// frames returns what a chat for a screen reader writes after each message.
func frames(t *testing.T, u *ui, messages ...tea.Msg) (all []string) {
	t.Helper()
	var out strings.Builder
	s := screen.New(&out, 0, nil)
	for _, m := range append([]tea.Msg{tea.WindowSizeMsg{Width: 80, Height: 24}}, messages...) {
		out.Reset()
		u.Update(m)
		u.Draw(s)
		if err := s.Paint(); err != nil {
			t.Fatal(err)
		}
		all = append(all, out.String())
	}
	return all
}

func TestAScreenReaderGetsOnlyNewText(t *testing.T) {
	u := &ui{ctx: t.Context(), session: &calls{}, talk: newTranscript(), reader: &reader{}, connected: true}
	u.talk.session.ID = "ses_1"
	happens := func(all ...protocol.Event) tea.Msg { return eventsMsg{events: all} }
	got := frames(t, u, tea.KeyPressMsg{Code: 'h', Text: "h"}, tea.KeyPressMsg{Code: 'i', Text: "i"}, tea.KeyPressMsg{Code: tea.KeyBackspace},
		happens(running[:2]...), happens(protocol.Event{Type: protocol.EventItemStarted, Item: item("itm_a", "", protocol.ItemAgentMessage)}),
		happens(protocol.Event{Type: protocol.EventItemDelta, ItemID: "itm_a", Offset: new(0), Text: "**One**\n\n| a | b |\n|---|---|\n| c | d |\n\nthe e"}),
		happens(protocol.Event{Type: protocol.EventItemCompleted, Item: item("itm_a", "**One**\n\n| a | b |\n|---|---|\n| c | d |\n\nthe end", protocol.ItemAgentMessage)}),
		happens(protocol.Event{Type: protocol.EventTurnCompleted, TurnID: "trn_1", Outcome: &protocol.TurnOutcome{Kind: protocol.OutcomeAssistantMessage}}),
	)
	if strings.Trim(ansi.Strip(got[2]), "\r") != "i" {
		t.Errorf("issue/21-2 reader: the second letter is %q", got[2])
	}
	want := []string{"Ready. Type a message and press Enter. /help lists the commands.", "you: go", "One", "a, b", "c, d", "the end", "Ready. Type a message and press Enter."}
	var said []string
	for i, f := range got {
		if regexp.MustCompile(`\x1b\[\d*A|\x1b\[[\d;]+m|⠋`).MatchString(f) {
			t.Errorf("issue/21-2 reader: frame %d goes up or has a style: %q", i, f)
		}
		for l := range strings.SplitSeq(ansi.Strip(f), "\r\n") {
			if l = strings.Trim(l, "\r\a"); l != "" && !strings.HasPrefix(l, ">") && l != "h" && l != "i" {
				said = append(said, l)
			}
		}
	}
	if !slices.Equal(said, want) {
		t.Errorf("issue/21-2 reader: it says %q, want %q", said, want)
	}
	if last := got[len(got)-1]; !strings.HasSuffix(last, "\a") {
		t.Errorf("issue/21-2 reader: no bell rings at the end: %q", last)
	}
}

func TestMenusAreOffForAScreenReader(t *testing.T) {
	u := &ui{ctx: t.Context(), session: &calls{}, talk: newTranscript(), reader: &reader{}, connected: true}
	press(u, "/se", "ctrl+s", "ctrl+t")
	if u.openMenu().Open() || u.search != nil || u.over != nil {
		t.Error("issue/21-2 reader: a menu is open")
	}
}
