package chat

import (
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/markdown"
	"lashd/rpc/protocol"
)

func TestStyle(t *testing.T) {
	t.Run("part/12 the theme follows the background of the terminal", func(t *testing.T) {
		u := &ui{talk: newTranscript(), profile: colorprofile.TrueColor, style: markdown.Style{Theme: markdown.Palette}}
		for _, test := range []struct {
			background color.Color
			want       markdown.Theme
		}{{color.Black, markdown.Dark}, {color.White, markdown.Light}} {
			u.Update(tea.BackgroundColorMsg{Color: test.background})
			if u.style.Theme != test.want {
				t.Errorf("on %v the theme is %d, want %d", test.background, u.style.Theme, test.want)
			}
		}
	})
	t.Run("part/12 scrollback: finished lines of a growing message are printed early and once, also if it begins again", func(t *testing.T) {
		u := &ui{talk: newTranscript(), width: 40, style: markdown.Style{Width: 40}}
		var printed []string
		grows := func(e protocol.Event) {
			u.paper.writeAll(u.talk, u.talk.apply(e), u.style)
			printed = append(printed, u.paper.take()...)
		}
		grows(protocol.Event{Type: protocol.EventItemStarted, Item: item("itm_a", "", protocol.ItemAgentMessage)})
		grows(protocol.Event{Type: protocol.EventItemDelta, ItemID: "itm_a", Offset: new(0), Text: "one\n\ntwo"})
		if got := ansi.Strip(strings.Join(printed, "|")); got != "one" {
			t.Errorf("while it grows it prints %q", got)
		}
		u.talk.open = nil // as after a reconnect
		grows(protocol.Event{Type: protocol.EventItemStarted, Item: item("itm_a", "", protocol.ItemAgentMessage)})
		grows(protocol.Event{Type: protocol.EventItemDelta, ItemID: "itm_a", Offset: new(0), Text: "one\n"})
		grows(protocol.Event{Type: protocol.EventItemCompleted, Item: item("itm_a", "one\n\ntwo\n\nthree", protocol.ItemAgentMessage)})
		if got := ansi.Strip(strings.Join(printed, "|")); got != "one||two||three" {
			t.Errorf("at the end it has printed %q", got)
		}
	})
	t.Run("part/12 names of files of the workspace are links", func(t *testing.T) {
		dir := t.TempDir()
		for _, name := range []string{"work/a.go", "b.go"} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cwd := filepath.Join(dir, "work")
		if got, want := fileAddress(cwd, "a.go", 12), "/work/a.go#12"; !strings.HasPrefix(got, "file://") || !strings.HasSuffix(got, want) {
			t.Errorf("the address is %q, want one that ends with %q", got, want)
		}
		if got := fileAddress(cwd, filepath.Join(dir, "work", "a.go"), 0); !strings.HasSuffix(got, "/work/a.go") {
			t.Errorf("the address of the absolute path is %q", got)
		}
		for _, path := range []string{"../b.go", filepath.Join(dir, "b.go"), "c.go", ".", ""} {
			if got := fileAddress(cwd, path, 1); got != "" {
				t.Errorf("%q has the address %q", path, got)
			}
		}
		if got := fileAddress("", "a.go", 1); got != "" {
			t.Errorf("without a workspace the address is %q", got)
		}
	})
	t.Run("part/12 the diff of a call has colors and no header", func(t *testing.T) {
		c := &protocol.FileChange{Path: "a", Diff: "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-old\n+new " + strings.Repeat("x", 60) + "\n", Added: 1, Removed: 1}
		lines := strings.Split(diff(c, markdown.Style{Width: 30, Theme: markdown.Palette}), "\n")
		if len(lines) != 4 || lines[1] != "  \x1b[36m@@ -1 +1 @@\x1b[m" || lines[2] != "  \x1b[31m-old\x1b[m" || ansi.StringWidth(lines[3]) != 30 {
			t.Errorf("it is %q", lines)
		}
	})
}
