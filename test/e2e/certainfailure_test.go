package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// edit is a call of edit.
func edit(path, old, text string) fakemodel.Part {
	return uses("edit", map[string]string{"path": path, "old": old, "new": text})
}

// patch is a call of patch.
func patch(lines ...string) fakemodel.Part {
	return uses("patch", map[string]string{"patch": "*** Begin Patch\n" + strings.Join(lines, "\n") + "\n*** End Patch"})
}

// refusedUnasked checks that the only call of a turn failed with a code and a text, that no person was asked, and that the item and the audit say
// why.
func (p *peer) refusedUnasked(id protocol.SessionID, r protocol.TurnReport, code, text string) {
	p.t.Helper()
	if len(r.ToolCalls) != 1 {
		p.t.Fatalf("the turn made %d calls, want 1", len(r.ToolCalls))
	}
	if out := r.ToolCalls[0].Output; out.Failure == nil || out.Failure.Code != code || out.Text != text {
		p.t.Errorf("the call returned %q (%+v), want %q (%s)", out.Text, out.Failure, text, code)
	}
	audits, items := 0, 0
	for _, e := range p.log(id) {
		switch {
		case e.TurnID != r.TurnID:
		case opened(e.Event):
			p.t.Errorf("a person is asked %+v", e.Decision)
		case e.Audit != nil:
			audits++
			if e.Audit.Kind != protocol.AuditRefused || e.Audit.Why.By != "preview" || e.Audit.Choice != "" {
				p.t.Errorf("the audit says %+v", e.Audit)
			}
		case e.Type == protocol.EventItemCompleted && e.Item.Kind == protocol.ItemToolCall:
			items++
			if d := e.Item.Decision; d == nil || d.Mode != protocol.ApproveDeny || d.Why.By != "preview" || !strings.Contains(d.Why.Text, "without a question") {
				p.t.Errorf("the decision over the call is %+v", d)
			}
		}
	}
	if audits != 1 || items != 1 {
		p.t.Errorf("there are %d audit records and %d items of the call, want 1 of each", audits, items)
	}
}

// TestCallThatCanOnlyFailIsNotAsked gives the model the error of a change that does not fit the files, without a question.
func TestCallThatCanOnlyFailIsNotAsked(t *testing.T) {
	const noMatch = "the old text is not in the file; none of its lines are in the file; read the file again"
	cases := []struct {
		name       string
		call       fakemodel.Part
		code, text string
	}{
		{"an edit of text that is not there", edit("f", "three", "3"), "no_match", "edit f: " + noMatch},
		{"an edit of text that is there twice", edit("f", "two", "2"), "ambiguous_match", "edit f: the old text occurs 2 times, at lines 2, 3; include more of the surrounding text, or set replaceAll"},
		{"an edit of a missing file", edit("none", "a", "b"), "not_found", "edit none: file does not exist"},
		{"a patch of lines that are not there", patch("*** Update File: f", "-three", "+3"), "no_match",
			"patch, nothing was changed: f: line 3 of the patch: these lines are not in the file after line 0; none of its lines are in the file; read the file again"},
		{"a patch that adds a file that exists", patch("*** Add File: f", "+x"), "exists", "patch, nothing was changed: f: the file to add already exists; update it, or delete it first"},
		{"a patch that is none", patch("nothing"), "invalid_patch", `patch, nothing was changed: line 2: expected a line such as "*** Update File: path", got "nothing"`},
		{"a change behind a link", edit("link", "theirs", "ours"), "outside_workspace", "edit link: the path leads outside the workspace"},
		{"text with escape sequences", edit("f", "\x1b[31mthree\x07", "3"), "no_match", "edit f: " + noMatch},
		{"text in another language", edit("f", "三つ\n試験", "3"), "no_match", "edit f: " + noMatch},
	}
	var steps []fakemodel.Step
	for _, c := range cases {
		steps = append(steps, step(c.call), done)
	}
	steps = append(steps, step(patch("*** Update File: f", "@@ "+strings.Repeat("x", 1<<20), "-one", "+1")), done)
	w := newWorld(t, "allow", steps...)
	w.write(filepath.Join(w.work, "f"), "one\ntwo\ntwo\n")
	w.write(filepath.Join(w.user, "beyond"), "theirs\n")
	if err := os.Symlink(filepath.Join(w.user, "beyond"), filepath.Join(w.work, "link")); err != nil {
		t.Fatal(err)
	}
	w.serve()
	p := w.dial("")
	id := p.approving(w, protocol.ApprovalConfig{})
	p.attach(id, 0)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p.refusedUnasked(id, p.turn(id, "go"), c.code, c.text)
			if last := w.body(); !strings.Contains(last, mustArgs(c.text)[1:30]) {
				t.Errorf("the model reads %s", last)
			}
		})
	}
	t.Run("an anchor of a megabyte", func(t *testing.T) {
		report := p.turn(id, "go")
		if text := report.ToolCalls[0].Output.Text; len(text) > 3000 || !strings.Contains(text, "the anchor") {
			t.Errorf("the model reads %d bytes: %.200s", len(text), text)
		}
	})
	if w.size("f") != len("one\ntwo\ntwo\n") {
		t.Error("f has changed")
	}
}

