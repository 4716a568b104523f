package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// asking is a session in which the model has made calls that a person is asked about.
type asking struct {
	*world
	daemon *daemon
	peer   *peer
	id     protocol.SessionID
	turn   protocol.TurnID
	asked  []protocol.Decision // in the order of the calls
}

// newAsking starts a turn whose model makes calls, and waits until a person is asked about each.
func newAsking(t *testing.T, files map[string]string, calls ...fakemodel.Part) *asking {
	t.Helper()
	a := &asking{world: newWorld(t, "ask", step(calls...), done)}
	for name, text := range files {
		a.write(filepath.Join(a.work, name), text)
	}
	a.daemon = a.serve()
	a.peer = a.dial("cli_one")
	a.id = a.peer.session(a.home)
	a.turn = a.peer.start(a.id, "go").TurnID
	a.peer.until("a person is asked", func(all []told) bool {
		a.asked = nil
		for _, e := range all {
			if opened(e.Event) {
				a.asked = append(a.asked, *e.Decision)
			}
		}
		return len(a.asked) == len(calls)
	})
	return a
}

// answers answers a decision with allowOnce, or with the choice that change sets.
func (a *asking) answers(by *peer, d protocol.Decision, change func(*protocol.DecisionRespondParams)) (protocol.DecisionRespondResult, error) {
	p := protocol.DecisionRespondParams{DecisionID: d.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: d.ArgsHash}
	if change != nil {
		change(&p)
	}
	return try[protocol.DecisionRespondResult](by, "decision/respond", p)
}

// wins answers a decision and fails the test unless the answer counts.
func (a *asking) wins(d protocol.Decision, change func(*protocol.DecisionRespondParams)) {
	a.t.Helper()
	if r, err := a.answers(a.peer, d, change); err != nil || !r.Won {
		a.t.Fatalf("the answer returned %+v, %v", r, err)
	}
}

// restarts kills the daemon, changes something, and starts another one.
func (a *asking) restarts(whileDown func()) {
	a.t.Helper()
	a.daemon.kill()
	if whileDown != nil {
		whileDown()
	}
	a.daemon = a.serve()
	a.peer = a.dial("cli_one")
	a.peer.attach(a.id, 0)
}

// ends waits for the turn and returns the outputs of its calls, and the arguments that they ran with.
func (a *asking) ends() (outputs []protocol.ToolOutput, args []string) {
	a.t.Helper()
	report := a.peer.wait(a.turn)
	if report.State != protocol.TurnCompleted {
		a.t.Fatalf("the turn ended as %s: %+v", report.State, report.Issues)
	}
	for _, c := range report.ToolCalls {
		outputs, args = append(outputs, c.Output), append(args, string(c.Args))
	}
	return outputs, args
}

// legible undoes the escapes that make JSON safe in HTML.
func legible(text string) string { return strings.ReplaceAll(text, `\u003e`, ">") }

// changes returns an answer with changed arguments.
func changes(args string) func(*protocol.DecisionRespondParams) {
	return func(p *protocol.DecisionRespondParams) { p.Args = json.RawMessage(args) }
}

// takes returns an answer that takes hunks.
func takes(hunks ...int) func(*protocol.DecisionRespondParams) {
	return func(p *protocol.DecisionRespondParams) { p.Hunks = hunks }
}

// because returns an answer that takes hunks, and says why it leaves out the others.
func because(reason string, hunks ...int) func(*protocol.DecisionRespondParams) {
	return func(p *protocol.DecisionRespondParams) { p.Hunks, p.Reason = hunks, reason }
}

const (
	twentyLines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n"
	twoChanges  = "one\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\ntwenty\n"
)

