package chat

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// export writes the session to a new file: as JSON if its name ends in .json, else as Markdown. Relative names are in the
// directory of the session.
func export(u *ui, name string) tea.Cmd {
	p := protocol.SessionExportParams{SessionID: u.talk.session.ID, Format: protocol.ExportMarkdown}
	name = cmp.Or(name, shortID(string(p.SessionID))+".md")
	if strings.EqualFold(filepath.Ext(name), ".json") {
		p.Format = protocol.ExportJSON
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(u.talk.session.Cwd, path)
	}
	call := func(result any) error { return u.session.Call(u.ctx, "session/export", p, result) }
	return func() tea.Msg {
		size, err := exportTo(path, call, &p)
		if err != nil {
			return saidMsg("Not exported: " + err.Error())
		}
		return saidMsg(fmt.Sprintf("Wrote the session to %s (%s).", termtext.OneLine(path, 300), bytesOf(size)))
	}
}

// exportTo writes all parts of a document to a new file, and returns their size. call reads the part to which the cursor of p
// leads. A file of an export that failed is removed.
func exportTo(path string, call func(result any) error, p *protocol.SessionExportParams) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) {
		return 0, fmt.Errorf("%s already exists; name another file: /export FILE", path)
	}
	if err != nil {
		return 0, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(path) // the error of the export says more
		}
	}()
	for {
		var r protocol.SessionExportResult
		if err := call(&r); err != nil {
			return size, err
		}
		n, err := f.WriteString(r.Text)
		size += int64(n)
		if p.Cursor = r.NextCursor; err != nil || p.Cursor == "" {
			return size, err
		}
	}
}
