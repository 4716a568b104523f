package graph

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

func history(text string) []protocol.Node {
	var nodes []protocol.Node
	for i, m := range talk(text) {
		nodes = append(nodes, protocol.Node{ID: protocol.NodeID(fmt.Sprint("n", i)), Generation: int64(i), TurnID: "trn", AtMs: int64(i), Message: m})
	}
	return nodes
}

func shown(items []protocol.Item) []string {
	var list []string
	for _, it := range items {
		line := fmt.Sprintf("%s %s %s %s%s", it.ID, it.Kind, it.Status, it.Text, it.CallID)
		if it.Output != nil {
			line += " " + it.Output.Text
		}
		list = append(list, line)
	}
	return list
}

func TestItems(t *testing.T) {
	t.Run("runtime/S10 items are ordered by node and part, and a call appears once at its place", func(t *testing.T) {
		got := shown(Items(history("hi,c:a,c:b,there r:b,r:a,and bye")))
		want := []string{
			"n0:0 agentMessage completed hi", "n0:1 toolCall completed a found", "n0:2 toolCall completed b found",
			"n0:3 agentMessage completed there", "n1:2 agentMessage completed and", "n2:0 agentMessage completed bye",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("runtime/S10 a page shows calls without their later results, and no results of earlier calls", func(t *testing.T) {
		nodes := history("c:a r:a,c:b,x r:b")
		for _, c := range []struct {
			from, to int
			want     []string
		}{
			{0, 1, []string{"n0:0 toolCall inProgress a"}},
			{1, 2, []string{"n1:1 toolCall inProgress b", "n1:2 agentMessage completed x"}},
			{2, 3, nil},
			{1, 3, []string{"n1:1 toolCall completed b found", "n1:2 agentMessage completed x"}},
		} {
			if diff := cmp.Diff(c.want, shown(Items(nodes[c.from:c.to]))); diff != "" {
				t.Errorf("nodes %d to %d: %s", c.from, c.to, diff)
			}
		}
	})

	t.Run("runtime/S10 a reused id is a different call", func(t *testing.T) {
		got := shown(Items(history("c:a r:a c:a")))
		if diff := cmp.Diff([]string{"n0:0 toolCall completed a found", "n2:0 toolCall inProgress a"}, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("runtime/S10 the first result of a call counts", func(t *testing.T) {
		nodes := history("c:a r:a r:a")
		nodes[2].Message.Parts[0].Result.Output.Text = "other"
		if diff := cmp.Diff([]string{"n0:0 toolCall completed a found"}, shown(Items(nodes))); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("runtime/S10 the kind of an item follows from the part's kind and the message's role", func(t *testing.T) {
		n := protocol.Node{ID: "n", Message: &protocol.Message{Parts: []protocol.Part{
			{Kind: protocol.PartText}, {Kind: protocol.PartReasoning}, {Kind: protocol.PartCode}, {Kind: protocol.PartOutput},
			{Kind: protocol.PartError}, {Kind: protocol.PartAttachment}, {Kind: protocol.PartToolCall}, {Kind: protocol.PartToolResult},
			{Kind: protocol.PartText, Call: &protocol.ToolCall{CallID: "no call"}},
		}}}
		special := []string{"reasoning", "codeCell", "notice"}
		for role, text := range map[protocol.Role]string{
			protocol.RoleUser: "userMessage", protocol.RoleAssistant: "agentMessage", protocol.RoleSystem: "notice", protocol.RoleEvent: "notice",
		} {
			n.Message.Role = role
			var got []string
			for _, it := range Items([]protocol.Node{n}) {
				if it.Status != protocol.ItemDone {
					t.Errorf("%s %s is %s", role, it.ID, it.Status)
				}
				got = append(got, string(it.Kind))
			}
			want := append(append([]string{text}, special...), text, "toolCall", text)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s", role, diff)
			}
		}
	})

	t.Run("runtime/S10 code and its output are one item, and code that is not closed has failed", func(t *testing.T) {
		code := func(text string) protocol.Part { return protocol.Part{Kind: protocol.PartCode, Text: text} }
		output := func(text string, r *protocol.CodeResult) protocol.Part {
			return protocol.Part{Kind: protocol.PartOutput, Text: text, Cell: r}
		}
		var nodes []protocol.Node
		for i, parts := range [][]protocol.Part{
			{{Kind: protocol.PartProse, Text: "Look:"}, code("<calc>\na\n</calc>")}, {output("1", &protocol.CodeResult{Printed: "1\n"})},
			{code("<calc>\nb\n</calc>")}, {output("Error: no", &protocol.CodeResult{Error: "no"})},
			{code("<calc>\nc")}, {output("late", nil)},
			{output("alone", nil)}, {code("<calc>\nd\n</calc>")},
		} {
			nodes = append(nodes, protocol.Node{ID: protocol.NodeID(fmt.Sprint("n", i)), TurnID: "trn", Message: &protocol.Message{Parts: parts}})
		}
		nodes[4].TurnID = "other"
		show := func(items []protocol.Item) (all []string) {
			for _, it := range items {
				line := fmt.Sprintf("%s %s %s %s %q", it.ID, it.Kind, it.Status, it.Language, it.Text)
				if it.Cell != nil {
					line += fmt.Sprintf(" %q %q", it.Cell.Printed, it.Cell.Error)
				}
				all = append(all, line)
			}
			return all
		}
		items, refs := Shown(nodes)
		want := []string{
			`n0:0 agentMessage completed  "Look:"`, `n0:1 codeCell completed calc "a" "1\n" ""`, `n2:0 codeCell failed calc "b" "" "no"`,
			`n4:0 codeCell failed calc "c"`, `n5:0 codeCell completed  "" "late" ""`, `n6:0 codeCell completed  "" "alone" ""`, `n7:0 codeCell inProgress calc "d"`,
		}
		if diff := cmp.Diff(want, show(items)); diff != "" {
			t.Error(diff)
		}
		if got := show(Items(nodes[1:3])); !slices.Equal(got, []string{`n2:0 codeCell inProgress calc "b"`}) {
			t.Errorf("a page has %q", got)
		}
		for i, r := range refs {
			got, ok := r.Resolve(func(id protocol.NodeID) *protocol.Node {
				return &nodes[slices.IndexFunc(nodes, func(n protocol.Node) bool { return n.ID == id })]
			})
			if diff := cmp.Diff(items[i], got); !ok || diff != "" {
				t.Errorf("%+v: %v %s", r, ok, diff)
			}
		}
	})

	t.Run("runtime/S10 compactions and plugin nodes are shown, other frames are not", func(t *testing.T) {
		got := shown(Items([]protocol.Node{
			{ID: "n0", FrameOpen: &protocol.FrameOpen{Reason: "initial"}},
			{ID: "n1", FrameOpen: &protocol.FrameOpen{Reason: "compaction"}},
			{ID: "n2", Plugin: &protocol.PluginNode{Type: "plan"}},
		}))
		if diff := cmp.Diff([]string{"n1:0 compaction completed ", "n2:0 notice completed "}, got); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("runtime/S10 the status of a call follows from its output", func(t *testing.T) {
		for status, want := range map[protocol.OutputStatus]protocol.ItemStatus{
			protocol.OutputSuccess: protocol.ItemDone, protocol.OutputUnknown: protocol.ItemUnknown,
			protocol.OutputFailure: protocol.ItemFailed, protocol.OutputCancelled: protocol.ItemFailed,
		} {
			var item protocol.Item
			Complete(&item, &protocol.ToolResult{Output: protocol.ToolOutput{Status: status}, DurationMs: 5})
			if item.Status != want || item.DurationMs != 5 || item.Output.Status != status {
				t.Errorf("%s: %+v", status, item)
			}
		}
	})
}

func TestReferences(t *testing.T) {
	nodes := history("hi,c:a r:a")
	lookup := func(id protocol.NodeID) *protocol.Node {
		for i := range nodes {
			if nodes[i].ID == id {
				return &nodes[i]
			}
		}
		return nil
	}

	t.Run("runtime/S10 a reference resolves to the same item as the projection", func(t *testing.T) {
		got, ok := Ref{Node: "n0", Part: 1, Result: "n1"}.Resolve(lookup)
		if diff := cmp.Diff(Items(nodes)[1], got); !ok || diff != "" {
			t.Errorf("%v %s", ok, diff)
		}
		if got, ok := (Ref{Node: "n0", Part: 1}).Resolve(lookup); !ok || got.Status != protocol.ItemInProgress {
			t.Errorf("a started call is %+v", got)
		}
	})

	t.Run("runtime/S10 a reference to missing parts does not resolve", func(t *testing.T) {
		for _, r := range []Ref{
			{Node: "n9"}, {Node: "n0", Part: 2}, {Node: "n0", Part: -1}, {Node: "n0", Part: 1, Result: "n9"},
			{Node: "n0", Part: 1, Result: "n1", ResultPart: 1}, {Node: "n0", Part: 1, Result: "n0", ResultPart: 0},
		} {
			if item, ok := r.Resolve(lookup); ok {
				t.Errorf("%+v is %+v", r, item)
			}
		}
	})

	t.Run("runtime/S10 item ids can be taken apart", func(t *testing.T) {
		if node, part, ok := Split(ItemIDOf("nod_1", 12)); node != "nod_1" || part != 12 || !ok {
			t.Errorf("%s %d %v", node, part, ok)
		}
		for _, id := range []protocol.ItemID{"", "nod_1", "nod_1:", "nod_1:x", "nod_1:-1"} {
			if _, _, ok := Split(id); ok {
				t.Errorf("%q is taken apart", id)
			}
		}
	})
}

// A call has its title while it runs and afterwards, by its item and by its reference.
func TestTitlesOfCalls(t *testing.T) {
	call := &protocol.ToolCall{CallID: "a", Name: "shell", Args: []byte(`{"command":"npm test","outside":true}`)}
	nodes := []protocol.Node{
		{ID: "n0", Message: &protocol.Message{Role: protocol.RoleAssistant, Parts: []protocol.Part{{Kind: protocol.PartToolCall, Call: call}, {Kind: protocol.PartProse, Text: "x"}}}},
		{ID: "n1", Message: &protocol.Message{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartToolResult, Result: &protocol.ToolResult{CallID: "a"}}}}},
	}
	want := &protocol.CallTitle{Kind: protocol.ToolKindExecute, Verb: "Run", Running: "Running", Done: "Ran", Subject: "npm test", Detail: "outside the sandbox"}
	resolved, _ := Ref{Node: "n0", Result: "n1"}.Resolve(func(id protocol.NodeID) *protocol.Node { return &nodes[id[1]-'0'] })
	for name, item := range map[string]protocol.Item{"running": Items(nodes[:1])[0], "ended": Items(nodes)[0], "resolved": resolved} {
		if diff := cmp.Diff(want, item.Title); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if other := Items(nodes)[1]; other.Title != nil {
		t.Errorf("prose has the title %+v", other.Title)
	}
}