type writes struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func TestApprovalShowsWhatWillHappen(t *testing.T) {
	a := newAsking(t, map[string]string{"f": twentyLines}, shell("echo x"), uses("write", writes{"f", twoChanges}))
	command := a.asked[0].Detail
	if diff := cmp.Diff(&protocol.CommandDetail{Command: "echo x", Dir: a.work, Outside: true}, command.Command); diff != "" || !command.Editable || command.Files != nil {
		t.Errorf("the command is shown as %+v: %s", command, diff)
	}
	if command.Why.By != protocol.DecidedByMode || command.Why.Text == "" {
		t.Errorf("the reason is %+v", command.Why)
	}
	for i, want := range []string{"Run echo x", "Write f"} {
		if got := a.asked[i].Detail.Title.Line(protocol.ItemFailed); got != want {
			t.Errorf("question %d is about %q, want %q", i, got, want)
		}
	}
	want := []protocol.FilePreview{{
		Path: "f", Kind: protocol.PreviewChange, Added: 2, Removed: 2, Before: protocol.DigestOf([]byte(twentyLines)),
		Hunks: []protocol.Hunk{
			{OldStart: 1, OldLines: 4, NewStart: 1, NewLines: 4, Text: "-1\n+one\n 2\n 3\n 4\n"},
			{OldStart: 17, OldLines: 4, NewStart: 17, NewLines: 4, Text: " 17\n 18\n 19\n-20\n+twenty\n"},
		},
	}}
	if diff := cmp.Diff(want, a.asked[1].Detail.Files); diff != "" {
		t.Errorf("the file is shown as %s", diff)
	}
	for _, d := range ask[protocol.DecisionListResult](a.peer, "decision/list", protocol.DecisionListParams{SessionID: a.id}).Data {
		if d.RemainingMs <= 0 || d.RemainingMs > d.DeadlineMs-d.OpenedAtMs {
			t.Errorf("%d ms are left of %d", d.RemainingMs, d.DeadlineMs-d.OpenedAtMs)
		}
	}
	for _, d := range a.dial("cli_two").attach(a.id, 0).Decisions {
		if d.RemainingMs <= 0 {
			t.Errorf("on attach %d ms are left", d.RemainingMs)
		}
	}
	a.wins(a.asked[0], func(p *protocol.DecisionRespondParams) {
		p.Choice, p.Reason = protocol.ChooseReject, "Use printf, not echo."
	})
	a.wins(a.asked[1], takes(1))
	outputs, args := a.ends()
	if want := "The call was not allowed: the approval request was denied, with this reason: Use printf, not echo."; outputs[0].Text != want {
		t.Errorf("the model reads %q", outputs[0].Text)
	}
	after := strings.Replace(twentyLines, "20\n", "twenty\n", 1)
	if got := readText(t, filepath.Join(a.work, "f")); got != after {
		t.Errorf("the file is %q", got)
	}
	ran := mustArgs(writes{"f", after})
	if want := "[A person allowed only a part of the changes of this call. It ran with " + ran + "]\nReplaced f (20 lines)."; outputs[1].Text != want || args[1] != ran {
		t.Errorf("the model reads %q of %s", outputs[1].Text, args[1])
	}
}

func TestChangedArgumentsSurviveSIGKILL(t *testing.T) {
	a := newAsking(t, map[string]string{"f": twentyLines}, shell("printf no >> ran"), uses("write", writes{"f", twoChanges}), shell("printf last >> other"))
	a.wins(a.asked[0], changes(`{"command":"printf yes >> ran"}`))
	a.wins(a.asked[1], because("Keep 20.", 0))
	a.restarts(nil)
	a.wins(a.asked[2], nil)
	outputs, args := a.ends()
	if got := readText(t, filepath.Join(a.work, "ran")); got != "yes" {
		t.Errorf("the command wrote %q", got)
	}
	if got := readText(t, filepath.Join(a.work, "f")); got != strings.Replace(twentyLines, "1\n", "one\n", 1) {
		t.Errorf("the file is %q", got)
	}
	if want := `{"command":"printf yes >> ran"}`; legible(args[0]) != want || !strings.HasPrefix(outputs[0].Text, "[A person changed the arguments of this call before it ran. It ran with "+want+"]\n") {
		t.Errorf("the model reads %q of %s", outputs[0].Text, args[0])
	}
	if want := "[A person allowed only a part of the changes of this call, and denied the others with this reason: Keep 20.\n It ran with " + args[1] + "]\n"; !strings.HasPrefix(outputs[1].Text, want) {
		t.Errorf("the model reads %q, which does not begin with %q", outputs[1].Text, want)
	}
}

