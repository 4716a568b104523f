package chat

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

// cell returns the item of a code cell.
func cell(status protocol.ItemStatus, source string, r *protocol.CodeResult) *protocol.Item {
	i := item("itm_c", source, protocol.ItemCodeCell)
	i.Language, i.Status, i.Cell = "starlark", status, r
	return i
}

func TestCodeCells(t *testing.T) {
	t.Run("issue/19-5 a cell is shown with its code, its result and its changed globals", func(t *testing.T) {
		for _, c := range []struct {
			item *protocol.Item
			want string
		}{
			{cell(protocol.ItemDone, "a = 1\nprint(a)\n3", &protocol.CodeResult{Printed: "1\n", Value: []byte("3"), Changed: []string{"a", "b"}}),
				"✓ starlark 0 ms\n  a = 1\n  print(a)\n  3\n  1\n  Value: 3\n  changed: a, b"},
			{cell(protocol.ItemFailed, "a = 1\nb", &protocol.CodeResult{Error: "undefined: b\n    2 | b", Position: &protocol.CodePosition{Line: 2, Column: 1}}),
				"✗ starlark 0 ms\n  a = 1\n→ b\n  Error in line 2, column 1: undefined: b"},
			{cell(protocol.ItemFailed, "a", nil), "✗ starlark\n  a\n  The code is incomplete and was not run."},
			{cell(protocol.ItemDone, strings.Repeat("x\n", 17)+"y", &protocol.CodeResult{DurationMs: 1500}), "✓ starlark 1.5s\n" + strings.Repeat("  x\n", 16) + "  … 2 more lines"},
			{cell(protocol.ItemFailed, strings.Repeat("x\n", 17)+"y", &protocol.CodeResult{Error: "no", Position: &protocol.CodePosition{Line: 18}}),
				"✗ starlark 0 ms\n  … 2 lines before\n" + strings.Repeat("  x\n", 15) + "→ y\n  Error in line 18: no"},
		} {
			if got := ansi.Strip(entry{item: c.item}.shown(markdown.Style{Width: 60})); got != c.want {
				t.Errorf("it shows\n%s\nwant\n%s", got, c.want)
			}
		}
	})
	t.Run("issue/19-8 a cell shows its first calls with their arguments and durations, and the number of the others", func(t *testing.T) {
		r := &protocol.CodeResult{Printed: "ok", DurationMs: 90, Calls: []protocol.CellCall{
			{Index: 1, Tool: "read", Args: []byte(`{"path":"go.mod"}`), Status: protocol.ItemDone, DurationMs: 3, Summary: "module"},
			{Index: 2, Tool: "grep", Args: []byte(`{"pattern":"a","path":"b"}`), Status: protocol.ItemFailed, DurationMs: 1200, Summary: "no such directory"},
			{Index: 3, Tool: "list", Args: []byte(`{}`), Status: protocol.ItemUnknown, DurationMs: 5},
		}}
		want := "✓ starlark 90 ms\n  x\n  ✓ Read go.mod · 3 ms\n  ✗ Search for a in b · 1.2s · no such directory\n" +
			"  ? List . · 5 ms · outcome unknown\n  ok"
		if got := ansi.Strip(codeCell(cell(protocol.ItemDone, "x", r), markdown.Style{Width: 80})); got != want {
			t.Errorf("it shows\n%s\nwant\n%s", got, want)
		}
		for i := range 7 {
			r.AddCall(protocol.CellCall{Index: 4 + i, Tool: "read", Status: protocol.ItemDone})
		}
		r.MoreCalls = 120
		lines := strings.Split(ansi.Strip(codeCell(cell(protocol.ItemDone, "x", r), markdown.Style{Width: 80})), "\n")
		if len(lines) != 12 || lines[9] != "  ✓ Read · 0 ms" || lines[10] != "  … 122 more calls" {
			t.Errorf("of 130 calls it shows\n%s", strings.Join(lines, "\n"))
		}
	})
	t.Run("issue/19-8 calls appear while the cell runs, the newest ones last, and stay after a reconnect", func(t *testing.T) {
		runs := protocol.Event{Seq: 1, Type: protocol.EventItemStarted, Item: cell(protocol.ItemInProgress, "x", nil)}
		events := []protocol.Event{runs}
		for i := 1; i <= 10; i++ {
			c := protocol.CellCall{CallID: protocol.CallID(fmt.Sprint(i)), Index: i, Tool: fmt.Sprint("tool", i), Status: protocol.ItemInProgress}
			events = append(events, protocol.Event{Type: protocol.EventCellCall, ItemID: "itm_c", CellCall: &c})
			if i < 10 {
				ended := c
				ended.Status, ended.DurationMs = protocol.ItemDone, int64(i)
				events = append(events, protocol.Event{Type: protocol.EventCellCall, ItemID: "itm_c", CellCall: &ended})
			}
		}
		tr, _ := lost(t, events, protocol.SessionAttachResult{Seq: 1, OpenItems: []protocol.Item{*runs.Item}})
		u := &ui{talk: tr, width: 60}
		want := "▸ starlark\n  x\n  … 2 calls before\n  ✓ tool3 · 3 ms\n  ✓ tool4 · 4 ms\n  ✓ tool5 · 5 ms\n  ✓ tool6 · 6 ms\n  ✓ tool7 · 7 ms\n  ✓ tool8 · 8 ms\n" +
			"  ✓ tool9 · 9 ms\n  ▸ tool10"
		if got := ansi.Strip(strings.Join(u.moving(20), "\n")); got != want {
			t.Errorf("it shows\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("issue/19-8 code has styles, and a cut line keeps its text", func(t *testing.T) {
		c := cell(protocol.ItemDone, "for x in [1]:\n\tprint(\"a long text that does not fit\")  # no", &protocol.CodeResult{})
		lines := strings.Split(codeCell(c, markdown.Style{Width: 30, Theme: markdown.Palette}), "\n")
		if want := "  \x1b[35mfor\x1b[m x \x1b[35min\x1b[m [\x1b[33m1\x1b[m]:"; lines[1] != want {
			t.Errorf("the first line is %q, want %q", lines[1], want)
		}
		if got, want := ansi.Strip(lines[2]), "      print(\"a long text that…"; got != want {
			t.Errorf("the second line is %q, want %q", got, want)
		}
	})
	t.Run("issue/19-5 code is shown while it arrives, and code that does not run yet is dropped on a reconnect", func(t *testing.T) {
		begun := []protocol.Event{
			{Type: protocol.EventItemStarted, Item: cell(protocol.ItemInProgress, "", nil)},
			{Type: protocol.EventItemDelta, ItemID: "itm_c", Offset: new(0), Text: "a = 1\nb"},
		}
		tr := newTranscript()
		for _, e := range begun {
			tr.apply(e)
		}
		u := &ui{talk: tr, width: 60}
		if got := ansi.Strip(strings.Join(u.moving(10), "\n")); got != "▸ starlark\n  a = 1\n  b" {
			t.Errorf("it shows %q", got)
		}
		if tr, _ = lost(t, begun, protocol.SessionAttachResult{}); len(tr.open) != 0 {
			t.Errorf("after the reconnect %+v is open", tr.open)
		}
		runs := protocol.Event{Seq: 1, Type: protocol.EventItemStarted, Item: cell(protocol.ItemInProgress, "a = 2", nil)}
		if tr, _ = lost(t, append(begun, runs), protocol.SessionAttachResult{Seq: 1}); len(tr.open) != 1 || tr.open[0].Text != "a = 2" {
			t.Errorf("after the reconnect %+v is open", tr.open)
		}
	})
	t.Run("issue/19-5 the status line names a driver other than standard", func(t *testing.T) {
		for driver, want := range map[string]bool{"": false, "standard": false, "rlm": true} {
			u := &ui{talk: newTranscript(), connected: true, width: 60}
			u.talk.session.Config.Driver = driver
			if got := ansi.Strip(u.status()); slices.Contains(strings.Split(strings.TrimPrefix(got, "─ "), " · "), "rlm") != want || strings.Contains(got, "standard") {
				t.Errorf("with %q it is %q", driver, got)
			}
		}
	})
}
