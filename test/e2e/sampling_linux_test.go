package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// The tool of the test server that asks for a sample, and the name under which lashd judges the request.
const (
	summaryTool  = "mcp__sdk__summary"
	samplingTool = "mcp_sampling__sdk"
	minutes      = "the minutes of the meeting"
)

// samplingWorld has the test server of the Go SDK as a server of the user, with settings of config.toml.
func samplingWorld(t *testing.T, settings string) (*world, *peer) {
	w := newWorld(t, "allow")
	w.write(filepath.Join(w.dir, "config.toml"), w.text("../data/config.toml")+settings)
	w.plugin("sampling", map[string]string{".mcp.json": mcpJSON(map[string]server{"sdk": {Command: goServer(t), Env: map[string]string{"SAMPLE": minutes}}})})
	w.serve()
	p := w.dial("")
	p.loads("sampling", nil)
	return w, p
}

// result returns the output of a turn's call of a tool.
func result(t *testing.T, r protocol.TurnReport, tool string) protocol.ToolOutput {
	t.Helper()
	i := slices.IndexFunc(r.ToolCalls, func(c protocol.ToolCallRecord) bool { return c.Name == tool })
	if i < 0 {
		t.Fatalf("the turn's calls are %+v, want one of %s", r.ToolCalls, tool)
	}
	return r.ToolCalls[i].Output
}

// sampling has the model call the tool that asks for a sample. answer is what the model says to the sample, if it is asked.
func (w *world) sampling(p *peer, id protocol.SessionID, answer string) protocol.TurnID {
	w.model.Push(step(uses(summaryTool, struct{}{})))
	if answer != "" {
		w.model.Push(step(says(answer)))
	}
	w.model.Push(step(says("done")))
	return p.start(id, "Summarize the meeting.").TurnID
}

// asks waits for the approval of a sampling request.
func (p *peer) asksForSample(turn protocol.TurnID) *protocol.Decision {
	p.t.Helper()
	return p.event("the sampling request", func(e protocol.Event) bool {
		return opened(e) && e.TurnID == turn && e.Decision.Call.Name == samplingTool
	}).Decision
}

