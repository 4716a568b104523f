package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lashd/test/fakemodel"
)

// The keys of the tests in this file. Each is long enough to be searched for.
const (
	rightKey = "key-right-3c1f9a77d2e0"
	wrongKey = "key-wrong-8b4e2d61f05a"
)

// newKeyless creates a world of a person who has no key and no local server. The provider anthropic accepts only rightKey.
func newKeyless(t *testing.T, steps ...fakemodel.Step) *world {
	t.Helper()
	model, d := serveModel(t, steps...)
	model.Strict(rightKey)
	var config strings.Builder
	fmt.Fprintf(&config, "[providers.anthropic]\nbase_url = %q\n", fakemodel.Base("http://"+d.Addr().String(), fakemodel.AnthropicAPI))
	for _, local := range []string{"ollama", "llamacpp", "lmstudio", "vllm"} {
		fmt.Fprintf(&config, "[providers.%s]\nbase_url = \"http://127.0.0.1:1/v1\"\n", local)
	}
	w := &world{newHome(t, map[string]string{"config.toml": config.String()}), model, d}
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY", "OPENAI_BASE_URL"} {
		w.env = append(w.env, name+"=")
	}
	w.env = append(w.env, "LASHD_KEYRING=off")
	return w
}

// holds returns the files of the world that contain a text.
func (w *world) holds(text string) (paths []string) {
	w.t.Helper()
	for _, dir := range []string{w.dir, w.work, w.user} {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(path)
			if strings.Contains(string(data), text) {
				paths = append(paths, filepath.Base(path))
			}
			return err
		})
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return paths
}

// hides fails the test if the terminal ever received one of the keys.
func (s *chatScreen) hides() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range []string{rightKey, wrongKey} {
		if strings.Contains(s.shown.String(), key) || strings.Contains(strings.Join(strings.Fields(s.shown.String()), ""), key[4:]) {
			s.t.Errorf("the terminal received %q", key)
		}
	}
}

func TestChatLogin(t *testing.T) {
	t.Run("part9/keys a first chat without a key leads through the login to an answer", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t, fakemodel.Step{Parts: []fakemodel.Part{{Text: "o"}, {Stall: true}, {Text: "k"}}}, fakemodel.Say("Good day to you."), fakemodel.Say("Never said."))
		d := w.serve()
		p := w.dial("")
		s := w.chat()
		s.shows("There are three ways to go on:")
		s.shows("/login stores a key")
		s.shows("or use a local server")
		s.shows("lashd demo")
		s.shows("no model is set up")
		s.enters("/rename too early")
		s.shows("There is no session yet")
		s.enters("/login")
		s.shows("Provider")
		s.shows("1  Anthropic")
		s.shows("no key")
		s.types("1")
		s.types("\r")
		s.shows("API key of Anthropic:")
		s.types("\r")
		s.shows("Enter the key first.")
		s.types(wrongKey)
		s.shows(strings.Repeat("•", len(wrongKey)))
		s.types("\r")
		s.shows("Anthropic rejected the key (HTTP 401)")
		s.types("\x1b[200~ '" + rightKey + "'\r\n\x1b[201~") // as a terminal pastes
		s.shows(strings.Repeat("•", len("''")+len(rightKey)))
		s.types("\r")
		s.shows("Testing the key of Anthropic with one small request")
		w.model.Release()
		s.shows("stored the key of Anthropic in")
		s.shows("idle")
		s.types("\x1b[A") // the newest input is the command, not the key
		s.shows("/login")
		s.types("\x15")
		s.enters("hello there")
		s.shows("Good day to you.")
		w.idle()
		if held := w.holds(wrongKey); held != nil {
			t.Errorf("the refused key is in %q", held)
		}
		if held := w.holds(rightKey); len(held) != 1 || held[0] != "keys.json" {
			t.Errorf("the key is in %q, want only in keys.json", held)
		}
		s.enters("/logout")
		s.shows("deleted the key of Anthropic")
		s.enters("hello again")
		s.shows("no API key")
		s.shows("/login anthropic stores another API key.")
		s.enters("/login anthropic")
		s.shows("API key of Anthropic:")
		s.types("\x1b")
		s.shows("No key was stored.")
		s.hides()
		events, _ := p.events()
		for _, e := range events {
			if strings.Contains(e.raw, rightKey) || strings.Contains(e.raw, wrongKey) {
				t.Errorf("an event has a key: %s", e.raw)
			}
		}
		s.types("\x03\x03")
		s.leaves()
		d.stop()
		if held := w.holds(rightKey); held != nil {
			t.Errorf("after logout the key is in %q", held)
		}
	})
	t.Run("part9/keys a key after /login is refused and not remembered, and Ctrl-C ends the form", func(t *testing.T) {
		t.Parallel()
		w := newKeyless(t)
		d := w.serve()
		w.dial("")
		s := w.chat()
		s.shows("no model is set up")
		s.enters("/login anthropic sk-ant-typed-here")
		s.shows("Do not enter the key here")
		s.types("/login sk-ant-typed-here")
		s.types("\r")
		s.shows("Do not enter the key here")
		s.types("/login nobody")
		s.types("\r")
		s.shows(`unknown provider "nobody"`)
		s.types("\x1b[A\x1b[A\x1b[A")
		s.types("-\r") // if an input with a key were recalled, it would be sent now
		s.shows(`unknown provider "nobody-"`)
		s.enters("/login ollama")
		s.shows("Ollama needs no key")
		s.enters("/login openai")
		s.shows("API key of OpenAI:")
		s.types("\x1b[200~sk-ant-of-another\x1b[201~\r")
		s.shows("that looks like a key of Anthropic, not of OpenAI; choose Anthropic to store it")
		s.types("\x03")
		s.shows("No key was stored.")
		s.enters("/quit")
		s.leaves()
		if held := w.holds("sk-ant-"); held != nil {
			t.Errorf("a key is in %q", held)
		}
		d.stop()
	})
}
