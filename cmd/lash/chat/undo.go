package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"lashd/cmd/lash/turns"
	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// pointNote describes a new file point, or returns "" if the point has no changes
// or is not closed yet.
func pointNote(p *protocol.FilePoint) string {
	switch {
	case p == nil || p.State != protocol.PointClosed:
		return ""
	case p.Unrestorable != "" && p.Kind == protocol.PointRewind:
		return "Some files could not be restored: " + p.Unrestorable
	case p.Unrestorable != "":
		return "The file changes of this turn cannot be undone: " + p.Unrestorable
	case p.Kind == protocol.PointRewind:
		return fmt.Sprintf("Restored %s. /undo %s reverts this.", changedCount(p), shortID(string(p.ID)))
	case p.Changed():
		return fmt.Sprintf("Changed %s. /diff shows the changes, /undo reverts them.", changedCount(p))
	}
	return ""
}

// changedCount counts the changed files of a file point, or its directories if it
// changed nothing else.
func changedCount(p *protocol.FilePoint) string {
	switch {
	case p.Files > 0:
		return counted(p.Files, "file")
	case p.Directories == 1:
		return "1 directory"
	}
	return fmt.Sprintf("%d directories", p.Directories)
}

// counted returns n and a noun, such as "1 file" or "2 files".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// errNothingToUndo means that no turn has file changes that can be undone or
// shown.
var errNothingToUndo = errors.New("no file changes left to undo")

// newest returns the file point of the newest turn that changed files and is not
// undone; errNothingToUndo if there is none. It calls the daemon, so it must run
// in a command.
func (u *ui) newest(id protocol.SessionID) (protocol.PointID, error) {
	var r protocol.SessionPointsResult
	if err := u.session.Call(u.ctx, "session/points", protocol.SessionParams{SessionID: id}, &r); err != nil {
		return "", err
	}
	for _, p := range slices.Backward(r.Data) {
		if p.Kind == protocol.PointTurn && !p.Undone && p.Changed() {
			return p.ID, nil
		}
	}
	return "", errNothingToUndo
}

// diff shows the file changes of the newest turn.
func (u *ui) diff(string) tea.Cmd {
	id, style := u.talk.session.ID, u.style
	return func() tea.Msg {
		point, err := u.newest(id)
		var r protocol.SessionDiffResult
		if err == nil {
			err = u.session.Call(u.ctx, "session/diff", protocol.SessionDiffParams{SessionID: id, PointID: point}, &r)
		}
		if errors.Is(err, errNothingToUndo) {
			return saidMsg("No file changes to show: this session changed none, or all of them were undone.")
		}
		if err != nil {
			return saidMsg(err.Error())
		}
		var all []string
		for _, f := range r.Data {
			all = append(all, diff(&protocol.FileChange{Path: f.Path, Diff: f.Diff, Added: f.Added, Removed: f.Removed}, style))
		}
		return textMsg(strings.Join(all, "\n"))
	}
}

// textMsg is styled text to print unchanged.
type textMsg string

// undo restores files to their contents before the newest turn that changed files,
// or before the file point that rest names. With the word force, it also
// overwrites files that have changed since. It leaves the conversation as it is.
func (u *ui) undo(rest string) tea.Cmd {
	words := strings.Fields(rest)
	force := slices.Contains(words, "force")
	words = slices.DeleteFunc(words, func(w string) bool { return w == "force" })
	p := protocol.SessionRewindParams{Mutation: key(), SessionID: u.talk.session.ID, Files: protocol.RewindOnly, Force: force}
	if len(words) > 0 {
		p.ToPoint = protocol.PointID(words[0])
	}
	return func() (msg tea.Msg) {
		var err error
		switch {
		case p.ToPoint == "":
			p.ToPoint, err = u.newest(p.SessionID)
		case len(p.ToPoint) < wholeLength:
			p.ToPoint, err = wholePoint(u, p.SessionID, p.ToPoint)
		}
		var r protocol.SessionRewindResult
		if err == nil {
			err = u.session.Call(u.ctx, "session/rewind", p, &r)
		}
		if err != nil {
			return saidMsg(err.Error())
		}
		return textMsg(u.restored(&p, &r))
	}
}

// restored says to before what an undo restored files, and lists them. It calls the daemon, so it must run in a command.
func (u *ui) restored(p *protocol.SessionRewindParams, r *protocol.SessionRewindResult) string {
	call := func(method string, params, result any) error { return u.session.Call(u.ctx, method, params, result) }
	before, err := turns.Undone(call, p.SessionID, p.ToTurn, p.ToPoint)
	if err != nil || len(r.Files) == 0 {
		return rewound(r.Files)
	}
	return strong.Render("Files of session "+shortID(string(p.SessionID))+" are as they were "+before) + "\n" + rewound(r.Files)
}

// wholePoint returns the id of the file point that a text begins. It calls the daemon, so it must run in a command.
func wholePoint(u *ui, id protocol.SessionID, text protocol.PointID) (protocol.PointID, error) {
	var r protocol.SessionPointsResult
	if err := u.session.Call(u.ctx, "session/points", protocol.SessionParams{SessionID: id}, &r); err != nil {
		return "", err
	}
	ids := make([]protocol.PointID, 0, len(r.Data))
	for i := range r.Data {
		ids = append(ids, r.Data[i].ID)
	}
	return theOne(string(text), "file point", ids)
}

// rewound lists the files that an undo restored.
func rewound(files []protocol.FileRewind) string {
	if len(files) == 0 {
		return faint.Render("· The files already have the earlier contents.")
	}
	var all []string
	for _, f := range files {
		line := fmt.Sprintf("  %s %s", f.Effect, termtext.OneLine(f.Path, 100))
		switch {
		case f.Problem != "":
			line += bad.Render(" " + termtext.OneLine(f.Problem, 100))
		case f.Unkept != "":
			line += asking.Render(" unchanged, no stored copy: " + string(f.Unkept))
		}
		all = append(all, line)
	}
	return strings.Join(all, "\n")
}
