package main

import (
	"slices"
	"testing"
)

// TestRules lints planted sentences: each bad one must be reported by its rule, and each good one by none.
func TestRules(t *testing.T) {
	sentences := []struct{ text, rule string }{
		{"The client is told about the new turn.", "lashd.Voice"},
		{"This function tells whether the queue is full.", "lashd.Voice"},
		{"Nobody reads the reply after a timeout.", "lashd.Voice"},
		{"The daemon starts the plugin anew.", "lashd.Voice"},
		{"The session is unloaded meanwhile.", "lashd.Voice"},
		{"A monitor is likewise stored with its session.", "lashd.Voice"},
		{"The journal stores what the call comes to.", "lashd.Voice"},
		{"A plugin that is at work keeps its lease.", "lashd.Voice"},
		{"What a rule does not allow is denied.", "lashd.Openings"},
		{"The call ends. Whoever answers first decides.", "lashd.Openings"},
		{"Turns wait. One that fails is not retried.", "lashd.Openings"},
		{"Each sub-agent has a session of its own.", "lashd.Glossary"},
		{"Undo restores the files of a restore point.", "lashd.Glossary"},
		{"Lashd restarts the plugin after a crash.", "lashd.Names"},
		{"Open the view in VSCode to see the turn.", "lashd.Names"},
		{"lashd restarts the plugin after a crash.", ""},
		{"What is a turn? It is one run of the agent.", ""},
		{"The daemon cannot tell which process exited.", ""},
		{"What survives a crash", ""},
		{"The lookup comes to an end after ten seconds.", ""},
	}
	planted := texts{}
	for i, s := range sentences {
		planted.add("planted", i+1, s.text)
	}
	findings, err := planted.lint(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range sentences {
		at := slices.IndexFunc(findings, func(f finding) bool { return f.line == i+1 })
		switch {
		case s.rule == "" && at >= 0:
			t.Errorf("%q is reported: %s", s.text, findings[at].message)
		case s.rule != "" && (at < 0 || findings[at].rule != s.rule || !findings[at].fails):
			t.Errorf("%q is not reported as an error of %s", s.text, s.rule)
		}
	}
}

// TestTexts checks the extraction: places of comments and strings, and the parts of a help text.
func TestTexts(t *testing.T) {
	found := texts{}
	if err := found.addGo("testdata", "sample.go.txt"); err != nil {
		t.Fatal(err)
	}
	found.addHelpText("help", "Usage: lashd x [flags]\n\nRun one turn and\nprint it.\n\nFlags:\n  -h, --help   Show the help.\n      --model=NAME\n               Name of the\n               model.\n")
	for source, want := range map[string][]paragraph{
		"sample.go.txt": {
			{1, "Package sample has a comment of two lines."}, {4, "A second paragraph follows."}, {13, "Shown in the help."},
			{17, "a message of four words"}, {18, "First paragraph of text."}, {20, "Second paragraph of text."},
		},
		"help": {{1, "Usage: lashd x [flags]"}, {3, "Run one turn and print it."}, {7, "Show the help."}, {9, "Name of the model."}},
	} {
		if !slices.Equal(found[source], want) {
			t.Errorf("%s has\n%v, want\n%v", source, found[source], want)
		}
	}
}
