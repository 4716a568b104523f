//go:build unix

package workspace_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/workspace"
	"lashd/engine/provider/scripted"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// TestToolsAndRulesFollowPathsAlike creates random directories full of links and compares the file that write changes with the one that
// rules see.
func TestToolsAndRulesFollowPathsAlike(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for round := range 20 {
		t.Run(fmt.Sprintf("outside/7 links made at random, %d", round), func(t *testing.T) {
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			ws := filepath.Join(top, "ws")
			names := []string{"a", "b", "a/c", "b/d", "a/c/e", ".", ".."}
			for _, dir := range names[:5] {
				if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			path := func() string {
				parts := []string{}
				for range 1 + random.IntN(4) {
					parts = append(parts, append(names, "l0", "l1", "l2", "a/l3", "b/l4")[random.IntN(12)])
				}
				if random.IntN(3) == 0 {
					parts = append([]string{ws}, parts...)
				}
				return strings.Join(parts, "/")
			}
			for _, link := range []string{"l0", "l1", "l2", "a/l3", "b/l4"} {
				if err := os.Symlink(path(), filepath.Join(ws, link)); err != nil {
					t.Fatal(err)
				}
			}
			d := builtintest.Start(t, t.TempDir(), 0, builtintest.Calling(), new(workspace.Factory))
			id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: ws}))(t).SessionID
			for n := range 40 {
				name, content := path()+"/f", fmt.Sprintf("content %d", n)
				told := pathresolve.Of(ws, name)
				args := builtintest.Must(json.Marshal(map[string]any{"path": name, "content": content}))(t)
				out := builtintest.Must(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: "write", Args: args}))(t).Output
				if out.Status != protocol.OutputSuccess {
					continue
				}
				if at := written(t, top, content); len(told) == 0 || at != told[len(told)-1] {
					t.Errorf("write %s changed %s, the rules see %v", name, at, told)
				}
			}
		})
	}
}

// written returns the file that has a content.
func written(t *testing.T, top, content string) (at string) {
	t.Helper()
	err := filepath.WalkDir(top, func(p string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(p)
		if string(text) == content {
			at = p
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestLinkThatLeadsUp(t *testing.T) {
	t.Run("outside/7 a rule sees the target of an absolute link that goes up from another link", func(t *testing.T) {
		r := newRuled(t, protocol.ApproveAllow, protocol.ApprovalRule{Tool: "*", Path: "config", Action: protocol.ApproveDeny})
		if err := os.Symlink(filepath.Join(r.dir, "hooks/../config"), filepath.Join(r.dir, "way")); err != nil {
			t.Fatal(err)
		}
		r.denied(t, "write", map[string]any{"path": "way", "content": "x"}) // the system would write to .git/config
		if _, err := os.Stat(filepath.Join(r.dir, "config")); !errors.Is(err, fs.ErrNotExist) {
			t.Error("the denied file was written")
		}
	})
}

// writer is a session that writes through a link in each turn.
type writer struct {
	*builtintest.Daemon
	id  protocol.SessionID
	dir string
}

func newWriter(t *testing.T, path string, approval protocol.ApprovalConfig) *writer {
	t.Helper()
	return newCaller(t, "write", map[string]string{"path": path, "content": "new\n"}, approval)
}

func newCaller(t *testing.T, tool string, about map[string]string, approval protocol.ApprovalConfig) *writer {
	t.Helper()
	args := builtintest.Must(json.Marshal(about))(t)
	model := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{
		{ToolCalls: []scripted.Call{{ID: "c1", Name: tool, Args: args}}}, {Text: "done"},
	}}})
	w := &writer{Daemon: builtintest.Start(t, t.TempDir(), 0, model, new(workspace.Factory)), dir: t.TempDir()}
	for _, dir := range []string{"a", "b"} {
		if err := os.Mkdir(filepath.Join(w.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.lead(t, "a")
	w.id = builtintest.Must(w.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: w.dir, Approval: &approval}))(t).SessionID
	return w
}

// lead makes the link point to a directory.
func (w *writer) lead(t *testing.T, to string) {
	t.Helper()
	link := filepath.Join(w.dir, "link")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Symlink(to, link); err != nil {
		t.Fatal(err)
	}
}

// turn runs a turn. If its call needs an approval, it calls a function and then answers.
func (w *writer) turn(t *testing.T, choice protocol.DecisionChoice, before func()) (asked *protocol.Decision, out protocol.ToolOutput) {
	t.Helper()
	began := builtintest.Must(w.Turns.Start(t.Context(), &protocol.TurnStartParams{
		SessionID: w.id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: "go"}},
	}))(t)
	for {
		report := builtintest.Must(w.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: began.TurnID, TimeoutMs: 5}))(t)
		if report.State.Terminal() {
			return asked, report.ToolCalls[0].Output
		}
		open := builtintest.Must(w.Decisions.List(t.Context(), &protocol.DecisionListParams{SessionID: w.id}))(t).Data
		if len(open) == 0 || asked != nil {
			continue
		}
		asked = &open[0]
		if before != nil {
			before()
		}
		builtintest.Must(w.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: asked.ID, Choice: choice, ArgsHash: asked.ArgsHash}))(t)
	}
}

