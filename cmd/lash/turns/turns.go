// Package turns reads the turns of a session that its history has, as people know them: numbered, with their input and with what they
// changed in files. The chat and the command line use it. Its types are not safe for concurrent use.
package turns

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Page is the number of nodes, or of files, that are read at once.
const Page = 500

// Call calls a method of the daemon.
type Call func(method string, params, result any) error

// Turn is a turn of the history.
type Turn struct {
	ID      protocol.TurnID
	Items   []protocol.Item
	Point   *protocol.FilePoint // what it changed in files; nil: nothing that this session could restore
	Files   []protocol.FileDiff // once they are read
	Counted bool                // Files has been read
}

// List has the turns of a session, oldest first.
type List []*Turn

// Add adds a page of the history, which is older than all pages before it.
func (l *List) Add(page []protocol.Item) {
	var older List
	for _, item := range page {
		if item.TurnID == "" {
			continue
		}
		if n := len(older); n == 0 || older[n-1].ID != item.TurnID {
			older = append(older, &Turn{ID: item.TurnID})
		}
		older[len(older)-1].Items = append(older[len(older)-1].Items, item)
	}
	if n := len(older); n > 0 && len(*l) > 0 && older[n-1].ID == (*l)[0].ID {
		(*l)[0].Items = append(older[n-1].Items, (*l)[0].Items...)
		older = older[:n-1]
	}
	*l = append(older, *l...)
}

// AddPoints adds the file points of the session. A fork has none of its original, whose files it cannot restore.
func (l List) AddPoints(points []protocol.FilePoint) {
	for i := range points {
		if p := &points[i]; p.Kind == protocol.PointTurn && p.Changed() {
			if turn := l.Find(p.TurnID); turn != nil {
				turn.Point = p
			}
		}
	}
}

// Uncounted returns the newest turn whose files have not been read, or nil.
func (l List) Uncounted() *Turn {
	for _, turn := range slices.Backward(l) {
		if turn.Point != nil && !turn.Counted {
			return turn
		}
	}
	return nil
}

// Find returns a turn, or nil.
func (l List) Find(id protocol.TurnID) *Turn {
	if i := slices.IndexFunc(l, func(t *Turn) bool { return t.ID == id }); i >= 0 {
		return l[i]
	}
	return nil
}

// Number returns the number of a turn, which is 1 for the oldest one. It is known once the whole history has been added.
func (l List) Number(turn *Turn) int { return slices.Index(l, turn) + 1 }

// From returns a turn and those after it.
func (l List) From(turn *Turn) List { return l[slices.Index(l, turn):] }

// Restorable reports whether some turn changed files that this session can restore.
func (l List) Restorable() bool {
	return slices.ContainsFunc(l, func(t *Turn) bool { return t.Point != nil })
}

// Title returns the first text of a turn: its input or, if another program began it, its first item.
func (turn *Turn) Title() string {
	for _, item := range turn.Items {
		if item.Kind == protocol.ItemUserMessage && item.Text != "" {
			return item.Text
		}
	}
	return cmp.Or(termtext.OneLine(turn.Items[0].Text, 200), string(turn.Items[0].Kind))
}

// Input returns what people sent to a turn: the texts, one below the other, and the files.
func (turn *Turn) Input() (text string, files []*protocol.Attachment) {
	var texts []string
	for i := range turn.Items {
		switch item := &turn.Items[i]; {
		case item.Kind != protocol.ItemUserMessage:
		case item.Attachment != nil:
			files = append(files, item.Attachment)
		case item.Text != "":
			texts = append(texts, item.Text)
		}
	}
	return strings.Join(texts, "\n"), files
}

// AtMs returns when the turn began.
func (turn *Turn) AtMs() int64 { return turn.Items[0].AtMs }

// Lines returns the lines that were added and removed in files.
func Lines(files []protocol.FileDiff) (added, removed int) {
	for i := range files {
		added, removed = added+files[i].Added, removed+files[i].Removed
	}
	return added, removed
}

// Read reads the whole list, with the changes of files.
func Read(call Call, session protocol.SessionID) (List, error) {
	var l List
	for p := (protocol.SessionReadParams{SessionID: session, Limit: Page}); ; {
		var r protocol.SessionReadResult
		if err := call("session/read", p, &r); err != nil {
			return nil, err
		}
		l.Add(r.Data)
		if p.Cursor = r.NextCursor; p.Cursor == "" {
			break
		}
	}
	points, err := ReadPoints(call, session)
	if err != nil {
		return nil, err
	}
	l.AddPoints(points)
	for turn := l.Uncounted(); turn != nil; turn = l.Uncounted() {
		turn.Counted = true
		if turn.Files, err = ReadFiles(call, session, turn.Point.ID); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// ReadPoints reads the file points of a session, oldest first.
func ReadPoints(call Call, session protocol.SessionID) ([]protocol.FilePoint, error) {
	var r protocol.SessionPointsResult
	err := call("session/points", protocol.SessionParams{SessionID: session}, &r)
	return r.Data, err
}

// ReadFiles reads the changes of a file point, at most Page files.
func ReadFiles(call Call, session protocol.SessionID, point protocol.PointID) ([]protocol.FileDiff, error) {
	var r protocol.SessionDiffResult
	err := call("session/diff", protocol.SessionDiffParams{SessionID: session, PointID: point, Limit: Page}, &r)
	return r.Data, err
}

// LastNode returns the last node of a turn in the history, at which a fork keeps the whole turn.
func LastNode(call Call, session protocol.SessionID, turn protocol.TurnID) (protocol.NodeID, error) {
	for p := (protocol.GraphReadParams{SessionID: session, Limit: Page}); ; {
		var r protocol.GraphReadResult
		if err := call("graph/read", p, &r); err != nil {
			return "", err
		}
		for _, n := range slices.Backward(r.Data) {
			if n.TurnID == turn {
				return n.ID, nil
			}
		}
		if p.Cursor = r.NextCursor; p.Cursor == "" {
			return "", errors.New("the history does not have this turn any more; list the turns again")
		}
	}
}
