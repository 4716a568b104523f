//go:build unix

package plugins_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/workspace"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/plugin/plugintest"
	"lashd/engine/provider/scripted"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

// open is a session with a plugin.
func open(t testing.TB, f plugin.Factory) *plugin.Session {
	t.Helper()
	h := builtintest.Must(plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{f}))(t)
	s := builtintest.Must(h.Open(t.Context(), standard.ID, nil, plugin.BuildContext{SessionID: "ses_1", Cwd: t.TempDir(), StateDir: t.TempDir()}))(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestExamplesKeepTheContract(t *testing.T) {
	for _, name := range []string{"policy", "masker", "memory", "reminder", "reviewer"} {
		t.Run("issue/4-9 example "+name, func(t *testing.T) {
			c := plugintest.Config{Seams: patience}
			switch name {
			case "memory":
				c.Change = func(s *plugin.Session) { remember(t, s, "tea at five") }
			case "reviewer":
				c.Change = func(s *plugin.Session) {
					if _, err := s.AfterTurn(context.Background(), &plugin.TurnSummary{TurnID: "trn_1", Report: &protocol.TurnReport{}}); err != nil {
						t.Error(err)
					}
				}
			}
			f := begin(t, example(t, name, ""))
			if err := f.Start(t.Context()); err != nil { // go run takes its time
				t.Fatal(err)
			}
			plugintest.Run(t, unstopped{f}, c)
		})
	}
}

// TestExamplesAreWhole sees to it that each example has the newest SDK, beside nothing that it does not need.
func TestExamplesAreWhole(t *testing.T) {
	for example, sdk := range map[string]string{
		"policy": "sdk/python/lashd_plugin.py", "masker": "sdk/python/lashd_plugin.py", "memory": "sdk/typescript/lashd-plugin.mts",
		"reminder": "sdk/python/lashd_plugin.py", "python-executor": "sdk/python/lashd_plugin.py", "reviewer": "sdk/go/lashdplugin",
	} {
		err := filepath.WalkDir(sdk, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel := strings.TrimPrefix(path, filepath.Dir(sdk))
			copied, err := os.ReadFile(filepath.Join("examples", example, rel))
			if want, _ := os.ReadFile(path); !bytes.Equal(copied, want) {
				t.Errorf("examples/%s%s is not %s", example, rel, path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// shellCall is a call of the shell, as hooks are shown it.
func shellCall(command string) *plugin.ToolCallContext {
	args, _ := json.Marshal(map[string]string{"command": command}) // of text
	return &plugin.ToolCallContext{CallID: "c1", Tool: "shell", Kind: protocol.ToolKindExecute, Args: args}
}

func TestPolicy(t *testing.T) {
	// judged is deny, ask or allow.
	judged := func(t testing.TB, s *plugin.Session, tc *plugin.ToolCallContext) string {
		t.Helper()
		v := builtintest.Must(s.BeforeToolCall(t.Context(), tc))(t)
		switch {
		case v.Denied:
			return "deny"
		case v.Approval != nil:
			return "ask"
		}
		return "allow"
	}
	t.Run("issue/4-9 policy denies, asks or allows by its rules, and denies if it cannot read them", func(t *testing.T) {
		c := example(t, "policy", `{"deny":["rm -rf"],"ask":["git push",{"tool":"write|edit","match":"\\.env"}],"allow":["git \\w+"],"otherwise":"ask"}`)
		s := open(t, begin(t, c))
		for command, want := range map[string]string{
			"rm -rf /": "deny", "true; rm -rf /": "deny", "true\nrm -rf /": "deny", "git status": "allow", "git push": "allow",
			"git push origin": "ask", "git status; git push": "ask", "git status\nmake": "ask", "make": "ask", "": "ask",
		} {
			if got := judged(t, s, shellCall(command)); got != want {
				t.Errorf("%q is judged %s, want %s", command, got, want)
			}
		}
		for path, want := range map[string]string{"/work/.env": "ask", "/work/main.go": "allow"} {
			tc := &plugin.ToolCallContext{Tool: "write", Kind: protocol.ToolKindEdit, Args: json.RawMessage(`{"path":"` + path + `"}`)}
			if got := judged(t, s, tc); got != want {
				t.Errorf("writing %s is judged %s, want %s", path, got, want)
			}
		}
		for rules, want := range map[string]string{
			`{"deny":["mak"]}`: "deny", `{"deny":["mak("]}`: "deny", `{"allow":["make"]}`: "allow", `{"allow":`: "deny", `{"alow":[]}`: "deny", `[]`: "deny",
		} {
			file := filepath.Join(c.DataDir, "rules.json")
			if err := os.WriteFile(file+".new", []byte(rules), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
			if got := judged(t, s, shellCall("make")); got != want {
				t.Errorf("with the rules %s a command is judged %s, want %s", rules, got, want)
			}
		}
	})
	t.Run("issue/4-9 in a turn, policy asks a person, and a denied call does not run", func(t *testing.T) {
		run := func(t *testing.T, answer protocol.DecisionChoice) protocol.ToolOutput {
			t.Helper()
			model := builtintest.Calling(scripted.Call{ID: "c1", Name: "write", Args: json.RawMessage(`{"path":"a","content":"b"}`)})
			policy := begin(t, example(t, "policy", `{"ask":[{"tool":"write","match":"a"}]}`))
			d := builtintest.Start(t, t.TempDir(), 0, model, &workspace.Factory{}, policy)
			id := d.Session(t, nil)
			began := builtintest.Must(d.Turns.Start(t.Context(), &protocol.TurnStartParams{
				SessionID: id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: "go"}},
			}))(t)
			var open []protocol.Decision
			wait.Until(t, "a person is asked", func() bool {
				open = builtintest.Must(d.Decisions.List(t.Context(), &protocol.DecisionListParams{SessionID: id}))(t).Data
				return len(open) == 1
			})
			builtintest.Must(d.Decisions.Respond(t.Context(), "test", &protocol.DecisionRespondParams{DecisionID: open[0].ID, Choice: answer, ArgsHash: open[0].ArgsHash}))(t)
			builtintest.Must(d.Turns.Wait(t.Context(), &protocol.TurnWaitParams{TurnID: began.TurnID}))(t)
			return d.Result(t, id)
		}
		if got := run(t, protocol.ChooseAllowOnce); got.Status != protocol.OutputSuccess {
			t.Errorf("allowed: %+v %+v", got, got.Failure)
		}
		if got := run(t, protocol.ChooseReject); got.Status != protocol.OutputFailure {
			t.Errorf("rejected: %+v", got)
		}
	})
}

func TestMasker(t *testing.T) {
	const key, pem = "sk-abcdefghijklmnop1234", "-----BEGIN RSA PRIVATE KEY-----\nMIIB\nAAAA\n-----END RSA PRIVATE KEY-----"
	t.Run("issue/4-9 masker masks streamed text however it is split, and stores no secret", func(t *testing.T) {
		said := "The key is " + key + ", the password swordfish-12 and\n" + pem + "\nAsk sk- or AKIA; ----- done sk"
		const want = "The key is [masked], the password [masked] and\n[masked]\nAsk sk- or AKIA; ----- done sk"
		c := example(t, "masker", `{"environment":["TEST_SECRET"]}`)
		c.Set["TEST_SECRET"] = "swordfish-12"
		f := begin(t, c)
		s := open(t, f)
		for size := 1; size < len(said); size++ {
			var shown strings.Builder
			for rest := said; rest != ""; rest = rest[min(size, len(rest)):] {
				shown.WriteString(builtintest.Must(s.Stream(t.Context(), plugin.StreamChunk{Text: rest[:min(size, len(rest))]}))(t).Text)
			}
			if strings.Contains(shown.String(), "sk-abc") || strings.Contains(shown.String(), "swordfish") || strings.Contains(shown.String(), "MIIB") || len(shown.String()) < len(want)-12 {
				t.Errorf("in chunks of %d: %q is shown", size, shown.String())
			}
			reply := builtintest.Must(s.Response(t.Context(), plugin.Response{Parts: []protocol.Part{{Kind: protocol.PartProse, Text: shown.String()}}}))(t)
			if got := reply.Parts[0].Text; got != want {
				t.Errorf("in chunks of %d: in the end it is %q", size, got)
			}
		}
		for size := 1; size < len(said); size = size*5/3 + 1 {
			model := scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: said, ChunkSize: size}}}})
			dir := t.TempDir()
			d := builtintest.Start(t, dir, 0, model, f)
			id := d.Session(t, nil)
			report := d.Turn(t, id, "go")
			if report.Outcome.Text != want {
				t.Errorf("in chunks of %d: %q, %+v", size, report.Outcome.Text, report.Issues)
			}
			d.Stop()
			for _, secret := range []string{key, "swordfish-12", "MIIB"} {
				if holds(t, dir, secret) {
					t.Errorf("in chunks of %d: %q is stored", size, secret)
				}
			}
		}
	})
	t.Run("issue/4-9 masker masks tool results", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "secret"), []byte("key="+key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		model := &builtintest.Recorder{Provider: builtintest.Calling(scripted.Call{ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"secret"}`)})}
		d := builtintest.Start(t, t.TempDir(), 0, model, &workspace.Factory{}, begin(t, example(t, "masker", "")))
		id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: dir}))(t).SessionID
		d.Turn(t, id, "go")
		got := d.Result(t, id)
		if asked := fmt.Sprint(model.Last(t).Messages); strings.Contains(got.Text+string(got.Value)+asked, key) || !strings.Contains(got.Text, "key=[masked]") {
			t.Errorf("the result is %+v %+v, and the model reads %s", got, got.Failure, asked)
		}
	})
}

// holds reports whether any file of a directory contains a text.
func holds(t testing.TB, dir, text string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || bytes.Contains(data, []byte(text))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return found
}

// remember has the plugin keep a note.
func remember(t testing.TB, s *plugin.Session, text string) {
	t.Helper()
	for _, src := range s.Sources() {
		args, _ := json.Marshal(map[string]string{"text": text}) // of text
		res, err := src.Provider.Execute(context.Background(), invocation("remember", args))
		if err != nil || res.Output.Failure != nil {
			t.Error(err, res.Output.Failure)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Run("issue/4-9 memory keeps notes in the prompt, in forks, through a restore and a compaction", func(t *testing.T) {
		model := &builtintest.Recorder{Provider: builtintest.Calling(scripted.Call{ID: "c1", Name: "remember", Args: json.RawMessage(`{"text":"tea at five"}`)})}
		dir, c := t.TempDir(), example(t, "memory", `{"notes":2}`)
		d := builtintest.Start(t, dir, 0, model, begin(t, c))
		id := d.Session(t, nil)
		d.Turn(t, id, "remember the tea")
		if s := model.Last(t).System; !strings.Contains(s, "1. tea at five") {
			t.Errorf("the prompt is %q", s)
		}
		tool := func(id protocol.SessionID, name, args string) protocol.ToolOutput {
			t.Helper()
			return builtintest.Must(d.Tools.Call(t.Context(), &protocol.ToolCallParams{SessionID: id, Name: name, Args: json.RawMessage(args)}))(t).Output
		}
		recall := func(id protocol.SessionID) string { return tool(id, "recall", `{}`).Text }
		fork := builtintest.Must(d.History.Fork(t.Context(), &protocol.SessionForkParams{SessionID: id}))(t).SessionID
		builtintest.Must(d.Snapshots.Create(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "tea"}))(t)
		tool(id, "remember", `{"text":"cake at six"}`)
		if got := tool(id, "remember", `{"text":"a third"}`); got.Failure == nil || got.Failure.Code != "too_many_notes" {
			t.Errorf("a third note: got %+v", got)
		}
		tool(id, "forget", `{"number":1}`)
		if got := []string{recall(id), recall(fork)}; got[0] != "2. cake at six" || got[1] != "1. tea at five" {
			t.Errorf("the session and its fork have %q", got)
		}
		builtintest.Must(d.Snapshots.Restore(t.Context(), &protocol.SnapshotMutationParams{SessionID: id, Name: "tea"}))(t)
		if got := recall(id); got != "1. tea at five" {
			t.Errorf("restored, there is %q", got)
		}
		done := builtintest.Must(d.Sessions.Compact(t.Context(), &protocol.SessionCompactParams{SessionID: id}))(t)
		d.Turn(t, id, "what now?")
		if told := fmt.Sprint(model.Asked[len(model.Asked)-2].Messages[0]); !done.Compacted || !strings.Contains(told, "tea at five") || !strings.Contains(told, "remember the tea") {
			t.Errorf("%+v: the model reads %s", done, told)
		}
		d.Stop()
		d = builtintest.Start(t, dir, 0, model, begin(t, c))
		if got := recall(fork); got != "1. tea at five" {
			t.Errorf("after a restart the fork has %q", got)
		}
	})
}

func TestReviewer(t *testing.T) {
	t.Run("issue/4-9 reviewer asks for a review after several edits and lists the changes of turns", func(t *testing.T) {
		write := func(name string) scripted.Reply {
			return scripted.Reply{ToolCalls: []scripted.Call{{Name: "write", Args: json.RawMessage(`{"path":"` + name + `","content":"x"}`)}}}
		}
		model := &builtintest.Recorder{Provider: scripted.New(&scripted.Script{
			Turns: []scripted.Turn{{
				Match: &scripted.Match{LastUserContains: "Read your diff"}, Replies: []scripted.Reply{write("c"), {Text: "done"}},
			}},
			Otherwise: &scripted.Turn{Replies: []scripted.Reply{write("a"), write("b")}},
		})}
		f := begin(t, example(t, "reviewer", `{"edits":2}`))
		if err := f.Start(t.Context()); err != nil { // go run takes its time
			t.Fatal(err)
		}
		d := builtintest.Start(t, t.TempDir(), 0, model, &workspace.Factory{}, f)
		id := d.Session(t, nil)
		report := d.Turn(t, id, "go")
		var reviews []string
		for _, m := range model.Last(t).Messages {
			if m.Role == protocol.RoleUser && strings.Contains(m.Text(protocol.PartText), "Read your diff") {
				reviews = append(reviews, m.Text(protocol.PartText))
			}
		}
		if len(reviews) != 1 || !strings.Contains(reviews[0], "2 edits, of a, b.") {
			t.Errorf("the model is asked %q (%+v, %+v)", reviews, report.Outcome, report.Issues)
		}
		got := builtintest.Must(d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: "reviewer.summary"}))(t)
		want := fmt.Sprintf(`[{"turnId":%q,"files":["a","b","c"],"edits":3,"failed":0,"reviews":1}]`, report.TurnID)
		if string(got.Output) != want {
			t.Errorf("the summary is %s, want %s", got.Output, want)
		}
	})
}

func TestFormatter(t *testing.T) {
	t.Run("issue/4-9 formatter formats a written file if it can, without a message", func(t *testing.T) {
		root := builtintest.Must(os.OpenRoot("examples/formatter"))(t)
		defer root.Close()
		p := builtintest.Must(manifest.Load(root))(t)
		hook := p.CommandHooks[0]
		dir, ugly := t.TempDir(), "package   a\n"
		for _, name := range []string{"a.go", `b".go`, "c.txt"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(ugly), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		format := func(input any) {
			t.Helper()
			args := append([]string{hook.Command}, hook.Args...)
			for i := range args {
				args[i] = manifest.Substitute(args[i], absolute(t, "examples/formatter"), "", nil)
			}
			event := builtintest.Must(json.Marshal(map[string]any{"cwd": dir, "tool_name": "Write", "tool_input": input}))(t)
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Stdin = bytes.NewReader(event)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s: %v, %s", event, err, out)
			}
		}
		format(map[string]string{"file_path": filepath.Join(dir, "a.go"), "content": `{"file_path":"c.txt"}`})
		format(map[string]string{"path": `b".go`})
		format(map[string]string{"path": "c.txt"})
		format(map[string]string{"path": "absent.go"})
		format(nil)
		for name, want := range map[string]string{"a.go": "package a\n", `b".go`: ugly, "c.txt": ugly} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
	})
}
