package acp

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"lashd/rpc/protocol"
)

// TestTextIsShownOnce streams messages that break off and start again, with the
// same or with other words.
func TestTextIsShownOnce(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string // "|" starts the next attempt
		whole  string
		want   string // shown text; * starts another message
	}{
		"one attempt":                      {[]string{"Hel", "lo"}, "Hello", "Hello"},
		"retried with the same text":       {[]string{"Hel", "|", "He", "llo"}, "Hello", "Hello"},
		"retried with other piece lengths": {[]string{"Hello", "|", "H", "el"}, "Hello there", "Hello there"},
		"retried with other words":         {[]string{"Hello", "|", "Hel", "ps"}, "Helps", "Hello*Helps"},
		"retried with a shorter text":      {[]string{"Hello", "|", "Hell"}, "Hell", "Hello*Hell"},
		"a missing piece":                  {[]string{"Hel"}, "Hello", "Hello"},
		"no pieces before the end":         {nil, "Hello", "Hello"},
		"retried twice, other words once":  {[]string{"ab", "|", "a", "|", "ac"}, "ac", "ab*ac"},
	} {
		t.Run("issue/6-3 "+name, func(t *testing.T) {
			m, at, shown := &text{}, 0, ""
			show := func(more string, restarted bool) {
				if restarted {
					shown += "*"
				}
				shown += more
			}
			for _, p := range c.pieces {
				if p == "|" {
					m.restart()
					at = 0
					continue
				}
				show(m.piece(at, p))
				at += len(p)
			}
			show(m.whole(c.whole))
			if shown != c.want {
				t.Errorf("shown %q, want %q", shown, c.want)
			}
		})
	}
	t.Run("issue/6-3 the last shown message equals the final one", rapid.MakeCheck(func(t *rapid.T) {
		m, shown := &text{}, ""
		show := func(more string, restarted bool) {
			if restarted {
				shown = ""
			}
			shown += more
		}
		attempts := rapid.SliceOfN(rapid.StringMatching(`[ab]{0,6}`), 1, 4).Draw(t, "attempts")
		for _, all := range attempts {
			m.restart()
			for at := 0; at < len(all); {
				n := rapid.IntRange(1, len(all)-at).Draw(t, "length")
				from := rapid.IntRange(0, at).Draw(t, "from")
				show(m.piece(from, all[from:at+n]))
				at += n
			}
		}
		last := attempts[len(attempts)-1]
		show(m.whole(last))
		if shown != last {
			t.Errorf("shown %q, want %q", shown, last)
		}
	}))
}

