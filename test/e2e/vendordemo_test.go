package e2e

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"lashd/test/fakemodel"
)

// demoSteps are the replies of a model in lashd demo. The kills of the demo cut off one reply of each of the last two turns.
func demoSteps() []fakemodel.Step {
	story := strings.Split("Once upon a time a small daemon kept its word although somebody pulled the plug .", " ")
	cut := fakemodel.Say(story...)
	cut.Parts = append(cut.Parts, stalls)
	return []fakemodel.Step{
		to("typo", 0, step(thinks("Look first.", ""), says("I look."), uses("read", map[string]string{"path": "greeting.txt"}))),
		to("typo", 1, step(uses("edit", map[string]string{"path": "greeting.txt", "old": "wrold", "new": "world"}))),
		to("typo", 2, step(shell("cat greeting.txt"))),
		to("typo", 3, step(says("the file now says Hello, world!"))),
		to("story", 0, cut),
		to("story", 0, fakemodel.Say(story...)),
		to("slow command", 0, step(says("I run it."), shell("printf x >> count.txt; sleep 30"))),
		to("slow command", 1, step(says("The outcome is unknown."))),
	}
}

func TestDemoOnEachAPI(t *testing.T) {
	for _, api := range fakemodel.APIs() {
		t.Run("part9/conversation the demo runs on "+api, func(t *testing.T) {
			t.Parallel()
			model, door := serveModel(t, demoSteps()...)
			model.Strict("e2e-key-of-vendors")
			h := newHome(t, nil)
			h.env = []string{"OPENAI_API_KEY=e2e-key-of-vendors", "TMPDIR=" + filepath.Dir(h.socket)} // sockets need a short path
			cmd := h.command("demo", "--model", "m", "--api", api, "--base-url", fakemodel.Base("http://"+door.Addr().String(), api))
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v: %s", err, &out)
			}
			for _, want := range []string{"the file now says Hello, world!", "the turn continues and finishes once", "The outcome is unknown.", "the command ran 1 time(s)", "history nodes"} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("the demo does not print %q: %s", want, &out)
				}
			}
			if err := model.Check(); err != nil {
				t.Error(err)
			}
			if r := model.Requests()[0]; r.API != api {
				t.Errorf("the demo speaks %s", r.API)
			}
		})
	}
}