func TestTwoClientsAnswerDifferently(t *testing.T) {
	a := newAsking(t, nil, shell("printf no >> ran"))
	other := a.dial("cli_two")
	a.wins(a.asked[0], changes(`{"command":"printf yes >> ran"}`))
	r, err := a.answers(other, a.asked[0], changes(`{"command":"printf other >> ran"}`))
	if err != nil || r.Won || legible(string(r.Answer.Args)) != `{"command":"printf yes >> ran"}` {
		t.Errorf("the second answer returned %+v, %v", r, err)
	}
	if a.ends(); readText(t, filepath.Join(a.work, "ran")) != "yes" {
		t.Errorf("the command wrote %q", readText(t, filepath.Join(a.work, "ran")))
	}
}

func TestFilesThatChangeAfterTheirDiffWasShown(t *testing.T) {
	a := newAsking(t, map[string]string{"f": twentyLines, "g": twentyLines}, uses("write", writes{"f", twoChanges}), uses("write", writes{"g", twoChanges}))
	a.write(filepath.Join(a.work, "f"), "theirs\n")
	a.pointsTo(t, a.asked[0], takes(0), "/hunks", "the file has changed since the approval request showed this change")
	a.wins(a.asked[0], nil)
	a.restarts(func() { a.write(filepath.Join(a.work, "g"), "theirs\n") })
	a.wins(a.asked[1], nil)
	outputs, _ := a.ends()
	for i, name := range []string{"f", "g"} {
		if f := outputs[i].Failure; f == nil || f.Code != "changed_since_approval" || readText(t, filepath.Join(a.work, name)) != "theirs\n" {
			t.Errorf("%s: the call returned %+v, the file is %q", name, outputs[i], readText(t, filepath.Join(a.work, name)))
		}
	}
}

// pointsTo checks that an answer is refused with an error at a pointer, and that the decision stays open.
func (a *asking) pointsTo(t *testing.T, d protocol.Decision, change func(*protocol.DecisionRespondParams), pointer, text string) {
	t.Helper()
	_, err := a.answers(a.peer, d, change)
	e, ok := errors.AsType[*jsonrpc2.Error](err)
	if !ok || e.Data == nil {
		t.Errorf("the answer returned %v", err)
		return
	}
	var data protocol.ErrorData
	if err := json.Unmarshal(*e.Data, &data); err != nil || data.Kind != protocol.KindInvalidParams || data.Pointer != pointer || !strings.Contains(e.Message, text) {
		t.Errorf("the answer is refused at %s as %s: %s; want %s, %s", data.Pointer, data.Kind, e.Message, pointer, text)
	}
}

