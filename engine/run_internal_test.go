package engine

import (
	"testing"

	"lashd/rpc/protocol"
)

func TestCauseOfACancelledTurn(t *testing.T) {
	for reason, want := range map[string]string{"": "turn cancelled", "too slow": "turn cancelled: too slow"} {
		t.Run("issue/2 "+want, func(t *testing.T) {
			if got := (&cancelled{protocol.CancelEvidence{Reason: reason}}).Error(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
