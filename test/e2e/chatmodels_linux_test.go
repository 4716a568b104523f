package e2e

import (
	"fmt"
	"testing"

	"lashd/test/fakemodel"
)

// TestChatShowsModels looks at models and at the context window on a terminal.
func TestChatShowsModels(t *testing.T) {
	t.Run("runtime/M08 the chat lists models with window and price, sets the effort, and shows what fills the context", func(t *testing.T) {
		t.Parallel()
		answer := fakemodel.Step{Parts: []fakemodel.Part{{Text: "It is done."}}, Usage: &fakemodel.Usage{Prompt: 30_000, Completion: 2000}}
		answer.Usage.PromptDetails.Cached = 24_000
		w := newWorld(t, "allow", answer)
		w.write(w.dir+"/config.toml", fmt.Sprintf(`
[[models]]
id = "fake"
base_url = "http://%s/v1"
key_env = "LASHD_E2E_NO_KEY"
context_window = 200000
price = {input = 1.5, output = 6, cached = 0.15}
efforts = ["low", "high"]

[[models]]
provider = "anthropic"
id = "claude-opus-5"
`, w.door.Addr()))
		d := w.serve()
		s := w.chat()
		s.shows("idle")
		s.enters("/model")
		s.shows("Models by provider; * is in use. /model NAME switches.")
		s.shows("* fake")
		s.shows("200.0k window · $1.5 in, $6 out per million tokens")
		s.shows("anthropic")
		s.shows("anthropic/claude-opus-5")
		s.shows("1.0M window · $5 in, $25 out per million tokens")
		s.enters("/context")
		s.shows("No model call since the session began or its history was compacted.")
		s.shows("system prompt")
		s.enters("/effort extreme")
		s.shows(`model fake has no reasoning effort "extreme", only low, high`)
		s.types("\x15")
		s.enters("/effort high")
		s.shows("Reasoning effort from the next turn on: high")
		s.enters("do it")
		s.shows("It is done.")
		s.shows("context 32.0k of 200.0k (16%)")
		s.enters("/context")
		s.shows("Newest model call: context 32.0k of 200.0k (16%); 24.0k read from the cache")
		s.shows("Next request, estimated:")
		s.shows("tools          about")
		s.shows("history        about")
		s.shows("2 messages")
		s.types("\x03\x03")
		s.leaves()
		d.stop()
	})
}
