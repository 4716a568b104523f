package chat

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"lashd/cmd/lash/clipboard"
	"lashd/rpc/protocol"
)

func TestFilesAreAttached(t *testing.T) {
	dir := t.TempDir()
	image, notes := filepath.Join(dir, "my image.png"), filepath.Join(dir, "notes.txt")
	for path, text := range map[string]string{image: "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01", notes: "text"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		pasted, text string
		files        int
	}{
		"a path with escaped spaces": {strings.ReplaceAll(image, " ", `\ `) + " ", "[image my image.png] ", 1},
		"a path in quotes":           {"'" + image + "'", "[image my image.png] ", 1},
		"a file URL":                 {"file://" + strings.ReplaceAll(image, " ", "%20"), "[image my image.png] ", 1},
		"the path of a text file":    {notes, notes, 0},
		"a path without a file":      {"/none.png", "/none.png", 0},
		"other text":                 {"see a.png", "see a.png", 0},
	} {
		t.Run("runtime/S15 pasted: "+name, func(t *testing.T) {
			u := &ui{talk: newTranscript(), width: 80}
			u.Update(tea.PasteMsg{Content: c.pasted})
			if len(u.in.Files()) != c.files || u.in.Text() != c.text {
				t.Errorf("%d files are attached and the editor has %q", len(u.in.Files()), u.in.Text())
			}
		})
	}
	t.Run("runtime/S15 attached files go with the next message only", func(t *testing.T) {
		s := &calls{}
		u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 80, connected: true}
		u.talk.session.ID, u.used = "ses_1", true
		u.in.Set("/attach " + notes)
		u.enter()
		if rows, _, _ := u.in.View(80, 5); ansi.Strip(strings.Join(rows, "")) != "[file notes.txt 1 KB] " {
			t.Errorf("the prompt shows %q", rows)
		}
		u.in.Insert("one")
		u.enter()()
		u.in.Insert("two")
		u.enter()()
		want := `{"type":"attachment","attachment":{"name":"notes.txt","type":"text/plain","data":"dGV4dA=="}}`
		if len(s.made) != 2 || !strings.Contains(s.made[0], `"text":"[file notes.txt] one"`) || !strings.Contains(s.made[0], want) || strings.Contains(s.made[1], "attachment") {
			t.Errorf("it calls %q", s.made)
		}
	})
}

func TestTheClipboardIsPasted(t *testing.T) {
	t.Setenv("PATH", t.TempDir()) // without clipboard programs
	t.Setenv("WAYLAND_DISPLAY", "")
	t.Setenv("DISPLAY", "")
	for name, c := range map[string]struct {
		msg        tea.Msg
		text, says string
	}{
		"an image is attached":                    {clipboardMsg{Content: clipboard.Content{Image: []byte(png)}}, "see [image clipboard-1.png] ", ""},
		"a text is pasted":                        {clipboardMsg{Content: clipboard.Content{Text: "some text"}}, "see some text", ""},
		"an image that models do not read is not": {clipboardMsg{Content: clipboard.Content{Image: []byte("BM\xff")}}, "see ", "Not attached: the image of the clipboard has contents that models cannot read"},
		"a missing clipboard is explained":        {tea.KeyPressMsg{Code: 'v', Mod: tea.ModCtrl}, "see ", "Nothing was pasted: there is no clipboard here, because neither WAYLAND_DISPLAY nor DISPLAY is set; copy the file to this machine and use /attach FILE."},
	} {
		t.Run("part/12 clipboard: "+name, func(t *testing.T) {
			u, _ := inWorkspace(t)
			press(u, "see ")
			says := ""
			for todo := []tea.Cmd{u.Update(c.msg)}; len(todo) > 0; {
				cmd := todo[0]
				if todo = todo[1:]; cmd == nil {
					continue
				}
				switch m := cmd().(type) {
				case saidMsg:
					says = string(m)
				case tea.BatchMsg:
					todo = append(todo, m...)
				default:
					todo = append(todo, u.Update(m))
				}
			}
			if u.in.Text() != c.text || !strings.HasPrefix(says, c.says) || c.says == "" && says != "" {
				t.Errorf("the prompt has %q, and it says %q", u.in.Text(), says)
			}
		})
	}
	t.Run("part/12 clipboard: Backspace removes an image at once", func(t *testing.T) {
		u, _ := inWorkspace(t)
		pasteClipboard(u, clipboardMsg{Content: clipboard.Content{Image: []byte(png)}})
		if press(u, "backspace", "backspace"); !u.in.Empty() {
			t.Errorf("the prompt has %q", u.in.Text())
		}
	})
}

func TestFilesOfAMessageAreShownOnce(t *testing.T) {
	image := &protocol.Item{ID: "itm_2", Kind: protocol.ItemUserMessage, TurnID: "trn_1", Attachment: &protocol.Attachment{Name: "a.png", Type: "image/png"}}
	for text, want := range map[string][]string{"see [image a.png]": {"› see [image a.png]"}, "see this": {"› see this", "› [image a.png]"}} {
		for _, begins := range [][]protocol.Event{nil, {{Type: protocol.EventTurnAccepted, TurnID: "trn_1", Input: said(text)}}} {
			tr := newTranscript()
			var out []entry
			for _, e := range append(begins, protocol.Event{Type: protocol.EventItemCompleted, Item: item("itm_1", text, protocol.ItemUserMessage)}, protocol.Event{Type: protocol.EventItemCompleted, Item: image}) {
				out = append(out, tr.apply(e)...)
			}
			if got := texts(out); !slices.Equal(got, want) {
				t.Errorf("part/12 it shows %q, want %q", got, want)
			}
		}
	}
}
