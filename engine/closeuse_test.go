package engine_test

import (
	"testing"
	"testing/synctest"

	"lashd/rpc/protocol"
)

func TestUseAfterClose(t *testing.T) {
	t.Run("runtime/S16 a request right after a session was closed opens it again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d := start(t, with())
			id := d.session(t)
			for n := range 300 {
				if err := turned("go")(t, d, id); err != nil {
					t.Fatalf("after %d closes: %v", n, err)
				}
				must[*protocol.SeqResult](t)(d.Sessions.Close(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
			}
		})
	})
}
