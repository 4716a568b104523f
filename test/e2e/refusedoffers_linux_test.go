package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/test/fakemodel"
)

// TestACPOffersBackgroundCommandsAndSubagents has the sandbox refuse something to a background command, and to a call of a subagent.
func TestACPOffersBackgroundCommandsAndSubagents(t *testing.T) {
	type delegated struct {
		Task       string `json:"task"`
		Name       string `json:"name"`
		Capability string `json:"capability"`
		Wait       bool   `json:"wait"`
	}
	const command = "echo made-it > .vscode/made && cat .vscode/made"
	for name, steps := range map[string][]fakemodel.Step{
		"a background command": {step(uses("start_command", shellArgs{command})), done, done, done, done},
		"a call of a subagent": {step(uses("spawn_agent", delegated{"gamma job", "gamma", "peer", true})), step(shell(command)), done, done, done, done},
	} {
		t.Run("issue/20-2 an editor offers to run a refused call again: "+name, func(t *testing.T) {
			w := confined(t, steps...)
			if err := os.Mkdir(filepath.Join(w.work, ".vscode"), 0o755); err != nil {
				t.Fatal(err)
			}
			w.serve()
			e := w.editor(sdk.ClientCapabilities{})
			e.open(w.work)
			e.answers(func(context.Context, sdk.RequestPermissionRequest) string { return "runOutside" })
			e.says("go")
			e.until("the offer ends", func() bool {
				return strings.Contains(e.storyLocked(), "It ran once outside the sandbox.") || strings.Contains(e.storyLocked(), "It did not run")
			})
			if asked := e.questions(); len(asked) != 1 || !strings.Contains(asked[0].ToolCall.Content[0].Content.Content.Text.Text, "it cannot change .vscode/made") {
				t.Errorf("the editor was asked %+v", asked)
			}
			if story := e.story(); !strings.Contains(story, "It ran once outside the sandbox.") {
				t.Errorf("the editor shows %s", story)
			}
		})
	}
}
