package undo

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/filepoint"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// text returns the state of a file with content s. "" means that the file does not exist.
func text(s string) *protocol.FileState {
	if s == "" {
		return nil
	}
	return &protocol.FileState{Kind: protocol.FileRegular, Mode: 0o644, Size: int64(len(s)), Digest: protocol.DigestOf([]byte(s))}
}

// unkept returns the state of a file without a copy.
func unkept(s string) *protocol.FileState {
	is := text(s)
	is.Digest, is.Problem = "", protocol.FileTooLarge
	return is
}

func TestPlanOfFile(t *testing.T) {
	dir := &protocol.FileState{Kind: protocol.FileDirectory, Mode: 0o755}
	for name, c := range map[string]struct {
		undo filepoint.Undo
		now  *protocol.FileState
		want *protocol.FileRewind // nil: the report does not mention the file
		step bool
	}{
		"a file that the turn changed is restored": {
			filepoint.Undo{Before: text("a"), After: text("b")}, text("b"),
			&protocol.FileRewind{Path: "f", Effect: protocol.FileModified, Kind: protocol.FileRegular}, true,
		},
		"a file that the turn created is deleted": {
			filepoint.Undo{After: text("b")}, text("b"), &protocol.FileRewind{Path: "f", Effect: protocol.FileDeleted, Kind: protocol.FileRegular}, true,
		},
		"a file that the turn deleted is created": {
			filepoint.Undo{Before: text("a")}, nil, &protocol.FileRewind{Path: "f", Effect: protocol.FileCreated, Kind: protocol.FileRegular}, true,
		},
		"a file in its earlier state needs no step": {filepoint.Undo{Before: text("a"), After: text("b")}, text("a"), nil, false},
		"a file without an earlier copy is reported and kept": {
			filepoint.Undo{Before: unkept("a"), After: text("b")}, text("b"),
			&protocol.FileRewind{Path: "f", Effect: protocol.FileModified, Kind: protocol.FileRegular, Unkept: protocol.FileTooLarge}, false,
		},
		"a file without an earlier copy is reported even if it is unchanged": {
			filepoint.Undo{Before: unkept("a"), After: text("b")}, unkept("a"),
			&protocol.FileRewind{Path: "f", Effect: protocol.FileModified, Kind: protocol.FileRegular, Unkept: protocol.FileTooLarge}, false,
		},
		"a file that changed after the turn is a conflict": {
			filepoint.Undo{Before: text("a"), After: text("b")}, text("c"),
			&protocol.FileRewind{Path: "f", Effect: protocol.FileModified, Kind: protocol.FileRegular, Conflict: protocol.ConflictChanged}, true,
		},
		"a file that changed between two tools of the turn is a conflict": {
			filepoint.Undo{Before: text("a"), After: text("b"), Broken: true}, text("b"),
			&protocol.FileRewind{Path: "f", Effect: protocol.FileModified, Kind: protocol.FileRegular, Conflict: protocol.ConflictChanged}, true,
		},
		"a file that another session may have changed is a conflict": {
			filepoint.Undo{Before: text("a"), After: text("b"), Shared: true, Unsure: true}, text("b"),
			&protocol.FileRewind{Path: "f", Effect: protocol.FileModified, Kind: protocol.FileRegular, Conflict: protocol.ConflictShared}, true,
		},
		"a file that may have changed while lashd was not running is a conflict": {
			filepoint.Undo{Before: text("a"), After: text("b"), Unsure: true}, text("b"),
			&protocol.FileRewind{Path: "f", Effect: protocol.FileModified, Kind: protocol.FileRegular, Conflict: protocol.ConflictUnsure}, true,
		},
		"a file without a copy of its present state is a conflict": {
			filepoint.Undo{Before: text("a"), After: unkept("b")}, unkept("b"),
			&protocol.FileRewind{Path: "f", Effect: protocol.FileModified, Kind: protocol.FileRegular, Conflict: protocol.ConflictNotKept}, true,
		},
		"a directory is not a conflict: it stays if it has other files in it": {
			filepoint.Undo{After: text("b"), Broken: true}, dir, &protocol.FileRewind{Path: "f", Effect: protocol.FileDeleted, Kind: protocol.FileDirectory}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.undo.Path = "f"
			var p plan
			got := p.add(c.undo, c.now)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			steps := []filepoint.Step(nil)
			if c.step {
				steps = []filepoint.Step{{Path: "f", Now: c.now, Want: c.undo.Before}}
			}
			if diff := cmp.Diff(steps, p.steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			refused, is := errors.AsType[*ConflictError](p.check())
			if against := c.want != nil && (c.want.Conflict != "" || c.want.Unkept != ""); is != against || is && len(refused.Files) != 1 {
				t.Errorf("refused %+v, %t; want %t", refused, is, against)
			}
			if p.anyway = true; p.check() != nil {
				t.Errorf("refused despite force: %v", p.check())
			}
		})
	}
}

