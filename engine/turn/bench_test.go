package turn

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// BenchmarkTurn measures the machine in a turn of ten batches of two calls with 4 KiB of output each. Converting
// answers to what their JSON gives takes most of the time.
func BenchmarkTurn(b *testing.B) {
	for _, tools := range []int{5, 200} {
		var env Environment
		for i := range tools {
			env.Tools = append(env.Tools, protocol.ToolManifest{
				Name: fmt.Sprint("tool", i), Description: strings.Repeat("does things ", 15),
				Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","description":"` + strings.Repeat("absolute ", 30) + `"}}}`),
			})
		}
		b.Run(fmt.Sprint(tools, " tools"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m := New(testDriver{}, unbounded)
				for e, ok := m.Next(); ok; e, ok = m.Next() {
					var r Response
					switch e.Kind {
					case EffectSync:
						r.Sync = &env
					case EffectModel:
						if r = says("done"); e.Iteration <= 10 {
							r = calls(protocol.CallID(fmt.Sprint("a", e.ID)), protocol.CallID(fmt.Sprint("b", e.ID)))
						}
					case EffectTools:
						r = succeed(e.Tools.Calls[0].CallID, e.Tools.Calls[1].CallID)
						r.Tools[0].Output.Text = strings.Repeat("output ", 585)
					case EffectCheckpoint:
						r = nothing
					}
					if e.Waits() {
						m.Deliver(e.ID, r)
					}
				}
			}
		})
	}
}
