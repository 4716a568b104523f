package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// TestStartCommandCutOff kills the daemon while start_command waits for the first output of its
// command.
func TestStartCommandCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "allow")
	d := w.serve()
	for try := range 10 {
		p := w.dial("")
		ran := fmt.Sprintf("ran%d", try)
		turn := p.start(p.session(w.home), fakemodel.ToolMarker("start_command", mustArgs(startsCommand{Command: "echo begun; sleep 0.1; echo x >>" + ran + "; sleep 1000"})))
		eventually(t, "the command runs", func() error {
			if w.size(ran) == 0 {
				return errors.New("it does not")
			}
			return nil
		})
		d.kill()
		d = w.serve()
		out := called(t, w.dial("").wait(turn.TurnID), "start_command")
		if out.Status == protocol.OutputSuccess && strings.Contains(out.Text, ": running.]") {
			continue // the call returned before the kill
		}
		if out.Failure == nil || out.Failure.Code != "interrupted" || !strings.Contains(out.Text, "begun") || w.size(ran) != 2 {
			t.Errorf("outside/17 a call cut off after %d bytes of output is reported as %s: %+v %q", w.size(ran), out.Status, out.Failure, out.Text)
		}
		d.stop()
		return
	}
	t.Error("no call was cut off in ten kills")
}