func TestAnswersHoldForPlaces(t *testing.T) {
	for _, choice := range []protocol.DecisionChoice{protocol.ChooseAllowSession, protocol.ChooseAllowAlways} {
		t.Run("outside/7 an approval does not apply after the path leads elsewhere: "+string(choice), func(t *testing.T) {
			w := newWriter(t, "link/x", protocol.ApprovalConfig{Mode: protocol.ApproveAsk})
			if asked, out := w.turn(t, choice, nil); asked == nil || out.Failure != nil {
				t.Fatalf("asked %v: %+v", asked, out)
			}
			if asked, out := w.turn(t, choice, nil); asked != nil || out.Failure != nil {
				t.Fatalf("the same again is asked about: %+v: %+v", asked, out)
			}
			w.lead(t, "b")
			asked, _ := w.turn(t, protocol.ChooseReject, nil)
			if asked == nil {
				t.Fatal("no approval was requested for another file")
			}
			real := builtintest.Must(filepath.EvalSymlinks(w.dir))(t)
			if strings.Contains(asked.Prompt, "can run code later") {
				t.Errorf("the person is asked %q", asked.Prompt)
			}
			if want := filepath.Join(real, "b/x"); len(asked.Places) != 1 || asked.Places[0] != want {
				t.Errorf("the question is about %v, want %s", asked.Places, want)
			}
			w.lead(t, "a")
			if asked, out := w.turn(t, protocol.ChooseReject, nil); asked != nil || out.Failure != nil {
				t.Errorf("where it was allowed it is asked about: %+v: %+v", asked, out)
			}
		})
	}
	t.Run("outside/7 a path that leads elsewhere during the approval is not written", func(t *testing.T) {
		w := newWriter(t, "link/x", protocol.ApprovalConfig{Mode: protocol.ApproveAsk})
		_, out := w.turn(t, protocol.ChooseAllowOnce, func() { w.lead(t, "b") })
		if out.Failure == nil || out.Failure.Code != "leads_elsewhere" {
			t.Errorf("the call came to %+v", out)
		}
		if _, err := os.Stat(filepath.Join(w.dir, "b/x")); err == nil {
			t.Error("it was written")
		}
	})
}

