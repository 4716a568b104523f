package persistence

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

func TestSnapshots(t *testing.T) {
	s := open(t, t.TempDir())
	commit(t, s, rootCommit("ses_a"))
	part := strings.Repeat("p", 2000)
	commit(t, s, &Commit{Session: "ses_a", Component: []Component{{"a", []byte("1")}, {"a/x", []byte(part)}, {"ab", []byte("2")}}})
	commit(t, s, &Commit{Session: "ses_a", Save: "first", Keep: []string{"a"}})
	key := session(t, s, "ses_a").Key
	t.Run("a snapshot holds the named components with their parts, and no others", func(t *testing.T) {
		whole, err := s.Components(t.Context(), key, "first")
		if err != nil || len(whole) != 1 || string(whole["a"]) != "1" {
			t.Errorf("whole %q %v", whole, err)
		}
		parts, err := s.Parts(t.Context(), key, "first", "a")
		if names := slices.Collect(maps.Keys(parts)); err != nil || !slices.Equal(names, []string{"a/x"}) || string(parts["a/x"]) != part {
			t.Errorf("parts %q %v", names, err)
		}
	})
	t.Run("a name can be used once, and an unknown name is an error", func(t *testing.T) {
		for want, c := range map[error]*Commit{
			ErrExists: {Session: "ses_a", Save: "first"}, ErrNotFound: {Session: "ses_a", Drop: "none"},
			&NotFoundError{What: "snapshot", ID: "none"}: {Session: "ses_a", Restore: "none"},
		} {
			_, err := s.Commit(t.Context(), c)
			if missing, ok := errors.AsType[*NotFoundError](err); !errors.Is(err, want) && (!ok || missing.What != "snapshot") {
				t.Errorf("%v, want %v", err, want)
			}
		}
	})
	t.Run("an input with a source is stored once", func(t *testing.T) {
		in := protocol.QueuedInput{ID: "inp_1", TurnID: "trn_1", State: protocol.InputQueued, Source: "p:k"}
		commit(t, s, &Commit{Session: "ses_a", Inputs: []protocol.QueuedInput{in}})
		again := in
		again.ID = "inp_2"
		if _, err := s.Commit(t.Context(), &Commit{Session: "ses_a", Inputs: []protocol.QueuedInput{again}}); !errors.Is(err, ErrExists) {
			t.Errorf("twice: %v", err)
		}
		if got, err := s.SourceInput(t.Context(), key, "p:k"); err != nil || got.ID != in.ID {
			t.Errorf("%+v %v", got, err)
		}
	})
	t.Run("a range can be read from a blob in a row or in a file", func(t *testing.T) {
		for _, size := range []int{5000, inlineBlob + 10} {
			data := slices.Repeat([]byte("0123456789"), size/10+1)[:size]
			b, err := s.PrepareBlob(data)
			if err != nil {
				t.Fatal(err)
			}
			commit(t, s, &Commit{Session: "ses_a", Blobs: []Blob{b}})
			part, all, err := s.BlobRange(t.Context(), b.Digest, int64(size)-3, 100)
			if want := data[size-3:]; err != nil || all != int64(size) || string(part) != string(want) {
				t.Errorf("%d bytes: %q of %d, %v, want %q", size, part, all, err, want)
			}
			if part, all, err := s.BlobRange(t.Context(), b.Digest, int64(size)+7, 100); err != nil || all != int64(size) || len(part) > 0 {
				t.Errorf("%d bytes, beyond the end: %q of %d, %v", size, part, all, err)
			}
		}
	})
}
