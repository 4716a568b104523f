package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"
)

// TestACPRunsOnceMore has the sandbox refuse something to a call, and the editor answer the offer to run it again.
func TestACPRunsOnceMore(t *testing.T) {
	for _, c := range []struct{ answer, file, shows string }{
		{"runOutside", "made-it\n", "call completed \"It ran once outside the sandbox.\\n\\nmade-it\\n[Exit code 0.]\\n\""},
		{"no", "", `call failed "It did not run again."`},
		{"", "", `call failed "It did not run again."`},
		{"allowAlways", "", `call failed "It did not run again."`},
	} {
		t.Run("issue/20-2 an editor offers to run a refused call again, and the user chooses "+c.answer, func(t *testing.T) {
			w := confined(t, step(shell("echo made-it > .vscode/made && cat .vscode/made")), done, step(says("I see.")))
			if err := os.Mkdir(filepath.Join(w.work, ".vscode"), 0o755); err != nil {
				t.Fatal(err)
			}
			w.serve()
			w.connect().Close() // before the editor's process starts a daemon of its own
			e := w.editor(sdk.ClientCapabilities{})
			e.open(w.work)
			e.answers(func(context.Context, sdk.RequestPermissionRequest) string { return c.answer })
			e.says("go")
			e.until("the offer ends", func() bool { return strings.Contains(e.storyLocked(), c.shows) })
			asked := e.questions()
			if len(asked) != 1 || !strings.HasPrefix(*asked[0].ToolCall.Title, "Run again? echo made-it") || len(asked[0].Options) != 2 ||
				!strings.Contains(asked[0].ToolCall.Content[0].Content.Content.Text.Text, "it cannot change .vscode/made") {
				t.Errorf("the editor was asked %+v", asked)
			}
			made, _ := os.ReadFile(filepath.Join(w.work, ".vscode", "made")) // it may not exist
			if string(made) != c.file {
				t.Errorf("the call wrote %q", made)
			}
			if c.file == "" {
				return
			}
			w.asked(3)
			if w.read("A person ran this tool with") != 1 {
				t.Errorf("the model reads %s", w.model.Requests()[2].Body)
			}
		})
	}
}
