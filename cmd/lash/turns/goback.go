package turns

import (
	"fmt"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Way is a way to go back to before a turn.
type Way struct {
	Says   string // what goes back
	Talk   bool   // the conversation does
	Params protocol.SessionRewindParams
}

// Ways returns the ways to go back to before a turn of the list. Files are among them only if the session can restore some.
func (l List) Ways(turn *Turn) []Way {
	ways := []Way{
		{"the conversation and the files", true, protocol.SessionRewindParams{ToTurn: turn.ID, Files: protocol.RewindAlso}},
		{"only the conversation", true, protocol.SessionRewindParams{ToTurn: turn.ID}},
		{"only the files", false, protocol.SessionRewindParams{ToTurn: turn.ID, Files: protocol.RewindOnly}},
	}
	if !l.From(turn).Restorable() {
		return ways[1:2]
	}
	return ways
}

// Where says where the conversation ends once it has gone back to before a turn.
func (l List) Where(turn *Turn) string {
	n := l.Number(turn)
	if n == 1 {
		return "The conversation is empty now."
	}
	return fmt.Sprintf("The conversation now ends after turn %d: %q.", n-1, termtext.OneLine(l[n-2].Title(), 60))
}

// Before says to before what an undo restored files: a turn or, if the history does not have it, a file point.
func (l List) Before(p *protocol.FilePoint) string {
	turn := l.Find(p.TurnID)
	switch {
	case turn != nil:
		return fmt.Sprintf("before turn %d: %q", l.Number(turn), termtext.OneLine(turn.Title(), 60))
	case p.Kind == protocol.PointRewind:
		return fmt.Sprintf("before the undo %s", p.ID)
	}
	return fmt.Sprintf("before the file point %s", p.ID)
}

// Undone says what an undo brought back. At least one of turn and point names its target. It reads the turns of the session.
func Undone(call Call, session protocol.SessionID, turn protocol.TurnID, point protocol.PointID) (string, error) {
	list, err := Read(call, session)
	if err != nil {
		return "", err
	}
	points, err := ReadPoints(call, session)
	if err != nil {
		return "", err
	}
	for i := range points {
		if p := &points[i]; p.ID == point || turn != "" && p.TurnID == turn {
			return list.Before(p), nil
		}
	}
	return list.Before(&protocol.FilePoint{ID: point, TurnID: turn}), nil
}

// Conflicts returns the files of a dry run that only force changes.
func Conflicts(r *protocol.SessionRewindResult) (against []protocol.FileRewind) {
	if r == nil {
		return nil
	}
	for _, f := range r.Files {
		if f.Conflict != "" || f.Unkept != "" {
			against = append(against, f)
		}
	}
	return against
}