func TestDiffsAreReadBack(t *testing.T) {
	for name, c := range map[string]struct {
		diff string
		want string // path, old text and new text of each hunk
	}{
		"a change":                             {"--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n", "x[one\ntwo\nthree\n][one\n2\nthree\n]"},
		"a new file":                           {"--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+new\n", "x new[][new\n]"},
		"a deleted file":                       {"--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n", "x[old\n][]"},
		"changed lines that look like headers": {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a/y\n+++ b/y\n", "x[-- a/y\n][++ b/y\n]"},
		"both sides without a final newline":   {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n", "x[a][b]"},
		"new side without a final newline":     {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n", "x[a\n][b]"},
		"two files": {
			"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-e\n+f\n",
			"x[a\n][b\n]x[c\n][d\n]y[e\n][f\n]",
		},
		"a shortened diff":   {"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\\ The rest of the diff is omitted\n", ""},
		"an incomplete hunk": {"--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n", ""},
		"no diff":            {"hello\n", ""},
		"an empty text":      {"", ""},
	} {
		t.Run("issue/6-3 "+name, func(t *testing.T) {
			var got strings.Builder
			for _, p := range newView("/w").changes(&protocol.FileChange{Diff: c.diff}) {
				got.WriteString(strings.TrimPrefix(p.Diff.Path, "/w/"))
				old := ""
				if p.Diff.OldText == nil {
					got.WriteString(" new")
				} else {
					old = *p.Diff.OldText
				}
				got.WriteString("[" + old + "][" + p.Diff.NewText + "]")
			}
			if got.String() != c.want {
				t.Errorf("read %q, want %q", got.String(), c.want)
			}
		})
	}
}

func TestModesAreSettings(t *testing.T) {
	keeps := protocol.Config{
		Approval: protocol.ApprovalConfig{DeadlineMs: 7, Rules: []protocol.ApprovalRule{{Tool: "shell", Action: protocol.ApproveDeny}}},
		Options:  protocol.PluginOptions{"other": []byte(`{"a":1}`)},
	}
	for _, from := range modes {
		for _, to := range modes {
			t.Run("issue/6-3 from "+from.id+" to "+to.id, func(t *testing.T) {
				c := keeps
				c.Approval, c.Options = from.set(c)
				c.Approval, c.Options = to.set(c)
				if got := modeOf(c); got.id != to.id {
					t.Errorf("it is in mode %s", got.id)
				}
				if c.Approval.Rules[0] != keeps.Approval.Rules[0] || c.Approval.DeadlineMs != 7 || string(c.Options["other"]) != `{"a":1}` {
					t.Errorf("other settings changed to %+v", c)
				}
			})
		}
	}
	c := keeps
	c.Approval, c.Options = modes[1].set(c)
	for i, tool := range []string{"edit", "patch", "write", "shell"} {
		if got := c.Approval.Rules[1+i]; got != (protocol.ApprovalRule{Tool: tool, Action: protocol.ApproveAsk}) {
			t.Errorf("part15/31 to ask before edits and commands, the rule about %s is %+v", tool, got)
		}
	}
	c.Approval, c.Options = modes[3].set(c)
	c.Approval, c.Options = modes[0].set(c)
	if len(c.Approval.Rules) != 1 || len(keeps.Approval.Rules) != 1 || len(c.Options) != 1 {
		t.Errorf("issue/6-3 after accepting edits, the settings are %+v", c)
	}
}

func TestCodeCells(t *testing.T) {
	t.Run("issue/19-8 the calls of a cell appear in its content, the newest while it runs and the first ones at the end", func(t *testing.T) {
		v := newView("/w")
		item := protocol.Item{ID: "nod_a:0", Kind: protocol.ItemCodeCell, Status: protocol.ItemInProgress, Text: "x"}
		call := func(index int, status protocol.ItemStatus) *protocol.CellCall {
			return &protocol.CellCall{Index: index, Tool: "read", Args: []byte(`{"path":"f` + strconv.Itoa(index) + `"}`), Status: status, DurationMs: 3, Summary: "text"}
		}
		shown := func(updates []update) (texts []string) {
			raw, err := json.Marshal(updates)
			var all []struct {
				Content []struct{ Content struct{ Text string } }
			}
			if err == nil {
				err = json.Unmarshal(raw, &all)
			}
			if err != nil || len(all) != 1 {
				t.Fatalf("%v: %s", err, raw)
			}
			for _, c := range all[0].Content {
				texts = append(texts, c.Content.Text)
			}
			return texts
		}
		if got := v.cellCall(&protocol.Event{ItemID: "nod_a:0", CellCall: call(1, protocol.ItemDone)}); got != nil {
			t.Errorf("a cell that is not shown has %+v", got)
		}
		v.started(&item)
		for i := 1; i <= 9; i++ {
			v.event(&protocol.Event{Type: protocol.EventCellCall, ItemID: "nod_a:0", CellCall: call(i, protocol.ItemDone)})
		}
		live := shown(v.event(&protocol.Event{Type: protocol.EventCellCall, ItemID: "nod_a:0", CellCall: call(10, protocol.ItemInProgress)}))
		if len(live) != 2 || live[0] != "x" || !strings.HasPrefix(live[1], "- Read f3: text (3 ms)\n- Read f4") || !strings.HasSuffix(live[1], "\n- Reading f10: running\n- and 2 other calls") {
			t.Errorf("while it runs it shows %q", live)
		}
		item.Status, item.Cell = protocol.ItemDone, &protocol.CodeResult{Printed: "1\n", MoreCalls: 120}
		item.Cell.Calls = []protocol.CellCall{*call(1, protocol.ItemFailed), *call(2, protocol.ItemUnknown)}
		want := []string{"x", "- Read f1: failed: text (3 ms)\n- Read f2: outcome unknown (3 ms)\n- and 120 other calls", "1"}
		if got := shown(v.completed(&item)); !slices.Equal(got, want) {
			t.Errorf("at the end it shows %q", got)
		}
	})
	t.Run("issue/19-5 a code cell is one call, whose content is the code and then its result", func(t *testing.T) {
		v := newView("/w")
		item := protocol.Item{ID: "nod_a:0", Kind: protocol.ItemCodeCell, Status: protocol.ItemInProgress}
		v.started(&item)
		item.Text = "print(1)\noops"
		v.started(&item)
		item.Status, item.Cell = protocol.ItemFailed, &protocol.CodeResult{Printed: "1\n", Error: "no oops", Position: &protocol.CodePosition{Line: 2}}
		updates := v.completed(&item)
		raw, err := json.Marshal(updates)
		want := `"content":[{"content":{"text":"print(1)\noops","type":"text"},"type":"content"},{"content":{"text":"1\nError in line 2: no oops","type":"text"},"type":"content"}]`
		if err != nil || len(updates) != 1 || !strings.Contains(string(raw), want) || !strings.Contains(string(raw), `"status":"failed"`) || len(v.calls) != 0 {
			t.Errorf("%v: %s", err, raw)
		}
	})
}
