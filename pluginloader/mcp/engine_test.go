//go:build unix

package mcp_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
	"lashd/test/wait"
)

func calling(name, args string) *builtintest.Recorder {
	return &builtintest.Recorder{Provider: builtintest.Calling(scripted.Call{ID: "c1", Name: name, Args: json.RawMessage(args)})}
}

// plugged is a daemon with a part as its plugin.
func plugged(t *testing.T, p *mcp.Part, model *builtintest.Recorder) *builtintest.Daemon {
	t.Helper()
	return builtintest.Start(t, t.TempDir(), 0, model, plugin.Builder("notes", p.Spec))
}

func TestTurn(t *testing.T) {
	t.Run("runtime/K05 issue/4-2 a model calls a tool of an MCP server", func(t *testing.T) {
		model := calling("mcp__x__echo", `{"text":"hello"}`)
		d := plugged(t, one(t, guest("good")), model)
		id := d.Session(t, nil)
		report := d.Turn(t, id, "go")
		if got := d.Result(t, id); got.Text != "you said hello" || report.Outcome.Kind != protocol.OutcomeAssistantMessage {
			t.Errorf("%+v, %+v", got, report.Outcome)
		}
		var offered []string
		for _, m := range model.Last(t).Tools {
			offered = append(offered, m.Name)
		}
		if !slices.Equal(offered, goodNames) {
			t.Errorf("the model has the tools %q", offered)
		}
	})
	t.Run("part13/vscode a call has the title that the server gives its tool, in history, too", func(t *testing.T) {
		d := plugged(t, one(t, guest("good")), calling("mcp__x__echo", `{"text":"hello"}`))
		id := d.Session(t, nil)
		d.Turn(t, id, "go")
		items := builtintest.Must(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))(t).Data
		at := slices.IndexFunc(items, func(i protocol.Item) bool { return i.Kind == protocol.ItemToolCall })
		if at < 0 || items[at].Title.Line(items[at].Status) != "Called x: Echo of a text hello" {
			t.Errorf("%+v", items)
		}
	})
	t.Run("runtime/K05 images become artifacts of the session", func(t *testing.T) {
		d := plugged(t, one(t, guest("good")), calling("mcp__x__shows", `{"text":""}`))
		id := d.Session(t, nil)
		d.Turn(t, id, "go")
		ref := d.Result(t, id).Artifact
		if ref == nil {
			t.Fatal("there is no artifact")
		}
		got := builtintest.Must(d.Artifacts.Read(t.Context(), &protocol.ArtifactReadParams{Digest: ref.Digest}))(t)
		if string(got.Bytes) != "a picture" {
			t.Errorf("%+v", got)
		}
		if a := d.Result(t, id).Attachments; len(a) != 1 || a[0].Type != "image/png" || a[0].Tokens != 85 {
			t.Errorf("runtime/S15 the model gets %+v", a)
		}
	})
	t.Run("runtime/K05 issue/4-7 a crash fails the call, and the turn continues", func(t *testing.T) {
		d := plugged(t, one(t, guest("good")), calling("mcp__x__dies", `{"text":""}`))
		id := d.Session(t, nil)
		report := d.Turn(t, id, "go")
		if got := d.Result(t, id); got.Failure == nil || got.Failure.Code != "plugin_crashed" || report.Outcome.Kind != protocol.OutcomeAssistantMessage {
			t.Errorf("%+v, %+v", got, report.Outcome)
		}
	})
	for name, server := range map[string]func(*testing.T) manifest.Server{
		"stdio": func(*testing.T) manifest.Server { return guest("good") },
		"http":  func(t *testing.T) manifest.Server { return manifest.Server{URL: serve(t).URL} },
	} {
		for choice, want := range map[protocol.DecisionChoice]string{protocol.ChooseAnswer: "accept red", protocol.ChooseReject: "decline <nil>"} {
			t.Run("runtime/K05 a question of a server during a call goes to a person: "+name+" "+string(choice), func(t *testing.T) {
				s := server(t)
				s.TimeoutMs = 2000
				p := one(t, s)
				t.Cleanup(func() { _ = p.Shutdown(context.Background()) })
				d := plugged(t, p, calling("mcp__x__asks", `{"text":""}`))
				id := d.Session(t, nil)
				go func() {
					var open []protocol.Decision
					wait.Until(t, "the question", func() bool {
						open = builtintest.Must(d.Decisions.List(t.Context(), &protocol.DecisionListParams{SessionID: id}))(t).Data
						return len(open) == 1
					})
					if q := open[0]; q.Kind != protocol.DecisionQuestion || q.Prompt != "The MCP server notes/x asks: Which colour?" || !strings.Contains(string(q.Form), `"colour"`) {
						t.Errorf("asked %+v", q)
					}
					time.Sleep(2200 * time.Millisecond) // longer than a call may take
					_, err := d.Decisions.Respond(t.Context(), "cli_a", &protocol.DecisionRespondParams{DecisionID: open[0].ID, Choice: choice, Value: json.RawMessage(`{"colour":"red"}`)})
					if err != nil {
						t.Error(err)
					}
				}()
				d.Turn(t, id, "go")
				if got := d.Result(t, id); got.Text != want {
					t.Errorf("%+v, want %q", got, want)
				}
			})
		}
	}
	t.Run("runtime/K05 a question that belongs to no single turn is dismissed", func(t *testing.T) {
		count := filepath.Join(t.TempDir(), "calls")
		c := config(t, map[string]manifest.Server{"x": guest("good", countVariable, count)})
		p := begin(t, pooled(t), c)
		other := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer close(other)
			_, _ = p.Execute(ctx, tool.Invocation{SessionID: "ses_2", TurnID: "trn_2", ToolID: "mcp__x__slow", Args: []byte(`{"text":""}`), Host: &host{}})
		}()
		wait.Until(t, "the other call", func() bool { return counted(count) == "slow\n" })
		out, err := call(t.Context(), p, "mcp__x__asks", `{"text":""}`, &host{}) // which cannot be asked
		if err != nil || out.Text != "cancel <nil>" || !strings.Contains(said(c), "lashd cannot tell which one") {
			t.Errorf("%+v %v, %s", out, err, said(c))
		}
		cancel()
		<-other
	})
	t.Run("runtime/K05 a question without a person to ask is dismissed", func(t *testing.T) {
		c := config(t, map[string]manifest.Server{"x": guest("good")})
		out, err := call(t.Context(), begin(t, pooled(t), c), "mcp__x__asks", `{"text":""}`, nil)
		if err != nil || out.Text != "cancel <nil>" {
			t.Errorf("%+v %v", out, err)
		}
	})
}