func TestProtectedFiles(t *testing.T) {
	allow := protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Default: protocol.ApproveAllow}
	rule := protocol.ApprovalConfig{Rules: []protocol.ApprovalRule{{Tool: "*", Action: protocol.ApproveAllow}, {Tool: "write", Path: ".", Action: protocol.ApproveAllow}}}
	for _, c := range []struct {
		path  string
		asked bool
	}{
		{".git/hooks/pre-commit", true},
		{".git", true},
		{".GIT/config", true},
		{"sub/.git/config", true},
		{"sub/../.git/config", true},
		{"a/../.agents/plugins/x/plugin.toml", true},
		{".vscode/tasks.json", true},
		{".mcp.json", true},
		{".envrc", true},
		{".bashrc", true},
		{".Profile", true},
		{"home/.zshrc", true},
		{".bashrc::$DATA", true},
		{".envrc. .", true},
		{".en\u200bvrc", true},
		{".config/fish/config.fish", true},
		{"link/x", false},
		{".gitignore", false},
		{".github/workflows/ci.yml", false},
		{"git/config", false},
		{".agents/notes.md", true},
		{"agents/notes.md", false},
		{"bashrc", false},
		{"a/.vscode.md", false},
	} {
		for name, approval := range map[string]protocol.ApprovalConfig{"mode allow": allow, "a rule that allows": rule} {
			t.Run("outside/8 "+c.path+" with "+name, func(t *testing.T) {
				w := newWriter(t, c.path, approval)
				if err := os.Mkdir(filepath.Join(w.dir, "sub"), 0o755); err != nil { // a path through a missing directory can only fail
					t.Fatal(err)
				}
				asked, out := w.turn(t, protocol.ChooseReject, nil)
				if (asked != nil) != c.asked {
					t.Fatalf("asked %v, want %v: %+v", asked != nil, c.asked, out)
				}
				if asked != nil && (asked.Default != protocol.ChooseReject || len(asked.Choices) != 2) {
					t.Errorf("the question has the choices %v and the default %s", asked.Choices, asked.Default)
				}
				if asked != nil && !strings.Contains(asked.Prompt, "can run code later") {
					t.Errorf("the person is asked %q", asked.Prompt)
				}
			})
		}
	}
	t.Run("outside/8 through a link", func(t *testing.T) {
		w := newWriter(t, "link/config", allow)
		if err := os.Mkdir(filepath.Join(w.dir, ".git"), 0o755); err != nil {
			t.Fatal(err)
		}
		w.lead(t, ".git")
		if asked, _ := w.turn(t, protocol.ChooseReject, nil); asked == nil {
			t.Error("no approval was requested")
		}
	})
	t.Run("outside/8 outside/29 a path that cannot be followed", func(t *testing.T) {
		w := newWriter(t, "link/x", allow)
		w.lead(t, "link")
		if asked, _ := w.turn(t, protocol.ChooseReject, nil); asked == nil {
			t.Error("no approval was requested")
		}
	})
	t.Run("outside/8 outside/29 reading a protected file needs no approval", func(t *testing.T) {
		w := newCaller(t, "read", map[string]string{"path": ".envrc"}, allow)
		if asked, out := w.turn(t, protocol.ChooseReject, nil); asked != nil {
			t.Errorf("a person was asked: %+v", out)
		}
	})
	for names, want := range map[string]bool{
		"HEAD objects refs": true, "HEAD commondir": true, "objects refs": false, "commondir": false, "HEAD objects": false, "HEAD refs": false,
	} {
		t.Run("outside/8 outside/29 a directory by another name, with "+names, func(t *testing.T) {
			w := newWriter(t, "a/hooks/pre-commit", allow)
			for name := range strings.FieldsSeq(names) {
				if err := os.Mkdir(filepath.Join(w.dir, "a", name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if asked, out := w.turn(t, protocol.ChooseReject, nil); (asked != nil) != want {
				t.Errorf("asked %v, want %v: %+v", asked != nil, want, out)
			}
		})
	}
	t.Run("outside/8 an approval for one call does not cover the next call", func(t *testing.T) {
		w := newWriter(t, ".mcp.json", allow)
		for range 2 {
			if asked, out := w.turn(t, protocol.ChooseAllowOnce, nil); asked == nil || out.Failure != nil {
				t.Errorf("asked %v: %+v", asked != nil, out)
			}
		}
	})
	t.Run("outside/8 a rule that denies still denies", func(t *testing.T) {
		w := newWriter(t, ".mcp.json", protocol.ApprovalConfig{Rules: []protocol.ApprovalRule{{Tool: "write", Action: protocol.ApproveDeny}}})
		if asked, out := w.turn(t, protocol.ChooseAllowOnce, nil); asked != nil || out.Failure == nil {
			t.Errorf("asked %v: %+v", asked != nil, out)
		}
	})
}
