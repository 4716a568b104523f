package graph

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

func TestNodeIDs(t *testing.T) {
	t.Run("runtime/S01 ids are derived from session, operation and ordinal", func(t *testing.T) {
		// Computed with another program: sha256 of each text after its length in 8 bytes, then the ordinal in 8 bytes.
		for _, c := range []struct {
			session   protocol.SessionID
			operation string
			ordinal   int
			want      protocol.NodeID
		}{
			{"ses_1", "trn_1", 0, "nod_f892356f2234e8467a9ec6a9a85f37e5"},
			{"ses_1", "trn_1", 1, "nod_6fad4924a3891c2d5723a47797066f32"},
			{"ses_1trn", "_1", 0, "nod_4bae7d5c12f1e8e72012bd59f144485a"},
			{"ses_é", "open", 7, "nod_4153a3ca51a91307159a2ffb99b785c6"},
			{"", "", 0, "nod_9d908ecfb6b256def8b49a7c504e6c88"},
			{"ses_1", "trn_0190163d8694700000000000000000ff", 0, "nod_0190163d8694f47178c3e883bfe98cde"},
		} {
			if got := protocol.DeriveNodeID(c.session, c.operation, c.ordinal); got != c.want {
				t.Errorf("%s %s %d is %s, want %s", c.session, c.operation, c.ordinal, got, c.want)
			}
		}
	})
}

func TestFrames(t *testing.T) {
	t.Run("runtime/S04 the model sees the last frame", func(t *testing.T) {
		said := func(text string) protocol.Node {
			return protocol.Node{Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: text}}}}
		}
		opens := func(reason string) protocol.Node {
			return protocol.Node{FrameOpen: &protocol.FrameOpen{Reason: reason}}
		}
		path := []protocol.Node{
			opens("initial"), said("1"), said("2"), opens("compaction"), opens("a plugin's own word"), said("3"), said("4"), {Plugin: &protocol.PluginNode{Type: "x"}},
		}
		seen := Messages(path)
		if len(seen) != 2 || seen[0].Text(protocol.PartText) != "3" || seen[1].Text(protocol.PartText) != "4" {
			t.Fatalf("the model sees %+v", seen)
		}
		if seen[0] != path[5].Message {
			t.Error("the message is a copy: encodings of it cannot be kept")
		}
	})
}

func TestMessages(t *testing.T) {
	t.Run("runtime/S07 messages survive their JSON", func(t *testing.T) {
		full := protocol.Message{Role: protocol.RoleEvent, Parts: []protocol.Part{
			{Kind: protocol.PartText, Text: "a\u2028<b>", Prune: &protocol.Prune{State: protocol.PruneCleared}},
			{Kind: protocol.PartProse, Text: "p", Prune: &protocol.Prune{State: protocol.PruneDeleted, Breadcrumb: "gone", Archive: "ab"}},
			{Kind: protocol.PartReasoning, Text: "r", Replay: json.RawMessage(`{"sig":"x"}`), Route: "vendor/m",
				Prune: &protocol.Prune{State: protocol.PruneSummarised, Breadcrumb: "sum", Archive: "cd"}},
			{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: "c", Name: "look", Args: json.RawMessage(`{"n":12345678901234567890}`)}},
			{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{CallID: "c", Name: "look", DurationMs: 3, Order: 1, Output: protocol.ToolOutput{
				Status: protocol.OutputUnknown, Text: "t", Value: json.RawMessage(`[1,null]`), Exhausted: true,
				Failure:  &protocol.ToolFailure{Class: protocol.FailIO, Code: "c", Message: "m", Source: protocol.FromTool, Retry: true, AfterMs: 5, Raw: json.RawMessage(`0`)},
				Artifact: &protocol.ArtifactRef{Digest: "ef", Size: 9, Type: "text/plain"},
				Change:   &protocol.FileChange{Path: "/x", Diff: "+", Added: 1},
			}}},
			{Kind: protocol.PartCode, Text: "1+1"}, {Kind: protocol.PartOutput, Text: "2"}, {Kind: protocol.PartError, Text: "no"},
			{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Name: "n", Type: "image/png", Data: []byte{0, 255}}},
			{Kind: protocol.PartAttachment, Attachment: &protocol.Attachment{Type: "t", Digest: "aa", URL: "https://x"}},
		}}
		for _, origin := range []*protocol.Origin{
			nil,
			{Kind: protocol.OriginPlugin, Plugin: "memory", Transient: true},
			{Kind: protocol.OriginProcess, Plugin: "task"},
			{Kind: protocol.OriginTurnInput, TurnID: "trn_1", InputID: "inp_1"},
		} {
			full.Origin = origin
			text, err := json.Marshal(full)
			if err != nil {
				t.Fatal(err)
			}
			var back protocol.Message
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(full, back); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// talk parses a short form of messages: "c:a" calls a, "r:a" is its result, a comma separates parts, a blank messages.
func talk(text string) []*protocol.Message {
	var msgs []*protocol.Message
	for m := range strings.FieldsSeq(text) {
		msg := &protocol.Message{Role: protocol.RoleAssistant}
		for p := range strings.SplitSeq(m, ",") {
			kind, id, _ := strings.Cut(p, ":")
			switch kind {
			case "c":
				msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: protocol.CallID(id), Name: "look"}})
			case "r":
				msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{
					CallID: protocol.CallID(id), Output: protocol.Succeed("found"), DurationMs: 4,
				}})
			case "c0":
				msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartToolCall})
			case "r0":
				msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartToolResult})
			default:
				msg.Parts = append(msg.Parts, protocol.Part{Kind: protocol.PartProse, Text: p})
			}
		}
		msgs = append(msgs, msg)
	}
	return msgs
}

func TestResumeSafe(t *testing.T) {
	t.Run("runtime/S08 each call has exactly one later result", func(t *testing.T) {
		for _, good := range []string{"", "x", "c:a r:a", "c:a,c:b r:b,r:a", "c:a x r:a", "c:a r:a c:a r:a", "c:a,r:a"} {
			if err := ResumeSafe(talk(good)); err != nil {
				t.Errorf("%q: %v", good, err)
			}
		}
		for bad, want := range map[string]string{
			"c:a":                     "call a has no result",
			"c:a,c:b,c:d,c:e,c:f r:b": "call a has no result",
			"r:a":                     "result of a without its call",
			"r:a c:a":                 "result of a without its call",
			"c:a r:a r:a":             "result of a without its call",
			"c:a c:a r:a":             "call a is made twice",
			"c0":                      "a call without content",
			"c:a r0":                  "a result without content",
		} {
			err := ResumeSafe(talk(bad))
			if !errors.Is(err, ErrUnpaired) || !strings.HasPrefix(err.Error(), want+":") {
				t.Errorf("%q: %v, want %s", bad, err, want)
			}
		}
	})
}
