package e2e

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// TestACPCommands calls operations of plugins as slash commands.
func TestACPCommands(t *testing.T) {
	w := newWorld(t, "allow",
		step(uses("update_plan", map[string]any{"steps": []map[string]string{{"text": "look", "status": "completed"}}})), step(says("Planned.")),
		step(says("No command.")))
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	var offered []string
	e.until("the editor knows the commands", func() bool {
		for _, u := range e.updates {
			if u.AvailableCommandsUpdate != nil {
				for _, c := range u.AvailableCommandsUpdate.AvailableCommands {
					offered = append(offered, c.Name)
				}
				return true
			}
		}
		return false
	})
	if !slices.Contains(offered, "compact") || !slices.Contains(offered, "plan") {
		t.Errorf("issue/6-3 the commands are %q", offered)
	}
	e.says("plan it")
	for _, c := range []struct{ says, want string }{
		{"/compact", "There is nothing to summarize."},
		{"/plan", "```json\n{\"steps\":[{\"text\":\"look\",\"status\":\"completed\"}]}\n```"},
		{"/nothing of the kind", "agent: No command."},
	} {
		if stop := e.says(c.says); stop != sdk.StopReasonEndTurn || !strings.HasSuffix(e.story(), c.want) {
			t.Errorf("issue/6-3 %s ends with %s:\n%s\nwant %s", c.says, stop, e.story(), c.want)
		}
	}
	if r := <-e.begins("/plan now"); acpRefusal(r.err) != "-32602 invalidParams" {
		t.Errorf("issue/6-3 invalid arguments: %s %v", r.stop, r.err)
	}
	if n := len(w.model.Requests()); n != 3 {
		t.Errorf("issue/6-3 the model was called %d times", n)
	}
}

// TestACPUsage checks that the editor shows how full the context is.
func TestACPUsage(t *testing.T) {
	w := newWorld(t, "allow", step(says("Hello.")))
	w.write(w.dir+"/config.toml", fmt.Sprintf("approval = \"allow\"\n[[models]]\nid = \"fake\"\nbase_url = \"http://%s/v1\"\nkey_env = \"LASHD_E2E_NO_KEY\"\ncontext_window = 1000\n", w.door.Addr()))
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	e.says("hi")
	if want := fmt.Sprintf("usage: %d of 1000", inputTokens+outputTokens); !e.shown(want) {
		t.Errorf("issue/6-3 the editor was not shown %q:\n%s", want, e.story())
	}
}

// TestACPCompact previews a compaction before it happens.
func TestACPCompact(t *testing.T) {
	t.Run("part13/8 /compact shows in an editor what a summary would replace, and /compact now summarizes", func(t *testing.T) {
		w := newWorld(t, "allow", step(says("One.")), step(says("Two.")), step(says("Three.")), step(says("They counted.")))
		w.write(w.dir+"/config.toml", fmt.Sprintf("approval = \"allow\"\n[[models]]\nid = \"fake\"\nbase_url = \"http://%s/v1\"\nkey_env = \"LASHD_E2E_NO_KEY\"\ncontext_window = 4000\n", w.door.Addr()))
		defer w.shutdown()
		e := w.editor(sdk.ClientCapabilities{})
		e.open(w.work)
		for _, n := range []string{"first", "second", "third"} {
			e.says(n + "\n" + strings.Repeat("walrus ", 500))
		}
		before, requests := e.story(), len(w.model.Requests())
		e.says("/compact keep names")
		said := strings.TrimPrefix(e.story(), before)
		for _, want := range []string{"agent: Nothing has changed yet.\n\n    The history has about ", "\n    A summary replaces ", "\n      › first\n", "stay word for word:\n      › third\n", "\n\nTo summarize, send:\n\n    /compact now keep names"} {
			if !strings.Contains(said, want) {
				t.Errorf("the editor was shown\n%s\nwithout %q", said, want)
			}
		}
		if n := len(w.model.Requests()); n != requests {
			t.Errorf("the preview called the model %d times", n-requests)
		}
		e.says("/compact now keep names")
		if !strings.Contains(e.story(), "The conversation so far was summarized.") || len(w.model.Requests()) != requests+1 || !strings.Contains(w.bodies()[requests], "keep names") {
			t.Errorf("the editor was shown\n%s", e.story())
		}
	})
}

