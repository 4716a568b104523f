package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"lashd/rpc/protocol"
)

func TestMemory(t *testing.T) {
	r := &protocol.InstructionListResult{UserFile: "/data/AGENTS.md", Data: []protocol.InstructionFile{
		{Name: "~/.claude/CLAUDE.md", Origin: protocol.InstructionUser, Use: protocol.InstructionAlways, Bytes: 12, Shown: 12},
		{Name: "AGENTS.md", Origin: protocol.InstructionWorkspace, Use: protocol.InstructionAlways, Bytes: 70000, Shown: 32768},
		{Name: "docs/a.md", Origin: protocol.InstructionWorkspace, Use: protocol.InstructionAlways, Bytes: 3, Shown: 3, ImportedBy: "AGENTS.md"},
		{Name: "sub/AGENTS.md", Origin: protocol.InstructionWorkspace, Use: protocol.InstructionAdded, Bytes: 4, Shown: 4},
		{Name: ".cursor/rules/go.mdc", Origin: protocol.InstructionWorkspace, Use: protocol.InstructionMatches, Bytes: 50, Patterns: []string{"*.go"}},
		{Name: "@none.md", Origin: protocol.InstructionWorkspace, Use: protocol.InstructionSkipped, ImportedBy: "AGENTS.md", Problem: "there is no such file"},
		{Name: "CLAUDE.md", Origin: protocol.InstructionWorkspace, Use: protocol.InstructionSkipped, Bytes: 9, Problem: "AGENTS.md takes its place"},
	}}
	want := `Instructions that the model gets:
  1  ~/.claude/CLAUDE.md  user, 12 bytes
  2  AGENTS.md  workspace, 32768 of 70000 bytes
  3  docs/a.md  workspace, 3 bytes, imported by AGENTS.md
  4  sub/AGENTS.md  workspace, 4 bytes, in the conversation
  5  .cursor/rules/go.mdc  workspace, 50 bytes, for *.go
  6  @none.md  workspace, not imported by AGENTS.md: there is no such file
  7  CLAUDE.md  workspace, not read: AGENTS.md takes its place
/memory N opens a file, /memory add TEXT adds a line to yours: /data/AGENTS.md`
	if got := memoryList(r); got != want {
		t.Errorf("part13/7 /memory shows\n%s\nwant\n%s", got, want)
	}
	path := filepath.Join(t.TempDir(), "data/AGENTS.md")
	for _, text := range []string{"use tabs", "be brief"} {
		if said, ok := addMemory(path, text).(saidMsg); !ok || !strings.HasPrefix(string(said), "Added to "+path) {
			t.Errorf("part13/7 /memory add says %q", said)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "- use tabs\n- be brief\n" {
		t.Errorf("part13/7 the file has %q, %v", got, err)
	}
}

func TestCompactionIsConfirmed(t *testing.T) {
	m := compactionMsg{"ses_1", protocol.CompactionPreviewResult{
		Compacts: true, Tokens: 900, After: 300,
		Summarized: protocol.CompactionPart{Messages: 14, Tokens: 600, Inputs: []string{"1", "2", "3", "4", "5", "6"}, More: 1},
		Kept:       protocol.CompactionPart{Messages: 2, Tokens: 300, Inputs: []string{"7"}},
	}, "/compact now keep names"}
	want := `The history has about 900 tokens. Afterwards it has about 300 and a summary.
A summary replaces 14 messages, about 600 tokens:
  2 earlier inputs
  › 2
  › 3
  › 4
  › 5
  › 6
These 2 messages stay word for word:
  › 7`
	if got := m.preview.String(); got != want {
		t.Errorf("part13/7 the preview is\n%s\nwant\n%s", got, want)
	}
	u, s := inWorkspace(t)
	m.use(u)
	if got := ansi.Strip(u.in.Text()); got != m.command {
		t.Errorf("part13/7 the prompt has %q", got)
	}
	press(u, "enter")
	if made := strings.Join(s.made, "\n"); !strings.Contains(made, `session/compact `) || !strings.Contains(made, `"instructions":"keep names"`) {
		t.Errorf("part13/7 Enter calls %q", made)
	}
}
