//go:build linux

package persistence

import (
	"maps"
	"path/filepath"
	"testing"

	"lashd/rpc/protocol"
)

func TestInspection(t *testing.T) {
	dir, _ := life(t)
	s, stop := start(t, quiet(dir))
	commit(t, s, &Commit{Session: "ses_a", Events: []Event{event(3)}})
	hot := crashed(t, s)
	stop()
	rolledBack := filepath.Join(t.TempDir(), "rolled")
	shell(t, "cp", "-a", hot, rolledBack)
	remove(t, rolledBack, fileName+"-wal")
	adopt(t, rolledBack)
	for name, c := range map[string]struct {
		dir    string
		seq    protocol.Seq
		rolled bool
	}{
		"that was closed":         {dir, 3, false},
		"whose log holds commits": {hot, 3, false},
		"whose log was removed":   {rolledBack, 2, true},
	} {
		t.Run("outside/15 a check of a store "+name+" changes not a byte", func(t *testing.T) {
			before := listing(t, c.dir)
			in, err := Inspect(t.Context(), quiet(c.dir))
			if err != nil {
				t.Fatal(err)
			}
			report, err := in.Verify(t.Context(), func(int, int) {})
			if err != nil || len(report.Problems) > 0 || report.Events != int(c.seq) || (in.Rollback() != nil) != c.rolled {
				t.Errorf("found %+v, %v, %v", report, in.Rollback(), err)
			}
			if err := in.Close(); err != nil {
				t.Error(err)
			}
			if !maps.Equal(before, listing(t, c.dir)) {
				t.Error("the directory was changed")
			}
		})
	}
}
