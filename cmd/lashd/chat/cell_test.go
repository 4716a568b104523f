package chat

import (
	"slices"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

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
				"✓ starlark\n  a = 1\n  print(a)\n  3\n  1\n  Value: 3\n  changed: a, b"},
			{cell(protocol.ItemFailed, "a = 1\nb", &protocol.CodeResult{Error: "undefined: b", Position: &protocol.CodePosition{Line: 2, Column: 1}}),
				"✗ starlark\n  a = 1\n→ b\n  Error in line 2, column 1: undefined: b"},
			{cell(protocol.ItemFailed, "a", nil), "✗ starlark\n  a\n  The code is incomplete and was not run."},
			{cell(protocol.ItemDone, strings.Repeat("x\n", 17)+"y", &protocol.CodeResult{}), "✓ starlark\n" + strings.Repeat("  x\n", 16) + "  … 2 more lines"},
			{cell(protocol.ItemFailed, strings.Repeat("x\n", 17)+"y", &protocol.CodeResult{Error: "no", Position: &protocol.CodePosition{Line: 18}}),
				"✗ starlark\n  … 2 lines before\n" + strings.Repeat("  x\n", 15) + "→ y\n  Error in line 18: no"},
		} {
			if got := ansi.Strip(entry{item: c.item}.shown(60)); got != c.want {
				t.Errorf("it shows\n%s\nwant\n%s", got, c.want)
			}
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
		if got := ansi.Strip(u.moving(10)); got != "▸ starlark\n  a = 1\n  b\n" {
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
