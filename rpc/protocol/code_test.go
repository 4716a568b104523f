package protocol

import (
	"fmt"
	"testing"
)

func TestAddCall(t *testing.T) {
	t.Run("issue/19-8 the newest calls of a running cell are kept in order, each in its newest state", func(t *testing.T) {
		var r CodeResult
		for _, i := range []int{1, 3, 2, 3} {
			r.AddCall(CellCall{Index: i, DurationMs: int64(len(r.Calls))})
		}
		if got := fmt.Sprint(r.Calls[0].DurationMs, r.Calls[1].DurationMs, r.Calls[2].DurationMs, len(r.Calls), r.MoreCalls); got != "0 2 3 3 0" {
			t.Errorf("it has %s", got)
		}
		for i := 4; i <= 1000; i++ {
			r.AddCall(CellCall{Index: i})
		}
		r.AddCall(CellCall{Index: 5}) // it ended late
		if len(r.Calls) != 16 || r.Calls[0].Index != 985 || r.Calls[15].Index != 1000 || r.MoreCalls != 984 {
			t.Errorf("of 1000 calls it has %d from %d on, and %d more", len(r.Calls), r.Calls[0].Index, r.MoreCalls)
		}
	})
	t.Run("issue/19-8 a client that connects late counts the calls before", func(t *testing.T) {
		var r CodeResult
		r.AddCall(CellCall{Index: 7})
		if len(r.Calls) != 1 || r.MoreCalls != 6 {
			t.Errorf("it has %d calls and %d more", len(r.Calls), r.MoreCalls)
		}
	})
}
