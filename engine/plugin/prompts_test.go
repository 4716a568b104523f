package plugin_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func catalog(names ...string) *tool.Catalog {
	return tool.NewRegistry(nil, []tool.Source{{ID: "p", Provider: tools(names)}}, protocol.ToolState{}).Catalog()
}

func TestRenderPrompts(t *testing.T) {
	about := func(content string, names ...string) plugin.Prompt {
		return plugin.Prompt{Slot: plugin.SlotIntro, Tools: names, Content: content}
	}
	at := func(slot plugin.Slot, priority int, content string) plugin.Prompt {
		return plugin.Prompt{Slot: slot, Priority: priority, Content: content}
	}
	for name, c := range map[string]struct {
		prompts []plugin.Prompt
		want    []string
	}{
		"S-03 plugin/HK-28 slots are in order of name": {[]plugin.Prompt{
			at(plugin.SlotRuntimeContext, 0, "context"), at(plugin.SlotProjectInstructions, 0, "project"), at(plugin.SlotIntro, 0, "intro"),
			at(plugin.SlotGuidance, 0, "guidance"), at(plugin.SlotExecution, 0, "execution"), at(plugin.SlotEnvironment, 0, "environment"),
		}, []string{"environment", "execution", "guidance", "intro", "project", "context"}},
		"S-03 plugin/HK-28 lower priorities come first, equal ones as registered": {[]plugin.Prompt{
			at(plugin.SlotIntro, 5, "five"), at(plugin.SlotIntro, 0, "b"), at(plugin.SlotIntro, 0, "a"), at(plugin.SlotIntro, -1, "minus"),
		}, []string{"minus", "b", "a", "five"}},
		"HK-28 a repeated text in the same place appears once": {[]plugin.Prompt{
			at(plugin.SlotIntro, 0, "x"), at(plugin.SlotIntro, 0, " x\n"), at(plugin.SlotIntro, 0, " \n"), at(plugin.SlotIntro, 1, "x"), at(plugin.SlotGuidance, 0, "x"),
		}, []string{"x", "x", "x"}},
		"HK-28 a text about tools needs one of them":              {[]plugin.Prompt{about("1", "look"), about("2", "gone"), about("3", "gone", "see")}, []string{"1", "3"}},
		"S-03 only the first tool list of a repeated text counts": {[]plugin.Prompt{about("x", "gone"), about("x", "look"), about("y")}, []string{"y"}},
		"S-03 a title does not make a repeated text different": {[]plugin.Prompt{
			{Slot: plugin.SlotIntro, Title: "A", Content: "x"}, {Slot: plugin.SlotIntro, Title: "B", Content: "x"},
		}, []string{"# A", "x"}},
	} {
		t.Run("plugin/"+name, func(t *testing.T) {
			got := strings.Split(plugin.RenderPrompts(plugin.Fits(catalog("look", "see")), c.prompts), "\n\n")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrompts(t *testing.T) {
	fixed := func(id, content string) plugin.Factory {
		return with(id, func(r *plugin.Registrar) {
			r.Prompt().Add(plugin.Prompt{Slot: plugin.SlotGuidance, Content: content})
		})
	}
	hook := func(id string, list []plugin.Prompt, err error) plugin.Factory {
		return with(id, func(r *plugin.Registrar) {
			r.Prompt().Hook(func(context.Context, *plugin.PromptContext) ([]plugin.Prompt, error) { return list, err })
		})
	}
	t.Run("plugin/HK-28 texts and hooks contribute in the order of registration", func(t *testing.T) {
		s := open(t, fixed("a", "1"), hook("b", []plugin.Prompt{{Slot: plugin.SlotIntro, Content: "2"}, {Slot: plugin.SlotIntro, Content: "3"}}, nil), fixed("c", "4"))
		got, err := s.Prompts(t.Context(), &plugin.PromptContext{})
		var texts []string
		for _, p := range got {
			texts = append(texts, p.Content)
		}
		if err != nil || !slices.Equal(texts, []string{"1", "2", "3", "4"}) || !s.HasPromptHooks() {
			t.Errorf("%q, %v", texts, err)
		}
	})
	for want, f := range map[string]plugin.Factory{
		"plugin p: prompt: boom":                         hook("p", nil, errBoom),
		`plugin p: prompt: unknown prompt slot "cellar"`: hook("p", []plugin.Prompt{{Slot: "cellar"}}, nil),
	} {
		t.Run("plugin/HK-28 a failing hook fails the prompt: "+want, func(t *testing.T) {
			if _, err := open(t, f).Prompts(t.Context(), &plugin.PromptContext{}); err == nil || err.Error() != want {
				t.Errorf("error %v", err)
			}
		})
	}
	t.Run("runtime/S12 without hooks the system prompt is the preamble, the contributions and the session's additions", func(t *testing.T) {
		s := open(t, fixed("a", "mine"))
		got := plugin.RenderPrompts(plugin.Fits(catalog("look")), slices.Concat(
			[]plugin.Prompt{{Slot: plugin.SlotExecution, Content: "d with tool"}}, s.Texts(),
			[]plugin.Prompt{{Slot: plugin.SlotGuidance, Content: "extra"}, {Slot: plugin.SlotExecution, Priority: -1, Content: "first"}},
		))
		if want := "first\n\nd with tool\n\nmine\n\nextra"; got != want || s.HasPromptHooks() {
			t.Errorf("%q, want %q", got, want)
		}
	})
}
