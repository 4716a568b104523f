package graph

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

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

// line is a history of plain nodes n0, n1, ... with frames opened at some of them.
func line(length int, frames map[int]string) (map[protocol.NodeID]protocol.Node, protocol.NodeID) {
	nodes := map[protocol.NodeID]protocol.Node{}
	parent := protocol.NodeID("")
	for i := range length {
		n := protocol.Node{ID: name(i), Parent: parent, Generation: int64(i)}
		if reason, ok := frames[i]; ok {
			n.FrameOpen = &protocol.FrameOpen{Key: fmt.Sprint("key", i), Reason: reason}
		} else {
			n.Message = &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: fmt.Sprint(i)}}}
		}
		nodes[n.ID], parent = n, n.ID
	}
	return nodes, parent
}

func name(i int) protocol.NodeID { return protocol.NodeID(fmt.Sprint("n", i)) }

func ids(path []protocol.Node) []string {
	var list []string
	for _, n := range path {
		list = append(list, string(n.ID))
	}
	return list
}

func TestPath(t *testing.T) {
	initial := map[int]string{0: "initial"}

	t.Run("runtime/S01 the path to a leaf is in the order of time", func(t *testing.T) {
		nodes, _ := line(4, initial)
		path, err := Path(nodes, "n2")
		if got := ids(path); err != nil || !slices.Equal(got, []string{"n0", "n1", "n2"}) {
			t.Errorf("path is %q, %v", got, err)
		}
	})

	t.Run("runtime/S02 a node of another branch is not on the path", func(t *testing.T) {
		nodes, leaf := line(3, initial)
		nodes["side"] = protocol.Node{ID: "side", Parent: "n1", Generation: 2, Message: &protocol.Message{}}
		for leaf, alive := range map[protocol.NodeID][]bool{leaf: {true, false}, "side": {false, true}} {
			path, err := Path(nodes, leaf)
			if err != nil {
				t.Fatal(err)
			}
			if got := []bool{slices.Contains(ids(path), "n2"), slices.Contains(ids(path), "side")}; !slices.Equal(got, alive) {
				t.Errorf("on the path to %s are n2, side: %v", leaf, got)
			}
		}
	})

	t.Run("runtime/S01 what is no history is refused", func(t *testing.T) {
		for what, spoil := range map[string]func(map[protocol.NodeID]protocol.Node){
			"missing": func(ns map[protocol.NodeID]protocol.Node) { delete(ns, "n2") },
			"cycle":   func(ns map[protocol.NodeID]protocol.Node) { set(ns, "n0", func(n *protocol.Node) { n.Parent = "n3" }) },
			"self":    func(ns map[protocol.NodeID]protocol.Node) { set(ns, "n4", func(n *protocol.Node) { n.Parent = "n4" }) },
			"root": func(ns map[protocol.NodeID]protocol.Node) {
				set(ns, "n0", func(n *protocol.Node) { n.FrameOpen = nil })
			},
			"generation": func(ns map[protocol.NodeID]protocol.Node) { set(ns, "n2", func(n *protocol.Node) { n.Generation = 9 }) },
		} {
			nodes, leaf := line(5, initial)
			spoil(nodes)
			if path, err := Path(nodes, leaf); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s: path %q, %v", what, ids(path), err)
			}
		}
		if _, err := Path(nil, ""); !errors.Is(err, ErrMalformed) {
			t.Errorf("no leaf: %v", err)
		}
	})

	t.Run("runtime/S01 any tangle of parents is left in bounded time", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			count := rapid.IntRange(1, 20).Draw(t, "nodes")
			nodes := map[protocol.NodeID]protocol.Node{}
			for i := range count {
				n := protocol.Node{ID: name(i), Generation: rapid.Int64Range(0, 20).Draw(t, "generation")}
				if p := rapid.IntRange(-1, count).Draw(t, "parent"); p >= 0 {
					n.Parent = name(p)
				}
				if rapid.Bool().Draw(t, "opens") {
					n.FrameOpen = &protocol.FrameOpen{}
				}
				nodes[n.ID] = n
			}
			path, err := Path(nodes, name(rapid.IntRange(0, count).Draw(t, "leaf")))
			if err != nil {
				return
			}
			for i, n := range path {
				if i > 0 && n.Parent != path[i-1].ID || i == 0 && (n.Parent != "" || n.FrameOpen == nil) || n.Generation != int64(i) {
					t.Fatalf("path %q is no history at %d", ids(path), i)
				}
			}
		})
	})
}

func set(nodes map[protocol.NodeID]protocol.Node, id protocol.NodeID, change func(*protocol.Node)) {
	n := nodes[id]
	change(&n)
	nodes[id] = n
}

func TestFrames(t *testing.T) {
	t.Run("runtime/S04 frames are intervals of the path, whatever their reason", func(t *testing.T) {
		nodes, leaf := line(8, map[int]string{0: "initial", 3: "compaction", 4: "a plugin's own word"})
		path, err := Path(nodes, leaf)
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, f := range Frames(path) {
			fmt.Fprintf(&got, "%s %s %q %q\n", f.ID, f.Open.Reason, f.Open.Key, ids(path[f.First:f.First+f.Length]))
		}
		want := `n0 initial "key0" ["n1" "n2"]
n3 compaction "key3" []
n4 a plugin's own word "key4" ["n5" "n6" "n7"]
`
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("runtime/S04 a model sees the last frame", func(t *testing.T) {
		nodes, leaf := line(6, map[int]string{0: "initial", 3: "compaction"})
		nodes["p"] = protocol.Node{ID: "p", Parent: leaf, Generation: 6, Plugin: &protocol.PluginNode{Type: "x"}}
		path, err := Path(nodes, "p")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range Messages(path) {
			got = append(got, m.Text(protocol.PartText))
		}
		if !slices.Equal(got, []string{"4", "5"}) {
			t.Errorf("the model sees %q", got)
		}
		if m := Messages(path)[0]; m != nodes["n4"].Message {
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

// talk is messages in short: "c:a" calls a, "r:a" is its result, a comma separates parts, a blank messages.
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
	t.Run("runtime/S08 each call has one result, later", func(t *testing.T) {
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
