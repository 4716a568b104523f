package commandrule_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"

	"lashd/engine/commandrule"
)

func newRandom(seed int) *rand.Rand { return rand.New(rand.NewPCG(6, uint64(seed))) }

// FuzzLine checks that no line makes the parser panic, and that appending a command never makes a rule cover more.
func FuzzLine(f *testing.F) {
	for _, r := range table(f, "/ws") {
		f.Add(r.command, r.prefix)
	}
	for _, deep := range []string{"(", "$(", "{ ", "`", "${a:-", "if ", "sh -c ", "sudo -Z ", "xargs ", "eval "} {
		f.Add(strings.Repeat(deep, 2000), "git")
	}
	where := in("/nonexistent")
	f.Fuzz(func(t *testing.T, line, prefix string) {
		p := commandrule.ParsePrefix(prefix)
		parsed := commandrule.Parse(line)
		covered := parsed.Covers(p, "", where)
		parsed.About(p, "", where)
		if covered && parsed.About(p, "", where) == commandrule.No {
			t.Errorf("%q covers %q, but is not about it", prefix, line)
		}
		git, touch := commandrule.ParsePrefix("git"), commandrule.ParsePrefix("touch")
		if !complete(line) {
			return
		}
		covered = parsed.Covers(git, "", where)
		for _, separator := range []string{";", "\n", "&&", "||", "|", "&", " ; "} {
			if !covered && commandrule.Parse(line+separator+"git status").Covers(git, "", where) {
				t.Errorf("%q is not covered, but is with a second command after %q", line, separator)
			}
		}
		if commandrule.Parse(line+"\ntouch x").Covers(git, "", where) {
			t.Errorf("%q is covered with touch after it", line)
		}
		if commandrule.Parse(line+"\ntouch x").About(touch, "", where) == commandrule.No {
			t.Errorf("touch after %q is not seen", line)
		}
	})
}

// complete reports whether a line is complete. An incomplete one may continue with the text after it.
func complete(line string) bool {
	if strings.HasSuffix(line, `\`) {
		return false
	}
	f, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(line), "")
	return err == nil && len(f.Stmts) > 0
}
