package chat

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

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
		"a path with escaped spaces": {strings.ReplaceAll(image, " ", `\ `) + " ", "", 1},
		"a path in quotes":           {"'" + image + "'", "", 1},
		"a file URL":                 {"file://" + strings.ReplaceAll(image, " ", "%20"), "", 1},
		"the path of a text file":    {notes, notes, 0},
		"a path without a file":      {"/none.png", "/none.png", 0},
		"other text":                 {"see a.png", "see a.png", 0},
	} {
		t.Run("runtime/S15 pasted: "+name, func(t *testing.T) {
			u := &ui{talk: newTranscript(), width: 80}
			u.Update(tea.PasteMsg{Content: c.pasted})
			if len(u.files) != c.files || u.in.value() != c.text {
				t.Errorf("%d files are attached and the editor has %q", len(u.files), u.in.value())
			}
		})
	}
	t.Run("runtime/S15 attached files go with the next message only", func(t *testing.T) {
		s := &calls{}
		u := &ui{ctx: t.Context(), session: s, talk: newTranscript(), width: 80, connected: true}
		u.talk.session.ID, u.used = "ses_1", true
		if said := u.command("/attach " + notes)(); said != saidMsg("Attached notes.txt (text/plain, 1 KB). It goes with your next message; /attach removes it.") {
			t.Errorf("it says %q", said)
		}
		u.input("one", protocol.BusySteer)()
		u.input("two", protocol.BusySteer)()
		want := `{"type":"attachment","attachment":{"name":"notes.txt","type":"text/plain","data":"dGV4dA=="}}`
		if len(s.made) != 2 || !strings.Contains(s.made[0], want) || strings.Contains(s.made[1], "attachment") {
			t.Errorf("it calls %q", s.made)
		}
	})
}
