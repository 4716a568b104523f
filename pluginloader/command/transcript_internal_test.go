package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func text(role protocol.Role, s string) protocol.Message {
	return protocol.Message{Role: role, Parts: []protocol.Part{{Kind: protocol.PartText, Text: s}}}
}

func TestTranscript(t *testing.T) {
	t.Run("part13/5 a transcript grows, follows a rewind, and is private", func(t *testing.T) {
		data := t.TempDir()
		tr := newTranscript(data, "ses_1")
		all := []protocol.Message{
			text(protocol.RoleUser, "hello"), text(protocol.RoleSystem, "hidden"),
			{Role: protocol.RoleAssistant, Parts: []protocol.Part{{Kind: protocol.PartReasoning, Text: "hm"}, {Kind: protocol.PartProse, Text: "I look."}, {Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c1", Name: "shell", Args: []byte(`{"command":"ls"}`)}}}},
			{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{CallID: "c1", Output: protocol.ToolOutput{Status: protocol.OutputCancelled, Text: "<no>"}}}}},
		}
		const (
			first  = `{"type":"user","sessionId":"ses_1","cwd":"/w","message":{"role":"user","content":[{"type":"text","text":"hello"}]}}`
			second = `{"type":"assistant","sessionId":"ses_1","cwd":"/w","message":{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"shell","input":{"command":"ls"}}]}}`
			third  = `{"type":"user","sessionId":"ses_1","cwd":"/w","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"<no>","is_error":true}]}}`
			other  = `{"type":"user","sessionId":"ses_1","cwd":"/w","message":{"role":"user","content":[{"type":"text","text":"other"}]}}`
		)
		for _, c := range []struct {
			messages []protocol.Message
			want     []string
		}{{all[:1], []string{first}}, {all, []string{first, second, third}}, {nil, []string{first, second, third}}, {[]protocol.Message{text(protocol.RoleUser, "other")}, []string{other}}} {
			path, err := tr.write("ses_1", "/w", c.messages)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || string(got) != strings.Join(c.want, "\n")+"\n" {
				t.Errorf("%v, the transcript is\n%s", err, got)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("its mode is %v: %v", info, err)
			}
		}
		if err := tr.remove(); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(filepath.Join(data, transcripts, "*")); len(left) > 0 {
			t.Errorf("left behind: %q", left)
		}
		if path, err := tr.write("ses_1", "/w", all[:1]); err != nil {
			t.Error(err)
		} else if got, _ := os.ReadFile(path); string(got) != first+"\n" {
			t.Errorf("after its removal the transcript is %s", got)
		}
		if path, err := newTranscript("", "ses_1").write("ses_1", "/w", all); path != "" || err != nil {
			t.Errorf("without a directory: %q, %v", path, err)
		}
	})
}
