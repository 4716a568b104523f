package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// shortMemory gives the model a small context window.
func (w *world) shortMemory() {
	w.t.Helper()
	config := fmt.Sprintf("[[models]]\nid = \"fake\"\nbase_url = \"http://%s/v1\"\nkey_env = \"LASHD_E2E_NO_KEY\"\ncontext_window = 1000\n", w.door.Addr())
	w.write(w.dir+"/config.toml", config)
}

// TestCompactsWhenTheContextIsFull nearly fills the context in two turns. The later turns, also those
// after a restart, begin with a summary.
func TestCompactsWhenTheContextIsFull(t *testing.T) {
	full := step(says("two"))
	full.Usage = &fakemodel.Usage{Prompt: 900, Completion: outputTokens}
	w := newWorld(t, "allow", step(says("one")), full, step(says("much was said")), step(says("three")), step(says("four")))
	w.shortMemory()
	d := w.serve()
	p := w.dial("")
	id := p.session(w.home)
	long := strings.Repeat("word", 400)
	p.turn(id, long)
	p.turn(id, "second")
	compacted := func(e protocol.Event) bool { return e.Type == protocol.EventSessionCompacted && e.Plugin == "history" }
	p.event("history is compacted", compacted)
	sees := func(want ...string) {
		t.Helper()
		got := w.sent()
		_, got[0], _ = strings.Cut(got[0], "\n\n") // without the heading
		if !slices.Equal(got, want) {
			t.Errorf("runtime/S11 the model was sent %q, want %q", got, want)
		}
	}
	p.turn(id, "third")
	sees("much was said", "second", "two", "third")
	d.kill()
	w.serve()
	p = w.dial("")
	p.turn(id, "fourth")
	sees("much was said", "second", "two", "third", "three", "fourth")
	if items := texts(readSession(p, id).Data); !slices.Contains(items, long) {
		t.Error("runtime/S11 clients do not see the summarized items any more")
	}
}
