package chat

import (
	"net/url"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/engine/attachment"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// attach adds a file to the next input, or without a path removes the files that were added.
func (u *ui) attach(path string) tea.Cmd {
	if path == "" {
		n := len(u.files)
		u.files = nil
		return say("Removed %d attachments. Usage: /attach FILE", n)
	}
	file, err := attachment.ReadFile(pathOf(path), mostAttached)
	if err != nil {
		return say("Not attached: %v", err)
	}
	return u.addFile(file)
}

// pasted attaches an image or a PDF document if the pasted text is its path, as terminals paste a file that is
// dragged onto them. It reports whether it did.
func (u *ui) pasted(text string) (tea.Cmd, bool) {
	path := pathOf(text)
	if !filepath.IsAbs(path) || strings.ContainsRune(path, '\n') {
		return nil, false
	}
	file, err := attachment.ReadFile(path, mostAttached)
	if err != nil || strings.HasPrefix(file.Type, "text/") {
		return nil, false
	}
	return u.addFile(file), true
}

// addFile keeps a file for the next input and says so.
func (u *ui) addFile(file *protocol.Attachment) tea.Cmd {
	size := len(file.Data)
	for _, f := range u.files {
		size += len(f.Data)
	}
	if size > mostAttached {
		return say("Not attached: the files have %d bytes, the chat sends at most %d. For larger files use: lashd run --attach", size, mostAttached)
	}
	u.files = append(u.files, file)
	return say("Attached %s (%s, %d KB). It goes with your next message; /attach removes it.", termtext.OneLine(file.Name, 60), file.Type, (len(file.Data)+1023)/1024)
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
