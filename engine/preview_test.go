package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func (d *daemon) preview(t *testing.T, id protocol.SessionID, input string) *protocol.DebugPromptResult {
	t.Helper()
	return must[*protocol.DebugPromptResult](t)(d.Sessions.PreviewPrompt(t.Context(), &protocol.DebugPromptParams{SessionID: id, Input: text(input)}))
}

// shown returns one line for each part of a request.
func shown(system string, tools []protocol.ToolManifest, messages []protocol.Message) []string {
	lines := []string{system}
	for _, m := range tools {
		lines = append(lines, "tool "+m.Name)
	}
	for _, m := range messages {
		lines = append(lines, fmt.Sprintf("%s %s", m.Role, m.Parts[0].Text))
	}
	return lines
}

func sent(req *provider.Request) []string {
	var messages []protocol.Message
	for _, m := range req.Messages {
		messages = append(messages, *m)
	}
	return shown(req.System, req.Tools, messages)
}

func codesOf(issues []protocol.Issue) (codes []string) {
	for _, issue := range issues {
		codes = append(codes, issue.Code+" "+issue.Message)
	}
	return codes
}

func TestPreview(t *testing.T) {
	adds := func(content string) hooked {
		return prompting("says", func(_ context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
			return []plugin.Prompt{{Slot: plugin.SlotGuidance, Content: fmt.Sprintf("%s %d", content, len(pc.View.Messages()))}}, nil
		})
	}
	t.Run("plugin/HK-28 plugin/HK-29 debug/prompt shows the next model call after hooks and transforms", func(t *testing.T) {
		shape := transforms("shape", 0, func(_ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			pc.Messages = []protocol.Message{userSays("in short")}
			pc.Prompts = []plugin.Prompt{{Slot: plugin.SlotIntro, Content: "use what is lent"}}
			pc.Tools = []tool.Source{{ID: "lend", Provider: says("lent", "fine")}}
			return pc, nil
		})
		model := &remembering{Provider: replies(scripted.Reply{Text: "one"})}
		d := start(t, setup{model: model, tools: []tool.Provider{says("own", "fine")}, plugins: plugins(shape, adds("heard"))})
		id := d.session(t)
		d.turn(t, id, "go")
		before := d.graph(t, id).Head
		got := d.preview(t, id, "and?")
		if d.graph(t, id).Head != before || len(got.Issues) != 0 {
			t.Errorf("issues %+v", got.Issues)
		}
		d.turn(t, id, "and?")
		if diff := cmp.Diff(sent(model.asked[1]), shown(got.System, got.Tools, got.Messages)); diff != "" || !strings.Contains(got.System, "heard 3") || len(got.Tools) != 2 {
			t.Errorf("what is shown differs from what the model was asked:\n%s", diff)
		}
	})
	t.Run("plugin/HC-02 plugin/HK-28 plugin/HK-29 plugins cannot change anything in a preview, and failures are issues", func(t *testing.T) {
		greedy := hooked{"greedy", func(r *plugin.Registrar) {
			r.Context().Transform(0, func(_ context.Context, v *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
				_, err := v.Host.NeedLifecycle()
				if _, also := v.Host.NeedGraph(); also == nil || v.Host.Models != nil {
					t.Error("it may append, or call models")
				}
				return pc, err
			})
		}}
		meddles := prompting("meddles", func(ctx context.Context, pc *plugin.PromptContext) ([]plugin.Prompt, error) {
			if _, err := pc.Host.State.View(ctx, ""); err != nil {
				return nil, err
			}
			_, err := pc.Host.State.SetMembership(ctx, "", []string{"own"}, false)
			return nil, err
		})
		d := start(t, setup{model: replies(), tools: []tool.Provider{says("own", "fine")}, plugins: plugins(greedy, meddles)})
		id := d.session(t)
		got := d.preview(t, id, "hi")
		want := []string{
			"context_prepare_turn plugin greedy: context_transform: capability \"session lifecycle\" is not available in this hook",
			"plugin_prompt plugin meddles: prompt: capability \"changing tool state\" is not available in this hook",
		}
		if codes := codesOf(got.Issues); !slices.Equal(codes, want) {
			t.Errorf("issues %q", codes)
		}
		if len(got.Tools) != 1 || len(got.Messages) != 1 || !strings.HasPrefix(got.System, "Call tools") {
			t.Errorf("shown %+v", got)
		}
	})
	t.Run("plugin/HK-28 plugin/HK-29 during a turn hooks are not called, and an issue says so", func(t *testing.T) {
		g := newGate("work")
		asked := &notes{}
		shape := transforms("shape", 0, func(_ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
			asked.add("asked")
			return pc, nil
		})
		d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{g}, plugins: plugins(shape, adds("heard"))})
		id := d.session(t)
		turn := d.begin(t, id, "go").TurnID
		<-g.called
		before := len(asked.all())
		got := d.preview(t, id, "and?")
		want := []string{
			"not_asked plugin shape: context_transform: skipped because the session is in use",
			"not_asked plugin says: prompt: skipped because the session is in use",
		}
		if codes := codesOf(got.Issues); !slices.Equal(codes, want) || len(asked.all()) != before {
			t.Errorf("issues %q, asked %q", codes, asked.all())
		}
		close(g.open)
		d.wait(t, turn)
	})
	t.Run("plugin/HK-29 a hook that does not return is left out, and the session stays usable", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			var times atomic.Int32
			stuck := transforms("stuck", 0, func(_ *plugin.ContextView, pc plugin.PreparedContext) (plugin.PreparedContext, error) {
				if times.Add(1) == 1 {
					<-hang
				}
				pc.Messages = nil
				return pc, nil
			})
			d := start(t, setup{model: replies(scripted.Reply{Text: "one"}), plugins: plugins(stuck, adds("heard"))})
			id := d.session(t)
			began := time.Now()
			got := d.preview(t, id, "hi")
			if took := time.Since(began); took > 11*time.Second || !strings.Contains(got.System, "heard 1") || len(got.Messages) != 1 {
				t.Errorf("after %v: %+v", took, got)
			}
			if codes := codesOf(got.Issues); !slices.Equal(codes, []string{"context_prepare_turn plugin stuck: context_transform did not return: the plugins exceeded their time limit"}) {
				t.Errorf("issues %q", codes)
			}
			if report := d.turn(t, id, "go"); report.State != protocol.TurnCompleted {
				t.Errorf("the next turn ended as %s", report.State)
			}
			close(hang)
		})
	})
}
