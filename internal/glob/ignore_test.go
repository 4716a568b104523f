package glob

import (
	"slices"
	"testing"
)

// The expected results are those of git check-ignore, version 2.39.
func TestIgnore(t *testing.T) {
	names := []string{"a", "b", "foo", "foo ", "fooo", "{a,b}", "{{c}}", "p.js", "p.{js,ts}", "]x", "5x", "bx", "a[", "a*b", "axb", "#x", "!x"}
	for _, c := range []struct {
		text string
		want []string
	}{
		{"foo  ", []string{"foo"}},
		{"foo\\ ", []string{"foo "}},
		{"foo\r\n", []string{"foo"}},
		{"\ufefffoo", []string{"foo"}},
		{"foo?", []string{"foo ", "fooo"}},
		{"foo*\n!foo", []string{"foo ", "fooo"}},
		{"{a,b}", []string{"{a,b}"}},
		{"{{c}}", []string{"{{c}}"}},
		{"*.{js,ts}", []string{"p.{js,ts}"}},
		{"[]b]x", []string{"]x", "bx"}},
		{"[\\]]x", []string{"]x"}},
		{"[[:digit:]]x", []string{"5x"}},
		{"[!a-z]x", []string{"]x", "5x", "#x", "!x"}},
		{"a[", nil},
		{"a\\[", []string{"a["}},
		{"a\\*b", []string{"a*b"}},
		{"a[x*]b", []string{"a*b", "axb"}},
		{"\\#x\n\\!x", []string{"#x", "!x"}},
	} {
		t.Run("issue/6-2 matches like git: "+c.text, func(t *testing.T) {
			rules := ParseIgnore(c.text + "\n")
			var got []string
			for _, name := range names {
				if rules.Match(name, false) {
					got = append(got, name)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("it ignores %q, want %q", got, c.want)
			}
		})
	}
	t.Run("issue/6-2 a negated set does not match a slash", func(t *testing.T) {
		rules := ParseIgnore("/a[!b]c\n")
		if rules.Match("a/c", false) || !rules.Match("axc", false) {
			t.Error("a/c is ignored, or axc is not")
		}
	})
}

func TestCompile(t *testing.T) {
	t.Run("issue/6-2 braces are a choice outside .gitignore", func(t *testing.T) {
		g, err := Compile("*.{js,[t]s}")
		if err != nil || !g.Match("p.js") || !g.Match("d/p.ts") || g.Match("p.{js,[t]s}") {
			t.Errorf("%+v, %v", g, err)
		}
	})
	t.Run("issue/6-2 an unclosed bracket or brace is an error", func(t *testing.T) {
		for _, pattern := range []string{"a[b", "a[]", "{a", "[z-a]"} {
			if _, err := Compile(pattern); err == nil {
				t.Errorf("%s is taken", pattern)
			}
		}
	})
}
