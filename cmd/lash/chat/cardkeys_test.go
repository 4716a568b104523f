package chat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"lashd/rpc/protocol"
)

// special are the keys that tests press by name.
var special = map[string]rune{
	"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace,
	"pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "home": tea.KeyHome, "end": tea.KeyEnd,
}

// press presses keys, named or as text, and runs what they cause.
func press(u *ui, keys ...string) {
	for _, k := range keys {
		var all []tea.KeyPressMsg
		if letter, ok := strings.CutPrefix(k, "ctrl+"); ok {
			all = []tea.KeyPressMsg{{Code: rune(letter[0]), Mod: tea.ModCtrl}}
		} else if code, ok := special[k]; ok {
			all = []tea.KeyPressMsg{{Code: code}}
		} else {
			for _, r := range k {
				all = append(all, tea.KeyPressMsg{Code: r, Text: string(r)})
			}
		}
		for _, m := range all {
			cmd := u.Update(m)
			for todo := []tea.Cmd{cmd}; len(todo) > 0; {
				cmd, todo = todo[0], todo[1:]
				if cmd == nil {
					continue
				}
				switch m := cmd().(type) {
				case tea.BatchMsg:
					todo = append(todo, m...)
				case sentMsg:
					todo = append(todo, u.sent(m))
				case pathsMsg, takenMsg, earlierMsg, argumentsMsg, offeredMsg, resourcesMsg, sourcesMsg, proposal:
					todo = append(todo, u.Update(m))
				}
			}
		}
	}
}

// answers returns the calls that a chat made, without their keys and the members that all answers have.
func answers(c *calls) []string {
	var all []string
	for _, made := range c.made {
		_, params, _ := strings.Cut(made, `,"decisionId":"dec_1",`)
		if params == "" {
			params = made[strings.LastIndex(made, `,"input"`)+1:]
		}
		all = append(all, strings.ReplaceAll(strings.TrimSuffix(params, "}"), `,"argsHash":"hash"`, ""))
	}
	return all
}

func TestKeysAnswerAnApproval(t *testing.T) {
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "")
	exact := approvalOf("write", `{"path":"a"}`, nil)
	exact.Varying = []string{"content"}
	for _, c := range []struct {
		name string
		of   *protocol.Decision
		keys []string
		want []string
	}{
		{"once", goTest(), []string{"y"}, []string{`"choice":"allowOnce"`}},
		{"no", goTest(), []string{"n"}, []string{`"choice":"reject"`}},
		{"always with the proposal", goTest(), []string{"a", "enter"}, []string{`"choice":"allowAlways","width":0`}},
		{"for the session with another width", goTest(), []string{"s", "down", "enter"}, []string{`"choice":"allowSession","width":1`}},
		{"exactly this call", goTest(), []string{"a", "3", "enter"}, []string{`"choice":"allowAlways"`}},
		{"no widths", exact, []string{"a", "enter"}, []string{`"choice":"allowAlways"`}},
		{"back from the widths", goTest(), []string{"a", "esc", "y"}, []string{`"choice":"allowOnce"`}},
		{"other keys in the list of widths", goTest(), []string{"a", "lso", "9", "down", "up"}, nil},
		{"a reason", goTest(), []string{"r", "use make", "enter"}, []string{`"choice":"reject","reason":"use make"`}},
		{"a reason by N", goTest(), []string{"N", "no", "enter"}, []string{`"choice":"reject","reason":"no"`}},
		{"back from the reason", goTest(), []string{"r", "yes", "esc", "n"}, []string{`"choice":"reject"`}},
		{"an edited command", goTest(), []string{"e", "y", "enter"}, []string{`"choice":"allowOnce","args":{"command":"go test ./... \u0026\u0026 \u003cx\u003ey","timeoutMs":5000,"workdir":"web"}`}},
		{"an unchanged command", goTest(), []string{"e", "enter"}, []string{`"choice":"allowOnce"`}},
		{"all hunks", twoHunks(), []string{" ", " ", "y"}, []string{`"choice":"allowOnce"`}},
		{"one hunk", twoHunks(), []string{"down", " ", "y"}, []string{`"choice":"allowOnce","hunks":[0]`}},
		{"the other hunk", twoHunks(), []string{"down", "up", " ", "y"}, []string{`"choice":"allowOnce","hunks":[1]`}},
		{"one hunk and why", twoHunks(), []string{"down", " ", "Y", "keep it", "enter"}, []string{`"choice":"allowOnce","hunks":[0],"reason":"keep it"`}},
		{"back from why, then all hunks", twoHunks(), []string{" ", "Y", "keep it", "esc", " ", "Y"}, []string{`"choice":"allowOnce"`}},
		{"no hunk and why", twoHunks(), []string{" ", "down", " ", "Y", "x", "enter"}, nil},
		{"some hunks, then a denial with a reason", twoHunks(), []string{" ", "r", "no", "enter"}, []string{`"choice":"reject","reason":"no"`}},
		{"no hunk", twoHunks(), []string{" ", "down", " ", "y", "s", "a", "enter"}, nil},
		{"a message to the agent", goTest(), []string{"tab", "yes sir", "enter"}, []string{`"input":[{"type":"text","text":"yes sir"}],"whenBusy":"steer"`}},
		{"a letter on a line of its own", goTest(), []string{"tab", "y", "enter"}, []string{`"choice":"allowOnce"`}},
		{"back from a message", goTest(), []string{"tab", "you", "esc", "n"}, []string{`"choice":"reject"`}},
		{"letters without a meaning", goTest(), []string{"wqx", "enter"}, nil},
	} {
		t.Run("part/11 "+c.name, func(t *testing.T) {
			u, calls := showing(t, c.of)
			u.used = true
			press(u, c.keys...)
			if got := answers(calls); !slices.Equal(got, c.want) {
				t.Errorf("%q calls %q, want %q", c.keys, got, c.want)
			}
		})
	}
}