// TestACPCostOfSubagents shows what subagents cost, too, also if they end after the turn.
func TestACPCostOfSubagents(t *testing.T) {
	t.Run("part13/8 an editor is shown what the session has cost with its subagents", func(t *testing.T) {
		w := team(t)
		w.write(w.dir+"/config.toml", fmt.Sprintf("approval = \"allow\"\n[[models]]\nid = \"fake\"\nbase_url = \"http://%s/v1\"\nkey_env = \"LASHD_E2E_NO_KEY\"\ncontext_window = 1000\nprice = {input = 10000, output = 10000}\n", w.door.Addr()))
		defer w.shutdown()
		e := w.editor(sdk.ClientCapabilities{})
		e.open(w.work)
		e.says("lead")
		w.dial("").noted(protocol.SessionID(e.id), 3)
		e.until("the cost of all calls of the model is shown", func() bool {
			for _, u := range e.updates {
				if u.UsageUpdate != nil && u.UsageUpdate.Cost != nil && math.Abs(u.UsageUpdate.Cost.Amount-float64(len(w.model.Requests())*(inputTokens+outputTokens))/100) < 1e-6 {
					return true
				}
			}
			return false
		})
	})
}

// TestACPChildren has a subagent ask, and the user at the editor answer.
func TestACPChildren(t *testing.T) {
	w := team(t)
	defer w.shutdown()
	e := w.editor(sdk.ClientCapabilities{})
	e.open(w.work)
	p, id := w.dial(""), protocol.SessionID(e.id)
	ask[protocol.HeadResult](p, "session/configure", protocol.SessionConfigureParams{SessionID: id, Approval: &protocol.ApprovalConfig{
		Mode: protocol.ApproveAllow, Rules: []protocol.ApprovalRule{{Tool: "shell", Action: protocol.ApproveAsk}},
	}})
	answer := make(chan string)
	e.answers(func(context.Context, sdk.RequestPermissionRequest) string { return <-answer })
	e.says("lead")
	e.until("the person is asked", func() bool { return len(e.asked) == 1 })
	p.noted(id, 2)
	answer <- "allowOnce"
	p.noted(id, 3)
	if asked := e.questions(); len(asked) != 1 || *asked[0].ToolCall.Title != "Run printf x >> ran (without a sandbox)" || w.size("ran") != 1 {
		t.Errorf("issue/6-3 the person was asked %+v, and the command has run %d times", asked, w.size("ran"))
	}
	e.until("the call is shown to its end", func() bool {
		story := e.storyLocked()
		return strings.Contains(story, "call execute Run printf x >> ran (without a sandbox) (pending)") && strings.Count(story, "call completed") == 4 // with the calls that started them
	})
}

// TestACPLoadsAtOnce loads one session several times at once while text streams. It is followed once.
func TestACPLoadsAtOnce(t *testing.T) {
	w := newWorld(t, "allow")
	defer w.shutdown()
	first := w.editor(sdk.ClientCapabilities{})
	first.open(w.work)
	first.says("[[fake]]")
	first.begins("[[fake deltas=300 size=8 us=3000]]")
	first.until("the answer begins", func() bool { return strings.Count(first.storyLocked(), "agent:") == 2 })
	e := w.editor(sdk.ClientCapabilities{})
	e.id = first.id
	var loads sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		ctx := e.context()
		loads.Go(func() {
			if i%2 == 0 {
				_, errs[i] = e.LoadSession(ctx, sdk.LoadSessionRequest{SessionId: e.id, Cwd: w.work, McpServers: []sdk.McpServer{}})
			} else {
				_, errs[i] = e.ResumeSession(ctx, sdk.ResumeSessionRequest{SessionId: e.id, Cwd: w.work})
			}
		})
	}
	loads.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal("issue/6-3", err)
	}
	if stop := e.says("[[fake deltas=300 size=8 us=2000]]"); stop != sdk.StopReasonEndTurn {
		t.Errorf("issue/6-3 a prompt ends with %s", stop)
	}
	if got, want := e.story(), "agent: "+finalText(t, w, e); !strings.HasSuffix(got, want) || strings.Count(got, want) != 1 {
		t.Errorf("issue/6-3 the editor was shown\n%s\nwant %s at its end", got, want)
	}
}
