package commandrule_test

import (
	"path/filepath"
	"strings"
	"testing"

	"lashd/engine/commandrule"
	"lashd/internal/pathresolve"
)

// TestLimits checks lines at each limit, which are compared in full, and lines beyond it, which count as unknown.
func TestLimits(t *testing.T) {
	where := func(dir, name string) pathresolve.Places { return pathresolve.Places{filepath.Join("/w", dir, name)} }
	touch, ls := commandrule.ParsePrefix("touch"), commandrule.ParsePrefix("ls")
	again := strings.Repeat
	for name, c := range map[string]struct{ at, beyond string }{
		"bytes":              {"ls " + again("a", 32<<10-3), "ls " + again("a", 32<<10-2)},
		"bytes of all lines": {"  " + again("eval ", 4) + "ls " + again("a", 26201), "   " + again("eval ", 4) + "ls " + again("a", 26201)},
		"parentheses":        {again("( ", 100) + "ls" + again(" )", 100), again("( ", 101) + "ls" + again(" )", 101)},
		"lines within lines": {again("eval ", 8) + "ls", again("eval ", 9) + "ls"},
		"wrappers":           {again("env ", 8) + "ls", again("env ", 9) + "ls"},
		"commands":           {again("ls;", 2000), again("ls;", 2001)},
		"guesses":            {"env --new-option" + again(" ls", 100), "env --new-option" + again(" ls", 101)},
	} {
		if got := commandrule.Parse(c.at).About(touch, "", where); got != commandrule.No {
			t.Errorf("outside/29 at the limit of %s a denying rule is about the line: %d", name, got)
		}
		if got := commandrule.Parse(c.beyond).About(touch, "", where); got != commandrule.Maybe {
			t.Errorf("outside/29 beyond the limit of %s a denying rule says %d", name, got)
		}
		if commandrule.Parse(c.beyond).Covers(ls, "", where) {
			t.Errorf("outside/29 beyond the limit of %s an allowing rule covers the line", name)
		}
	}
	if got := commandrule.Parse("sudo --new-option touch"+again(" x", 200)).About(touch, "", where); got != commandrule.Yes {
		t.Errorf("outside/29 of the likeliest command beyond the limit of guesses a denying rule says %d", got)
	}
	for line, want := range map[string]bool{"ls " + again("a", 32<<10-3): true, again("ls;", 2000): true, again("(ls);", 200): true, again("( ", 100) + "ls" + again(" )", 100): true} {
		if got := commandrule.Parse(line).Covers(ls, "", where); got != want {
			t.Errorf("outside/29 %.20q... of %d bytes is covered: %v", line, len(line), got)
		}
	}
}

func TestUnknownPlaces(t *testing.T) {
	nowhere := func(string, string) pathresolve.Places { return nil }
	if got := commandrule.Parse("./loop x").About(commandrule.ParsePrefix("touch"), "", nowhere); got != commandrule.Yes {
		t.Errorf("outside/29 for a path that cannot be resolved a denying rule returns %d", got)
	}
}