func TestTypingIsNoAnswer(t *testing.T) {
	u, calls := showing(t, goTest())
	u.card.since = time.Now()
	press(u, "yay")
	if got := u.in.Text(); got != "yay" || len(calls.made) > 0 {
		t.Errorf("part/11 the input has %q, and the chat called %q: a person was typing when the question appeared", got, calls.made)
	}
	press(u, "esc", "y")
	if got := answers(calls); u.in.Text() != "yay" || !slices.Equal(got, []string{`"choice":"allowOnce"`}) {
		t.Errorf("part/11 the input has %q, and the chat called %q: Esc returns to the question and keeps the draft", u.in.Text(), got)
	}
}

func TestAnswerOfAnotherClientReturnsTheDraft(t *testing.T) {
	d := goTest()
	u, _ := showing(t, d)
	u.in.Set("a draft")
	press(u, "r", "because")
	if got := shown(u); !strings.Contains(got, "! because") {
		t.Errorf("part/11 the reason is not shown:\n%s", got)
	}
	answered := *d
	answered.Answer = &protocol.DecisionAnswer{Choice: protocol.ChooseReject, Reason: "not now", By: "other"}
	var shown []string
	shown = append(shown, texts(u.talk.apply(protocol.Event{Type: protocol.EventDecisionResolved, Decision: &answered}))...)
	u.followCard()
	if u.in.Text() != "a draft" || !slices.Equal(shown, []string{"· Denied: not now"}) {
		t.Errorf("part/11 the input has %q, and the chat shows %q", u.in.Text(), shown)
	}
}

func TestTheInputOfACardIsItsOwn(t *testing.T) {
	u, calls := showing(t, goTest())
	u.in.Set("a draft")
	u.in.Set("a better draft")
	undo := tea.KeyPressMsg{Code: '_', Mod: tea.ModCtrl}
	press(u, "r", "because", "up")
	u.Update(undo)
	u.Update(undo)
	if got := u.in.Text(); got != "" {
		t.Errorf("part/12 after undo the reason is %q", got)
	}
	image := filepath.Join(t.TempDir(), "a.png")
	if err := os.WriteFile(image, []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01"), 0o600); err != nil {
		t.Fatal(err)
	}
	u.Update(tea.PasteMsg{Content: image})
	if got := u.in.Text(); got != image {
		t.Errorf("part/12 a pasted path is %q", got)
	}
	press(u, "esc")
	if got := u.in.Text(); got != "a better draft" || len(calls.made) > 0 {
		t.Errorf("part/12 the draft is %q, and the chat called %q", got, calls.made)
	}
	press(u, "tab")
	u.Update(undo)
	if got := u.in.Text(); got != "a draft" {
		t.Errorf("part/12 undo in the draft gives %q", got)
	}
}

func TestAnswersAreDescribed(t *testing.T) {
	for _, c := range []struct {
		of     *protocol.Decision
		answer protocol.DecisionAnswer
		want   string
	}{
		{goTest(), protocol.DecisionAnswer{Choice: protocol.ChooseAllowOnce}, "Allowed once."},
		{goTest(), protocol.DecisionAnswer{Choice: protocol.ChooseAllowOnce, Args: []byte(`{}`)}, "Allowed once, as edited."},
		{twoHunks(), protocol.DecisionAnswer{Choice: protocol.ChooseAllowOnce, Args: []byte(`{}`), Hunks: []int{1}}, "Allowed once, with 1 of 2 changes."},
		{twoHunks(), protocol.DecisionAnswer{Choice: protocol.ChooseAllowOnce, Args: []byte(`{}`), Hunks: []int{1}, Reason: "keep it"}, "Allowed once, with 1 of 2 changes: keep it"},
		{goTest(), protocol.DecisionAnswer{Choice: protocol.ChooseAllowAlways, Width: new(1)}, "Always allowed in this workspace: commands that begin with go"},
		{goTest(), protocol.DecisionAnswer{Choice: protocol.ChooseReject, By: "deadline"}, "Denied, because no answer came in time."},
	} {
		c.of.Answer = &c.answer
		if got := Answer(c.of); got != c.want {
			t.Errorf("part/11 %+v is %q, want %q", c.answer, got, c.want)
		}
	}
}
