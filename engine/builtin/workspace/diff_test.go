package workspace

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestChangesTurnOneIntoTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "d"})
		a := rapid.SliceOf(line).Draw(t, "a")
		b := rapid.SliceOf(line).Draw(t, "b")
		var got []string
		at := 0
		for _, s := range changes(a, b) {
			if s.a0 < at || s.a1 < s.a0 || s.b1 < s.b0 || s.a0 == s.a1 && s.b0 == s.b1 {
				t.Fatalf("bad span %+v after %d", s, at)
			}
			got = append(append(got, a[at:s.a0]...), b[s.b0:s.b1]...)
			at = s.a1
		}
		got = append(got, a[at:]...)
		if strings.Join(got, "|") != strings.Join(b, "|") {
			t.Fatalf("changes of %q and %q give %q", a, b, got)
		}
	})
}

func TestUnified(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"same", "a\n", "a\n", ""},
		{"from nothing", "", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		{"to nothing", "a\n", "", "@@ -1 +0,0 @@\n-a\n"},
		{"no newline", "a", "b", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"},
		{"far apart", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "x\n2\n3\n4\n5\n6\n7\n8\ny\n",
			"@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n"},
		{"insert", "1\n2\n", "1\nx\n2\n", "@@ -1,2 +1,3 @@\n 1\n+x\n 2\n"},
	} {
		if got, _, _ := unified(c.before, c.after); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", c.name, got, c.want)
		}
	}
	body, added, removed := unified(strings.Repeat("old line\n", 20_000), strings.Repeat("new line\n", 30_000))
	if len(body) > maxDiff+100 || added != 30_000 || removed != 20_000 || !strings.HasSuffix(body, "omitted\n") {
		t.Errorf("a huge diff has %d bytes, +%d -%d", len(body), added, removed)
	}
}
