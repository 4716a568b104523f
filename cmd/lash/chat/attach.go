package chat

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/clipboard"
	"lashd/engine/attachment"
	"lashd/rpc/protocol"
)

// attach puts a file into the prompt. Enter sends it together with the text.
func (u *ui) attach(path string) tea.Cmd {
	if path == "" {
		return say("Usage: /attach FILE. To remove a file, delete its label in the prompt.")
	}
	file, err := attachment.ReadFile(pathOf(path), mostAttached)
	if err != nil {
		return say("Not attached: %v", err)
	}
	return addFile(u, file)
}

// pasted attaches an image or a PDF document if the pasted text is its path, as terminals paste a file that is
// dragged onto them. It reports whether it did. In the input of a card, a path stays text.
func (u *ui) pasted(text string) (tea.Cmd, bool) {
	path := pathOf(text)
	if u.card.lent() || !filepath.IsAbs(path) || strings.ContainsRune(path, '\n') {
		return nil, false
	}
	file, err := attachment.ReadFile(path, mostAttached)
	if err != nil || strings.HasPrefix(file.Type, "text/") {
		return nil, false
	}
	return addFile(u, file), true
}

// clipboardMsg is the content of the clipboard.
type clipboardMsg struct {
	clipboard.Content
	err error
}

// readClipboard returns a command that reads the clipboard.
func readClipboard(u *ui) tea.Cmd {
	return func() tea.Msg {
		c, err := clipboard.Read(u.ctx, clipboard.System{OS: runtime.GOOS, Getenv: os.Getenv}, mostAttached)
		return clipboardMsg{c, err}
	}
}

// pasteClipboard attaches the image of the clipboard, or pastes its text.
func pasteClipboard(u *ui, m clipboardMsg) tea.Cmd {
	if m.err != nil {
		return say("Nothing was pasted: %v.", m.err)
	}
	if len(m.Image) == 0 {
		return func() tea.Msg { return tea.PasteMsg{Content: m.Text} }
	}
	if u.card.lent() || u.form != nil || u.search != nil {
		return say("Nothing was pasted: images belong into a message.")
	}
	kind, err := attachment.Checked("", m.Image)
	if err != nil {
		return say("Not attached: the image of the clipboard %v", err)
	}
	_, suffix, _ := strings.Cut(kind, "/")
	return addFile(u, &protocol.Attachment{Name: fmt.Sprintf("clipboard-%d.%s", len(u.in.Files())+1, suffix), Type: kind, Data: m.Image})
}

// addFile puts a file into the prompt, where it is shown as a label.
func addFile(u *ui, file *protocol.Attachment) tea.Cmd {
	size := len(file.Data)
	for _, f := range u.in.Files() {
		size += len(f.Data)
	}
	if size > mostAttached {
		return say("Not attached: the files have %d bytes, the chat sends at most %d. For larger files use: lash run --attach", size, mostAttached)
	}
	u.in.Attach(file)
	return nil
}

// mostAttached is the size of the files of one input, in bytes. It leaves room for the text.
const mostAttached = protocol.MaxInput - 64<<10

// pathOf returns the path that a person typed or a terminal pasted: quoted, with escaped spaces, or as a file URL.
func pathOf(text string) string {
	text = strings.TrimSpace(text)
	for _, quote := range []string{"'", `"`} {
		if len(text) > 1 && strings.HasPrefix(text, quote) && strings.HasSuffix(text, quote) {
			return text[1 : len(text)-1]
		}
	}
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" {
		return u.Path
	}
	return strings.ReplaceAll(text, `\ `, " ")
}

// parts returns the parts of an input: its text and the files.
func parts(text string, files []*protocol.Attachment) []protocol.InputPart {
	in := []protocol.InputPart{{Type: protocol.InputText, Text: text}}
	for _, f := range files {
		in = append(in, protocol.InputPart{Type: protocol.InputAttachment, Attachment: f})
	}
	return in
}