func TestSampling(t *testing.T) {
	asking := protocol.ApprovalConfig{Rules: []protocol.ApprovalRule{{Tool: summaryTool, Action: protocol.ApproveAllow}}}
	w, p := samplingWorld(t, "[mcp.sdk]\nsampling = true\nsampling_max_tokens = 77\nsampling_per_turn = 2\n")
	t.Run("part13/6 a person sees and allows a sampling request, and the session pays for it", func(t *testing.T) {
		id := p.approving(w, asking)
		turn := w.sampling(p, id, "a short text")
		d := p.asksForSample(turn)
		args := string(d.Call.Args)
		for _, want := range []string{`"server":"sampling/sdk"`, `"model":"fake"`, minutes, `"system":"You write summaries."`, `"maxTokens":77`} {
			if !strings.Contains(args, want) {
				t.Errorf("the question has the arguments %s without %s", args, want)
			}
		}
		if d.Kind != protocol.DecisionApproval || d.Detail == nil || d.Detail.Editable {
			t.Errorf("the question is %+v", d)
		}
		p.allow(*d)
		if out := result(t, p.wait(turn), summaryTool); out.Text != "fake said a short text (endTurn)" {
			t.Errorf("the server got %+v", out)
		}
		sent := w.model.Requests()
		if sample := string(sent[len(sent)-2].Body); !strings.Contains(sample, minutes) || !strings.Contains(sample, "77") || strings.Contains(sample, summaryTool) {
			t.Errorf("the model got %s", sample)
		}
		used := ask[protocol.UsageReadResult](p, "usage/read", protocol.UsageReadParams{SessionID: id})
		if i := slices.IndexFunc(used.Data, func(r protocol.UsageRow) bool { return r.Source == samplingTool }); i < 0 || used.Data[i].Calls != 1 || used.Data[i].Usage.Input != inputTokens {
			t.Errorf("the ledger has %+v", used.Data)
		}
		if used.Total.Input != 3*inputTokens {
			t.Errorf("the session used %+v", used.Total)
		}
		audit := ask[protocol.AuditListResult](p, "audit/list", protocol.AuditListParams{SessionID: id}).Data
		if !strings.Contains(mustArgs(audit), samplingTool) {
			t.Errorf("the audit has %+v", audit)
		}
	})
	t.Run("part13/6 the server gets an error for a denied sampling request, and the model is not asked", func(t *testing.T) {
		id := p.approving(w, asking)
		before := len(w.model.Requests())
		turn := w.sampling(p, id, "")
		d := p.asksForSample(turn)
		ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: d.ID, Choice: protocol.ChooseReject, Reason: "my private reason"})
		if out := result(t, p.wait(turn), summaryTool); out.Text != "refused: -1 the user or a rule rejected the sampling request" {
			t.Errorf("the server got %+v", out)
		}
		if n := len(w.model.Requests()) - before; n != 2 {
			t.Errorf("the model was asked %d times", n)
		}
	})
	for action, want := range map[protocol.ApprovalMode]string{protocol.ApproveAllow: "fake said yes (endTurn)", protocol.ApproveDeny: "refused: -1 the user or a rule rejected the sampling request"} {
		t.Run("part13/6 a rule decides about sampling requests without a question: "+string(action), func(t *testing.T) {
			a := asking
			a.Rules = append(slices.Clone(a.Rules), protocol.ApprovalRule{Tool: samplingTool, Action: action})
			id, answer := p.approving(w, a), ""
			if action == protocol.ApproveAllow {
				answer = "yes"
			}
			turn := w.sampling(p, id, answer)
			if out := result(t, p.wait(turn), summaryTool); out.Text != want {
				t.Errorf("the server got %+v", out)
			}
			if slices.ContainsFunc(p.log(id), func(e told) bool { return opened(e.Event) }) {
				t.Error("a person was asked")
			}
		})
	}
	t.Run("part13/6 a turn has a limited number of sampling requests", func(t *testing.T) {
		id := p.approving(w, protocol.ApprovalConfig{Mode: protocol.ApproveAllow})
		call := fakemodel.Call{Name: summaryTool, Args: `{}`}
		w.model.Push(step(fakemodel.Part{Calls: []fakemodel.Call{call, call, call}}))
		w.model.Push(step(says("one")))
		w.model.Push(step(says("two")))
		w.model.Push(step(says("done")))
		turn := p.start(id, "Summarize three times.").TurnID
		var got []string
		for _, c := range p.wait(turn).ToolCalls {
			if c.Name == summaryTool {
				got = append(got, c.Output.Text)
			}
		}
		want := []string{"fake said one (endTurn)", "fake said two (endTurn)", "refused: -1 the server has sent 3 sampling requests in this turn, and its limit is 2"}
		if !slices.Equal(got, want) {
			t.Errorf("the server got %q, want %q", got, want)
		}
	})
	t.Run("part13/6 a sampling request outside of a turn is refused", func(t *testing.T) {
		id := p.approving(w, asking)
		r := ask[protocol.ToolCallResult](p, "tool/call", protocol.ToolCallParams{SessionID: id, Name: summaryTool})
		if !strings.HasPrefix(r.Output.Text, "refused: -1 lashd accepts a sampling request only during a call of a turn") {
			t.Errorf("the server got %+v", r.Output)
		}
	})
	t.Run("part13/6 the setting applies to the server of a client", func(t *testing.T) {
		// the name of a plugin's server is taken, so this daemon is another one
		w := newWorld(t, "allow")
		w.write(filepath.Join(w.dir, "config.toml"), w.text("../data/config.toml")+"[mcp.sdk]\nsampling = true\n")
		w.serve()
		p := w.dial("")
		id := p.brings(w.home, protocol.MCPServers{"sdk": {Command: goServer(t), Env: map[string]string{"SAMPLE": minutes}}})
		p.provides(id, summaryTool)
		p.attach(id, 0)
		if out := result(t, p.wait(w.sampling(p, id, "from the client's")), summaryTool); out.Text != "fake said from the client's (endTurn)" {
			t.Errorf("the server got %+v", out)
		}
	})
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}

