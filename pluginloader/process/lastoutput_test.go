//go:build unix

package process_test

import (
	"testing"
	"time"

	"lashd/engine/tool"
)

// slow is a host that takes its time to show what a call tells.
type slow struct{ tool.Host }

func (slow) Progress(string) { time.Sleep(500 * time.Millisecond) }

func TestLastWords(t *testing.T) {
	t.Run("runtime/K02 the last answers of a process are received after its end", func(t *testing.T) {
		s := session(t, "ses_1", begin(t, config(t, "answers and ends", only())))
		r, err := s.Sources()[0].Provider.Execute(t.Context(), tool.Invocation{CallID: "c1", ToolID: "note", Args: []byte(`{"text":"last"}`), Host: slow{}})
		if err != nil || r.Output.Text != "last" {
			t.Errorf("it is answered with %+v, %v", r.Output, err)
		}
	})
}
