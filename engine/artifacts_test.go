package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestUploads(t *testing.T) {
	t.Run("issue/2 empty uploads count against the limit until they expire", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, setup{model: replies()})
			id := d.session(t)
			part := func(n int) error {
				_, err := d.Artifacts.Write(t.Context(), &protocol.ArtifactWriteParams{SessionID: id, UploadID: fmt.Sprint("u", n)})
				return err
			}
			open := 0
			for ; open < 5000; open++ {
				if err := part(open); errors.Is(err, persistence.ErrBudget) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
			}
			if open < 100 || open > 2000 {
				t.Errorf("%d uploads are open", open)
			}
			if err := part(0); err != nil {
				t.Errorf("one that is open: %v", err)
			}
			time.Sleep(time.Hour)
			if err := part(open); err != nil {
				t.Errorf("an hour later: %v", err)
			}
		})
	})
}
