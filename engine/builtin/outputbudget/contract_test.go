package outputbudget_test

import (
	"strings"
	"testing"

	"lashd/engine/builtin/outputbudget"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/plugin/plugintest"
	"lashd/rpc/protocol"
)

// TestCells checks that the code of a cell gets outputs that would be too long for the model.
func TestCells(t *testing.T) {
	t.Run("runtime/R09 the output of a call in a code cell is not cut", func(t *testing.T) {
		h, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{outputbudget.Factory{}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := h.Open(t.Context(), "standard", nil, plugin.BuildContext{SessionID: "s"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		long := strings.Repeat("a line\n", 100_000)
		for cell, want := range map[bool]int{true: 700_000, false: 2900} {
			call := &plugin.ToolResultContext{ToolCallContext: plugin.ToolCallContext{Tool: "read", Cell: cell}, Output: protocol.Succeed(long)}
			if got := len(s.ProjectResult(t.Context(), call).Text); got > want || cell && got < want {
				t.Errorf("cell %v: %d bytes, want at most %d", cell, got, want)
			}
		}
	})
}

func TestContract(t *testing.T) { plugintest.Run(t, outputbudget.Factory{}, plugintest.Config{}) }