func TestPlanIsBounded(t *testing.T) {
	p := plan{anyway: true, steps: make([]filepoint.Step, 10_000)}
	if err := p.check(); err != nil {
		t.Errorf("10,000 files: %v", err)
	}
	p.steps = make([]filepoint.Step, 10_001)
	if err := p.check(); !errors.Is(err, persistence.ErrBudget) {
		t.Errorf("10,001 files: %v", err)
	}
}

func TestPointsToUndo(t *testing.T) {
	point := func(id protocol.PointID, root, why string) persistence.StoredPoint {
		return persistence.StoredPoint{Root: root, FilePoint: protocol.FilePoint{ID: id, Kind: protocol.PointTurn, Unrestorable: why}}
	}
	rewound := point("gone", "/w", "given up")
	rewound.Kind = protocol.PointRewind
	for name, c := range map[string]struct {
		points  []persistence.StoredPoint
		anyway  bool
		want    []protocol.PointID
		refused protocol.PointID
	}{
		"all points of the workspace": {points: []persistence.StoredPoint{point("a", "/w", ""), point("b", "/w", "")}, want: []protocol.PointID{"a", "b"}},
		"a later rewind that was given up is skipped": {
			points: []persistence.StoredPoint{point("a", "/w", ""), rewound}, want: []protocol.PointID{"a"},
		},
		"a rewind that was given up cannot itself be undone": {points: []persistence.StoredPoint{rewound}, refused: "gone"},
		"a point of another workspace is refused":            {points: []persistence.StoredPoint{point("a", "/w", ""), point("b", "/else", "")}, refused: "b"},
		"a point with unknown changes is refused":            {points: []persistence.StoredPoint{point("a", "/w", "too late"), point("b", "/w", "")}, refused: "a"},
		"force undoes all points": {
			points: []persistence.StoredPoint{point("a", "/w", "too late"), point("b", "/else", "")}, anyway: true, want: []protocol.PointID{"a", "b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan{anyway: c.anyway}
			got, err := p.pointsToUndo(c.points, "/w")
			if ids := slices.Sorted(maps.Keys(got)); !slices.Equal(ids, c.want) {
				t.Errorf("undone %v, want %v", ids, c.want)
			}
			refused, is := errors.AsType[*UnrestorableError](err)
			if is != (c.refused != "") || is && refused.Point != c.refused {
				t.Errorf("refused: %v, want %q", err, c.refused)
			}
		})
	}
}

func TestMarkUndone(t *testing.T) {
	turn := func(id protocol.PointID) persistence.StoredPoint {
		return persistence.StoredPoint{FilePoint: protocol.FilePoint{ID: id, Kind: protocol.PointTurn}}
	}
	rewind := func(id, to protocol.PointID) persistence.StoredPoint {
		return persistence.StoredPoint{FilePoint: protocol.FilePoint{ID: id, Kind: protocol.PointRewind, To: to}}
	}
	for name, c := range map[string]struct {
		points []persistence.StoredPoint
		undone []protocol.PointID
	}{
		"a rewind undoes its point and all up to itself":  {[]persistence.StoredPoint{turn("a"), turn("b"), turn("c"), rewind("r", "b"), turn("d")}, []protocol.PointID{"b", "c"}},
		"a rewind that was undone undoes nothing":         {[]persistence.StoredPoint{turn("a"), rewind("r", "a"), rewind("s", "r")}, []protocol.PointID{"r"}},
		"a rewind that was given up undoes nothing":       {[]persistence.StoredPoint{turn("a"), rewind("r", "")}, nil},
		"a rewind whose point was removed undoes nothing": {[]persistence.StoredPoint{turn("a"), rewind("r", "pruned")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			markUndone(c.points)
			var got []protocol.PointID
			for _, p := range c.points {
				if p.Undone {
					got = append(got, p.ID)
				}
			}
			if !slices.Equal(got, c.undone) {
				t.Errorf("undone %v, want %v", got, c.undone)
			}
		})
	}
}
