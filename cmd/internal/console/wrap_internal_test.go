package console

import (
	"context"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func TestWrapped(t *testing.T) {
	for _, test := range []struct {
		name, text string
		width      int
		want       string
	}{
		{"lines end between words", "lash: the daemon is not running", 16, "lash: the daemon\nis not running"},
		{"a command after a colon stays whole", "lash: the turn was cancelled; to continue: lash run --session ses_01", 40, "lash: the turn was cancelled; to\ncontinue: lash run --session ses_01"},
		{"the name of the program is not such a colon", "lash: lash upgrade replaces nothing", 20, "lash: lash upgrade\nreplaces nothing"},
		{"a command ends at a question mark", "unknown command: lash x; did you mean: lash y? See lash --help", 40, "unknown command: lash x; did you mean:\nlash y? See lash --help"},
		{"a word that is too long stays whole", "see /a/long/path here", 8, "see\n/a/long/path\nhere"},
		{"wide characters count as two", "界界界 界界", 8, "界界界\n界界"},
		{"a line keeps its indent", "ways:\n  lash login stores a key", 16, "ways:\n  lash login\n  stores a key"},
		{"without a terminal nothing changes", "a b c", 0, "a b c"},
	} {
		t.Run("issue/21-3 a note fits the terminal: "+test.name, func(t *testing.T) {
			if got := Wrapped(test.text, test.width); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	t.Run("issue/21-3 a text of parts ends lines only between them", func(t *testing.T) {
		if got, want := WrappedBetween("  y Allow once   n Deny   r Deny, say why", "   ", 30), "  y Allow once   n Deny\n  r Deny, say why"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("issue/21-3 a value continues at its indent", func(t *testing.T) {
		if got, want := Hanging("one two three four five", 22, 6), "one two three\n      four five"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if got, want := Hanging("/a/long/path/to/it is valid", 20, 6), "/a/long/path/t\n      o/it is valid"; got != want {
			t.Errorf("a long word: got %q, want %q", got, want)
		}
		if got, want := Hanging("one two three", 16, 6), "one two three"; got != want {
			t.Errorf("without room: got %q, want %q", got, want)
		}
	})
}

// commandsWithHelp are commands for a test of the help.
type commandsWithHelp struct {
	Copy copyWithHelp `cmd:"" help:"Copy a session, up to a turn that you name by its id."`
}

type copyWithHelp struct {
	Session string `arg:"" help:"Session to copy; the list has the ids of all sessions."`
	At      string `help:"Last turn of the copy; the default is the newest one." placeholder:"TURN"`
}

func (copyWithHelp) Help() string {
	return `Creates a session with the same history, which then goes its own way.

To install it:
  bash   lash completion bash > ~/.local/share/bash

Example: lash copy ses_01a1fcf3`
}

func TestNarrowHelp(t *testing.T) {
	t.Run("issue/21-3 on a narrow terminal the text of each flag, argument and command is below its name", func(t *testing.T) {
		parser := Parser(context.Background(), "lash", "Runs agents.", &commandsWithHelp{})
		got := narrowHelp("lash", parser.Model.Children[0], 40)
		const want = `Usage: lash copy <session> [flags]

Copy a session, up to a turn that you
name by its id.

Creates a session with the same history,
which then goes its own way.

To install it:

  bash
      lash completion bash >
      ~/.local/share/bash

Example: lash copy ses_01a1fcf3

Arguments:
  <session>
      Session to copy; the list has the
      ids of all sessions.

Flags:
  -h, --help
      Show help.
  --at=TURN
      Last turn of the copy; the default
      is the newest one.
`
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		for line := range strings.Lines(narrowHelp("lash", parser.Model.Node, 40)) {
			if ansi.StringWidth(strings.TrimSpace(line)) > 40 {
				t.Errorf("%q is wider than the terminal", line)
			}
		}
	})
}
