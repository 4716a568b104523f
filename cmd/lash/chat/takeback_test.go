package chat

import (
	"context"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/prompt"
	"lashd/rpc/protocol"
)

// canceller is a daemon that answers queue/cancel with a status, after it was gone for some calls.
type canceller struct {
	calls
	status protocol.CancelStatus
	gone   int
}

func (c *canceller) Call(ctx context.Context, method string, params, result any) error {
	if err := c.calls.Call(ctx, method, params, result); err != nil {
		return err
	}
	if c.gone > 0 {
		c.gone--
		return ErrGone
	}
	if r, ok := result.(*protocol.QueueCancelResult); ok {
		id := params.(protocol.QueueCancelParams).InputID
		r.Data = []protocol.CancelledInput{{InputID: id, Status: c.status}}
	}
	return nil
}

func TestQueuedInputsReturnToThePrompt(t *testing.T) {
	steered, later := queued("inp_2", "trn_1", "steer me", protocol.InputPendingActive), queued("inp_3", "trn_2", "later", protocol.InputQueued)
	later.AtMs = 7
	byPlugin, wake := queued("inp_4", "trn_2", "plugin", protocol.InputQueued), queued("inp_5", "trn_2", "wake", protocol.InputQueued)
	byPlugin.Source, wake.Wake = "p:1", &protocol.QueuedWake{}
	command := queued("inp_6", "trn_1", "/etc is full", protocol.InputPendingActive)
	image := queued("inp_7", "trn_1", "", protocol.InputPendingActive)
	image.Input = []protocol.InputPart{{Type: protocol.InputText, Text: "see [image a.png] here"}, {Type: protocol.InputAttachment, Attachment: &protocol.Attachment{Name: "a.png", Type: "image/png", Digest: "d"}}}
	for _, c := range []struct {
		name   string
		queue  []protocol.QueuedInput
		status protocol.CancelStatus
		gone   int
		keys   []string
		shows  string // from the prompt on
		calls  string // of which input
	}{
		{"Up takes back the newest input", []protocol.QueuedInput{later, steered}, protocol.CancelDone, 0, []string{"up"}, "› /queue later", "inp_3"},
		{"a steered input returns as it is", []protocol.QueuedInput{steered}, protocol.CancelDone, 0, []string{"up"}, "› steer me", "inp_2"},
		{"an input that begins with a slash is escaped", []protocol.QueuedInput{command}, protocol.CancelDone, 0, []string{"up"}, "› //etc is full", "inp_6"},
		{"files return as labels", []protocol.QueuedInput{image}, protocol.CancelDone, 0, []string{"up"}, "› see [image a.png] here", "inp_7"},
		{"inputs of plugins and wakes stay", []protocol.QueuedInput{steered, byPlugin, wake}, protocol.CancelDone, 0, []string{"up"}, "› steer me", "inp_2"},
		{"Up in a text does not", []protocol.QueuedInput{steered}, protocol.CancelDone, 0, []string{"text", "up"}, "› text", ""},
		{"a second Up before the answer does nothing", []protocol.QueuedInput{steered}, protocol.CancelDone, 1, []string{"up", "up"}, "› Steer the turn… (Up edits the newest queued input)", "inp_2"},
		{"an input that the agent has read is not sent again", []protocol.QueuedInput{steered}, protocol.CancelAlreadyClaimed, 0, []string{"up"}, "› Steer the turn… (Up edits the newest queued input)", "inp_2"},
	} {
		t.Run("part/12 queue: "+c.name, func(t *testing.T) {
			s := &canceller{status: c.status, gone: c.gone}
			u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 60, height: 24, connected: true, used: true, ticking: true}
			u.talk.session.ID, u.talk.turn, u.talk.queue = "ses_1", "trn_1", c.queue
			if press(u, c.keys...); below(u) != c.shows {
				t.Errorf("it shows\n%s\nwant\n%s", below(u), c.shows)
			}
			if made := strings.Join(s.made, "\n"); strings.Count(made, "\n") > 0 || c.calls == "" && made != "" || !strings.Contains(made, c.calls) {
				t.Errorf("it calls %q", made)
			}
		})
	}
	t.Run("part/12 queue: after a lost connection the same request is sent again, and the text returns once", func(t *testing.T) {
		s := &canceller{status: protocol.CancelDone, gone: 1}
		u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 60, height: 24, connected: true, used: true, ticking: true}
		u.talk.session.ID, u.talk.turn, u.talk.queue = "ses_1", "trn_1", []protocol.QueuedInput{steered}
		press(u, "up", "typed meanwhile")
		for range 2 { // the second reconnect has nothing left to send
			for _, o := range u.unsent {
				u.Update(u.Update(u.send(o)())())
			}
		}
		if got := u.in.Text(); got != "steer me\ntyped meanwhile" {
			t.Errorf("the prompt has %q", got)
		}
		if len(s.made) != 2 || s.made[0] != s.made[1] {
			t.Errorf("it calls %q", s.made)
		}
	})
	t.Run("part/12 queue: without a connection, an input that was never sent returns at once", func(t *testing.T) {
		s := &canceller{status: protocol.CancelDone}
		u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 60, height: 24, used: true, ticking: true}
		u.talk.session.ID, u.talk.turn, u.talk.queue = "ses_1", "trn_1", []protocol.QueuedInput{steered}
		press(u, "one", "enter", "two", "enter", "up")
		if got := u.in.Text(); got != "two" || len(u.unsent) != 1 || len(s.made) > 0 {
			t.Errorf("the prompt has %q; %d inputs wait; it calls %q", got, len(u.unsent), s.made)
		}
	})
	t.Run("part/12 queue: without a connection, a queued input returns after the next one", func(t *testing.T) {
		s := &canceller{status: protocol.CancelDone}
		u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 60, height: 24, used: true, ticking: true}
		u.talk.session.ID, u.talk.turn, u.talk.queue = "ses_1", "trn_1", []protocol.QueuedInput{steered}
		if press(u, "up", "up"); !u.in.Empty() || len(u.unsent) != 1 {
			t.Fatalf("the prompt has %q; %d requests wait", u.in.Text(), len(u.unsent))
		}
		u.Update(u.Update(u.send(u.unsent[0])())())
		if got := u.in.Text(); got != "steer me" || len(s.made) != 1 {
			t.Errorf("the prompt has %q; it calls %q", got, s.made)
		}
	})
	t.Run("part/12 queue: an input that the daemon may have is not taken back", func(t *testing.T) {
		s := &canceller{gone: 1}
		u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 60, height: 24, connected: true, used: true, ticking: true}
		u.talk.session.ID, u.talk.turn = "ses_1", "trn_1"
		if press(u, "one", "enter"); canTakeBack(u) || len(u.unsent) != 1 {
			t.Errorf("%d inputs wait", len(u.unsent))
		}
	})
	t.Run("part/12 queue: a line that was typed here returns with its blocks", func(t *testing.T) {
		s := &canceller{status: protocol.CancelDone}
		u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 60, height: 24, connected: true, used: true, ticking: true}
		u.talk.session.ID, u.talk.turn = "ses_1", "trn_1"
		u.in.Paste(strings.Repeat("line\n", 30))
		u.sent(sentMsg{of: &outgoing{draft: u.in.Take(), result: &protocol.TurnStartResult{InputID: "inp_2"}}})
		u.talk.queue = []protocol.QueuedInput{steered}
		if press(u, "up"); below(u) != "› [pasted 30 lines]" {
			t.Errorf("it shows\n%s", below(u))
		}
	})
	t.Run("part/12 queue: the transcript does not report a turn whose input returned", func(t *testing.T) {
		u := &ui{ctx: t.Context(), session: &canceller{status: protocol.CancelDone}, talk: newTranscript(), width: 60, connected: true, ticking: true}
		u.talk.turn, u.talk.queue = "trn_1", []protocol.QueuedInput{later}
		press(u, "up")
		out := u.talk.apply(protocol.Event{Type: protocol.EventTurnCompleted, TurnID: "trn_2", Outcome: &protocol.TurnOutcome{Kind: protocol.OutcomeCancelled}})
		if len(out) > 0 {
			t.Errorf("it shows %q", texts(out))
		}
	})
}

func TestDraftsOfMessagesWithFiles(t *testing.T) {
	a, b := &protocol.Attachment{Name: "a.png", Type: "image/png", Data: []byte("x")}, &protocol.Attachment{Name: "b.pdf", Type: "application/pdf", Data: []byte("x")}
	for text, want := range map[string]string{
		"see [image a.png] and [file b.pdf].": "see [image a.png 1 KB] and [file b.pdf 1 KB].",
		"[file b.pdf]":                        "[file b.pdf 1 KB][image a.png 1 KB] ",
	} {
		var e prompt.Editor
		e.SetDraft(prompt.DraftWith(text, []*protocol.Attachment{a, b}))
		rows, _, _ := e.View(80, 3)
		if got := ansi.Strip(strings.Join(rows, "\n")); got != want || len(e.Files()) != 2 {
			t.Errorf("part/12 %q becomes %q with %d files, want %q", text, got, len(e.Files()), want)
		}
	}
}
