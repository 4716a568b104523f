package e2e

import (
	"path/filepath"
	"testing"
)

// subagentAsks is a world in which a person is asked about a command and then about a file of a subagent.
func subagentAsks(t *testing.T) *world {
	type written struct {
		Path    string `json:"path"`
		Content string `json:"content"`
	}
	type delegated struct {
		Task       string `json:"task"`
		Name       string `json:"name"`
		Capability string `json:"capability"`
		Wait       bool   `json:"wait"` // lash run asks only while its own turn runs
	}
	w := newWorld(t, "allow",
		to("lead", 0, step(uses("spawn_agent", delegated{"gamma job", "gamma", "peer", true}))), to("lead", 1, step(says("it works"))),
		to("gamma job", 0, step(shell("mkdir -p sub && printf x >> ran"))),
		to("gamma job", 1, step(uses("write", written{"kept.txt", "ZEBRA\n"}))),
		to("gamma job", 2, step(says("gamma did it"))), to("has ended", 0, step(says("noted"))),
	)
	config := filepath.Join(w.dir, "config.toml")
	w.write(config, readText(t, config)+"\n[[rules]]\ntool = \"shell\"\naction = \"ask\"\n[[rules]]\ntool = \"write\"\naction = \"ask\"\n")
	w.write(filepath.Join(w.work, "kept.txt"), "HORSE\n")
	w.serve()
	w.dial("") // start the daemon
	return w
}

func TestPersonSeesWhatASubagentWillDo(t *testing.T) {
	t.Run("issue/20-3 in lash chat", func(t *testing.T) {
		t.Parallel()
		w := subagentAsks(t)
		s := w.chat()
		s.shows("idle")
		s.enters("lead")
		s.shows("Run this command?")
		s.shows("$ mkdir -p sub && printf x >> ran")
		s.shows("The rule `ask tool shell` of the user decides.")
		s.shows("A subagent asks.")
		s.types("y\r")
		s.shows("Change kept.txt? +1 -1")
		s.shows("HORSE")
		s.shows("ZEBRA")
		s.shows("A subagent asks.")
		s.types("n\r")
		s.shows("Denied.")
		w.subagentAsked()
	})
	t.Run("issue/20-3 in lash run", func(t *testing.T) {
		t.Parallel()
		w := subagentAsks(t)
		s := w.onTerminal("run", "--cwd", w.work, "lead")
		s.shows("Run this command?")
		s.shows("$ mkdir -p sub && printf x >> ran")
		s.shows("The rule `ask tool shell` of the user decides.")
		s.shows("A subagent asks.")
		s.types("y\r")
		s.shows("Change kept.txt? +1 -1")
		s.shows("HORSE")
		s.shows("ZEBRA")
		s.shows("A subagent asks.")
		s.types("n\r")
		s.shows("Denied.")
		w.subagentAsked()
	})
}

// subagentAsked checks that the command ran and the file stays.
func (w *world) subagentAsked() {
	w.t.Helper()
	if w.size("ran") != 1 || readText(w.t, filepath.Join(w.work, "kept.txt")) != "HORSE\n" {
		w.t.Errorf("the command ran %d times; the file has %q", w.size("ran"), readText(w.t, filepath.Join(w.work, "kept.txt")))
	}
}