func TestHostileAnswers(t *testing.T) {
	w := newWorld(t, "ask", step(uses("write", writes{"f", twoChanges}), shell("echo x")), done)
	a := &asking{world: w}
	a.write(filepath.Join(a.work, "f"), twentyLines)
	a.daemon = a.serve()
	a.peer = a.dial("cli_one")
	rules := []protocol.ApprovalRule{{Tool: "shell", Command: "touch", Action: protocol.ApproveDeny}, {Tool: "write", Path: "secret", Action: protocol.ApproveDeny}}
	a.id = a.peer.approving(w, protocol.ApprovalConfig{Mode: protocol.ApproveAsk, Rules: rules})
	a.peer.attach(a.id, 0)
	a.turn = a.peer.start(a.id, "go").TurnID
	a.peer.until("a person is asked", func(all []told) bool {
		a.asked = nil
		for _, e := range all {
			if opened(e.Event) {
				a.asked = append(a.asked, *e.Decision)
			}
		}
		return len(a.asked) == 2
	})
	width, far := 0, 99
	for _, c := range []struct {
		call    int
		change  func(*protocol.DecisionRespondParams)
		pointer string
		text    string
	}{
		{0, changes(`"text"`), "/args", "must be a JSON object"},
		{0, changes(`null`), "/args", "must be a JSON object"},
		{0, changes(`{"path":5}`), "/args", "do not match the tool's schema"},
		{0, changes(`{"path":"f","content":"x","more":1}`), "/args", "do not match the tool's schema"},
		{0, changes(`{"path":"secret/x","content":"x"}`), "/args", "denied with these arguments"},
		{0, changes(`{"path":"../work/secret/x","content":"x"}`), "/args", "denied with these arguments"},
		{1, changes(`{"command":"true; touch x"}`), "/args", "denied with these arguments"},
		{0, func(p *protocol.DecisionRespondParams) { p.Args, p.Hunks = json.RawMessage(`{}`), []int{0} }, "/args", "must not come with hunks"},
		{0, func(p *protocol.DecisionRespondParams) {
			p.Args, p.Choice = json.RawMessage(`{}`), protocol.ChooseAllowSession
		}, "/args", "belongs to the choice allowOnce"},
		{0, takes(2), "/hunks", "must be different indexes from 0 to 1"},
		{0, takes(-1), "/hunks", "must be different indexes from 0 to 1"},
		{0, takes(0, 0), "/hunks", "must be different indexes from 0 to 1"},
		{1, takes(0), "/hunks", "has no hunks to choose from"},
		{0, func(p *protocol.DecisionRespondParams) { p.Hunks, p.Choice = []int{0}, protocol.ChooseAllowAlways }, "/hunks", "belongs to the choice allowOnce"},
		{1, func(p *protocol.DecisionRespondParams) { p.Width = &width }, "/width", "belongs to the choices allowSession and allowAlways"},
		{1, func(p *protocol.DecisionRespondParams) { p.Width, p.Choice = &far, protocol.ChooseAllowSession }, "/width", ""},
		{1, func(p *protocol.DecisionRespondParams) { p.Reason = "no" }, "/reason", "belongs to the choice reject"},
		{0, because("no", 0, 1), "/reason", "the hunks leave out no change"},
		{1, because("no", 0), "/hunks", "has no hunks to choose from"},
		{1, func(p *protocol.DecisionRespondParams) {
			p.Choice, p.Reason = protocol.ChooseReject, strings.Repeat("x", 8193)
		}, "/reason", "the limit is 8192"},
		{0, func(p *protocol.DecisionRespondParams) {
			p.ArgsHash, p.Args = "", json.RawMessage(`{"path":"f","content":"x"}`)
		}, "/argsHash", "must be the decision's argsHash"},
	} {
		a.pointsTo(t, a.asked[c.call], c.change, c.pointer, c.text)
	}
	if open := ask[protocol.DecisionListResult](a.peer, "decision/list", protocol.DecisionListParams{SessionID: a.id}).Data; len(open) != 2 {
		t.Errorf("%d decisions are open", len(open))
	}
	// The person's arguments lead through a link, which then leads elsewhere.
	for _, dir := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(a.work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(a.work, "link")
	if err := os.Symlink("one", link); err != nil {
		t.Fatal(err)
	}
	a.wins(a.asked[0], changes(`{"path":"link/x","content":"x"}`))
	a.restarts(func() {
		if err := errors.Join(os.Remove(link), os.Symlink("two", link)); err != nil {
			t.Error(err)
		}
	})
	a.wins(a.asked[1], nil)
	outputs, _ := a.ends()
	if f := outputs[0].Failure; f == nil || f.Code != "leads_elsewhere" || a.size("two/x")+a.size("one/x") > 0 {
		t.Errorf("the call whose path leads elsewhere returned %+v", outputs[0])
	}
}