// TestCallThatMayFitIsAsked asks a person where the model may not learn what is in a file, and where another call could make the change fit.
func TestCallThatMayFitIsAsked(t *testing.T) {
	misses, probe := edit("f", "two", "2"), edit("secret", "kex", "x")
	reading := func(action protocol.ApprovalMode) protocol.ApprovalConfig {
		return protocol.ApprovalConfig{Rules: []protocol.ApprovalRule{{Tool: "read", Path: "secret", Action: action}}}
	}
	cases := []struct {
		name      string
		calls     []fakemodel.Part
		approval  protocol.ApprovalConfig
		questions int
	}{
		{"the mode asks about tools that read", []fakemodel.Part{misses}, protocol.ApprovalConfig{Mode: protocol.ApproveAsk}, 1},
		{"a rule asks about reading the file", []fakemodel.Part{probe}, reading(protocol.ApproveAsk), 1},
		{"a rule denies reading the file", []fakemodel.Part{probe}, reading(protocol.ApproveDeny), 1},
		{"another call writes the file", []fakemodel.Part{misses, uses("write", writes{"f", "two\n"})}, protocol.ApprovalConfig{}, 2},
		{"another call runs a command", []fakemodel.Part{misses, shell("true")}, protocol.ApprovalConfig{}, 2},
		{"another call writes another file", []fakemodel.Part{misses, uses("write", writes{"g", "two\n"})}, protocol.ApprovalConfig{}, 1},
		{"another call reads", []fakemodel.Part{misses, uses("read", map[string]string{"path": "f"})}, protocol.ApprovalConfig{}, 0},
		{"another call fails as well", []fakemodel.Part{misses, edit("f", "three", "3")}, protocol.ApprovalConfig{}, 0},
	}
	var steps []fakemodel.Step
	for _, c := range cases {
		steps = append(steps, step(c.calls...), done)
	}
	w := newWorld(t, "allow", steps...)
	w.write(filepath.Join(w.work, "f"), "one\n")
	w.write(filepath.Join(w.work, "secret"), "key\n")
	w.serve()
	p := w.dial("")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			id := p.approving(w, c.approval)
			p.attach(id, 0)
			turn := p.start(id, "go").TurnID
			for n := range c.questions {
				var d protocol.Decision
				p.until("a person is asked", func(all []told) bool {
					seen := 0
					for _, e := range all {
						if opened(e.Event) && e.SessionID == id {
							if d = *e.Decision; seen == n {
								return true
							}
							seen++
						}
					}
					return false
				})
				ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: d.ID, Choice: protocol.ChooseReject})
			}
			p.wait(turn)
			asked := 0
			for _, e := range p.log(id) {
				if opened(e.Event) {
					asked++
				}
			}
			if asked != c.questions {
				t.Errorf("%d questions, want %d", asked, c.questions)
			}
		})
	}
}

// TestRefusalWithoutAQuestionSurvivesSIGKILL kills the daemon while another call of the reply waits for an answer. The refused call keeps its
// result, although it would fit the file of the next daemon.
func TestRefusalWithoutAQuestionSurvivesSIGKILL(t *testing.T) {
	w := newWorld(t, "allow", step(edit("f", "two", "2"), uses("write", writes{"g", "made\n"})), done)
	w.write(filepath.Join(w.work, "f"), "one\n")
	d := w.serve()
	p := w.dial("")
	id := p.approving(w, protocol.ApprovalConfig{})
	p.attach(id, 0)
	turn := p.start(id, "go").TurnID
	question := p.event("a person is asked", opened).Decision
	if question.Call.Name != "write" {
		t.Fatalf("the question is about %s", question.Call.Name)
	}
	d.kill()
	w.write(filepath.Join(w.work, "f"), "two\n")
	w.serve()
	p = w.dial("")
	p.attach(id, 0)
	ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: question.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: question.ArgsHash})
	report := p.wait(turn)
	if len(report.ToolCalls) != 2 || report.ToolCalls[0].Output.Failure == nil || report.ToolCalls[0].Output.Failure.Code != "no_match" || w.size("g") != 5 || w.size("f") != 4 {
		t.Errorf("the calls returned %+v; f has %d bytes, g %d", report.ToolCalls, w.size("f"), w.size("g"))
	}
	questions, records := 0, 0
	for _, e := range p.log(id) {
		if opened(e.Event) {
			questions++
		}
		if e.Audit != nil && e.Audit.Why.By == "preview" {
			records++
		}
	}
	if questions != 1 || records != 1 {
		t.Errorf("there are %d questions and %d audit records of the refusal, want 1 of each", questions, records)
	}
}

// TestHookMendsAChangeBeforeItsPreview lets a hook replace arguments that would not fit. A person is asked about the call as it runs.
func TestHookMendsAChangeBeforeItsPreview(t *testing.T) {
	w := newWorld(t, "allow", step(edit("f", "two", "2")), done)
	w.plugin("mending", map[string]string{"plugin.json": `{"name":"mending"}`, "hooks/hooks.json": `{"hooks":{"PreToolUse":[{"matcher":"Edit","hooks":[{"type":"command",
		"command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"updatedInput\":{\"file_path\":\"'$PWD'/f\",\"old_string\":\"one\",\"new_string\":\"1\"}}}'"}]}]}}`})
	w.write(filepath.Join(w.work, "f"), "one\n")
	w.serve()
	p := w.dial("")
	p.loads("mending", nil)
	id := p.approving(w, protocol.ApprovalConfig{})
	p.attach(id, 0)
	turn := p.start(id, "go").TurnID
	d := p.event("a person is asked", opened).Decision
	if len(d.Detail.Files) != 1 || d.Detail.Files[0].Problem != "" || d.Detail.Files[0].Added != 1 {
		t.Errorf("the question shows %+v", d.Detail.Files)
	}
	ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: d.ID, Choice: protocol.ChooseAllowOnce, ArgsHash: d.ArgsHash})
	if r := p.wait(turn); r.ToolCalls[0].Output.Failure != nil || w.size("f") != 2 {
		t.Errorf("the call returned %+v, f has %d bytes", r.ToolCalls[0].Output, w.size("f"))
	}
}
