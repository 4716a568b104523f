package process

import (
	"testing"

	"lashd/engine/plugin"
	"lashd/pluginloader/child"
)

func TestLateForAProcess(t *testing.T) {
	t.Run("reliability/P14 a caller with a dead process does not detach the session from the next one", func(t *testing.T) {
		gone, next := &life{peer: newPeer("p", Limits{}, 0)}, &life{peer: newPeer("p", Limits{}, 0)}
		i := newInstance(&Factory{seats: map[string]*instance{}}, plugin.BuildContext{})
		there := &seat{of: i, id: "ins_1", life: next, ready: make(chan struct{}), open: true}
		i.place = there
		gone.peer.end(&Error{Plugin: "p", Code: Crashed, Err: child.ErrShutDown})
		if _, err := i.sit(t.Context(), gone); child.CodeOf(err) != Crashed {
			t.Errorf("it sits there: %v", err)
		}
		if i.place != there {
			t.Error("the session is detached from the current process")
		}
	})
}