func TestSamplingSurvivesACrash(t *testing.T) {
	w := newWorld(t, "allow")
	w.write(filepath.Join(w.dir, "config.toml"), w.text("../data/config.toml")+"[mcp.sdk]\nsampling = true\n")
	w.plugin("sampling", map[string]string{".mcp.json": mcpJSON(map[string]server{"sdk": {Command: goServer(t), Env: map[string]string{"SAMPLE": minutes}}})})
	d := w.serve()
	p := w.dial("")
	p.loads("sampling", nil)
	start := func(tool string) (protocol.SessionID, *protocol.Decision) {
		id := p.approving(w, protocol.ApprovalConfig{Rules: []protocol.ApprovalRule{{Tool: "mcp__sdk__*", Action: protocol.ApproveAllow}}})
		w.model.Push(step(uses(tool, struct{}{})))
		return id, p.asksForSample(p.start(id, "go").TurnID)
	}
	crash := func() {
		d.kill()
		d = w.serve()
		p = w.dial("")
	}
	t.Run("part13/6 the question about a request of a call that is safe to repeat stays open, and its answer counts", func(t *testing.T) {
		id, asked := start("mcp__sdk__outline")
		crash()
		p.attach(id, 0)
		eventually(t, "the question is open again", func() error {
			open := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data
			if len(open) != 1 || open[0].ID != asked.ID {
				return fmt.Errorf("open are %+v", open)
			}
			return nil
		})
		w.model.Push(step(says("a short text")))
		w.model.Push(step(says("done")))
		p.allow(*asked)
		if out := result(t, p.wait(asked.TurnID), "mcp__sdk__outline"); out.Text != "fake said a short text (endTurn)" {
			t.Errorf("the server got %+v", out)
		}
	})
	t.Run("part13/6 a call that is not safe to repeat is not, and its request is not answered", func(t *testing.T) {
		id, asked := start(summaryTool)
		before := len(w.model.Requests())
		crash()
		p.attach(id, 0)
		outcome := p.event("the question about the outcome", func(e protocol.Event) bool {
			return opened(e) && e.Decision.Kind == protocol.DecisionOutcome && e.TurnID == asked.TurnID
		}).Decision
		w.model.Push(step(says("done")))
		ask[protocol.DecisionRespondResult](p, "decision/respond", protocol.DecisionRespondParams{DecisionID: outcome.ID, Choice: protocol.ChooseTellModel})
		p.wait(asked.TurnID)
		if open := ask[protocol.DecisionListResult](p, "decision/list", protocol.DecisionListParams{SessionID: id}).Data; len(open) > 0 {
			t.Errorf("still open are %+v", open)
		}
		if n := len(w.model.Requests()) - before; n != 1 {
			t.Errorf("the model was asked %d times", n)
		}
	})
}

func TestSamplingIsNotOffered(t *testing.T) {
	refused := func(t *testing.T, out protocol.ToolOutput) {
		t.Helper()
		if !strings.Contains(out.Text, "-32601") {
			t.Errorf("the server got %+v", out)
		}
	}
	t.Run("part13/6 without the setting, a server may not sample", func(t *testing.T) {
		w, p := samplingWorld(t, "[mcp.sdk]\nnetwork = true\n")
		refused(t, result(t, p.wait(w.sampling(p, p.session(w.home), "")), summaryTool))
	})
	t.Run("part13/6 the setting does not apply to the server of a workspace", func(t *testing.T) {
		w := newWorld(t, "allow")
		w.write(filepath.Join(w.dir, "config.toml"), w.text("../data/config.toml")+"[mcp.sdk]\nsampling = true\n")
		w.write(filepath.Join(w.work, ".mcp.json"), mcpJSON(map[string]server{"sdk": {Command: goServer(t)}}))
		w.serve()
		p := w.dial("")
		id := p.session(w.home)
		read := ask[protocol.PluginReadResult](p, "plugin/read", protocol.PluginReadParams{Name: "project", Cwd: w.work})
		w.lash("plugin", "trust", "project", "--digest", string(read.Digest))
		p.provides(id, summaryTool)
		refused(t, result(t, p.wait(w.sampling(p, id, "")), summaryTool))
	})
}
