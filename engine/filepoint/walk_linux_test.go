package filepoint

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func TestWalkManyFiles(t *testing.T) {
	t.Run("issue/6-2 ignored files do not count towards the limit", func(t *testing.T) {
		s := newScene(t)
		for i := range 3000 {
			s.write(fmt.Sprintf("out/%d.log", i), "")
		}
		s.write("out/.gitignore", "*.log\n")
		s.write("out/kept", "x")
		sight, err := s.Walk(t.Context(), NewIndex(nil), 3, false)
		s.ok(err)
		var got []string
		for _, f := range sight.News {
			got = append(got, f.Path)
		}
		slices.Sort(got)
		if want := []string{"out", "out/.gitignore", "out/kept"}; !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	})
	t.Run("issue/6-2 a workspace with too many files is reported once", func(t *testing.T) {
		s := newScene(t)
		for _, top := range []string{"a", "b", "c"} {
			s.write(top+"/1/2/3/4/5", "x")
		}
		_, err := s.Walk(t.Context(), NewIndex(nil), 2, false)
		many, ok := errors.AsType[*TooManyError](err)
		if !ok || err.Error() != many.Error() {
			t.Errorf("error %v", err)
		}
	})
}
