package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPatch(t *testing.T) {
	const text = "package x\n\nfunc a() {\n\treturn\n}\n\nfunc b() {\n\treturn\n}\n"
	t.Run("runtime/K03 adds, updates, moves and deletes", func(t *testing.T) {
		b := newBench(t)
		b.put(t, "x.go", text)
		b.put(t, "old.txt", "keep\nchange\n")
		b.put(t, "gone.txt", "bye\n")
		if err := os.Chmod(filepath.Join(b.dir, "old.txt"), 0o700); err != nil {
			t.Fatal(err)
		}
		out := b.ok(t, "patch", patchArgs{`*** Begin Patch
*** Add File: new/deep/n.txt
+hello
+
*** Add File: new/deep/m.txt
+m
*** Update File: x.go
@@ func b() {
-	return
+	panic("b")
*** Update File: old.txt
*** Move to: moved/new.txt
 keep
-change
+changed
*** Delete File: gone.txt
*** End Patch
`})
		want := []string{"moved/new.txt", "new/deep/m.txt", "new/deep/n.txt", "x.go"}
		if d := cmp.Diff(want, b.names(t)); d != "" {
			t.Error(d)
		}
		if got := b.get(t, "x.go"); got != "package x\n\nfunc a() {\n\treturn\n}\n\nfunc b() {\n\tpanic(\"b\")\n}\n" {
			t.Errorf("x.go: %q", got)
		}
		if got := b.get(t, "moved/new.txt"); got != "keep\nchanged\n" {
			t.Errorf("moved: %q", got)
		}
		if fi, err := os.Stat(filepath.Join(b.dir, "moved/new.txt")); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("the move lost the mode: %v, %v", fi, err)
		}
		if got := b.get(t, "new/deep/n.txt"); got != "hello\n\n" {
			t.Errorf("n.txt: %q", got)
		}
		has(t, out.Text, "Added new/deep/n.txt.", "Updated x.go.", "Moved old.txt to moved/new.txt.", "Deleted gone.txt.")
		has(t, out.Change.Diff, "--- a/gone.txt\n+++ /dev/null\n", "+++ b/moved/new.txt\n")
		if len(b.host.touched) != 6 {
			t.Errorf("touched %v, want 6 paths", b.host.touched)
		}
	})
	for _, c := range []struct{ name, body, code string }{
		{"a missing file", "*** Update File: nope\n-a\n+b\n", "not_found"},
		{"a context that does not occur", "*** Update File: x.go\n func c() {\n-\treturn\n+\tx\n", "no_match"},
		{"a context that occurs twice", "*** Update File: x.go\n-\treturn\n+\tx\n", "ambiguous_match"},
		{"an anchor that does not occur", "*** Update File: x.go\n@@ func z() {\n-\treturn\n+\tx\n", "no_match"},
		{"an existing file to add", "*** Add File: x.go\n+x\n", "exists"},
		{"an existing file to move to", "*** Update File: x.go\n*** Move to: dir/f\n", "exists"},
		{"a file listed twice", "*** Delete File: x.go\n*** Update File: x.go\n-package x\n+package y\n", "invalid_patch"},
		{"a file listed twice through a link", "*** Delete File: x.go\n*** Update File: link.go\n-package x\n+package y\n", "invalid_patch"},
		{"a path outside", "*** Add File: ../z.go\n+x\n", "outside_workspace"},
		{"a directory", "*** Delete File: dir\n", "is_directory"},
		{"no change", "*** Update File: x.go\n package x\n", "invalid_patch"},
		{"an unknown header", "*** Rename File: x.go\n", "invalid_patch"},
	} {
		t.Run("runtime/K03 changes nothing because of "+c.name, func(t *testing.T) {
			b := newBench(t)
			b.put(t, "x.go", text)
			b.put(t, "y.go", text)
			b.put(t, "dir/f", "")
			symlink(t, "x.go", filepath.Join(b.dir, "link.go"))
			before := b.names(t)
			b.fails(t, c.code, "patch", patchArgs{"*** Begin Patch\n*** Add File: first/new.txt\n+x\n*** Delete File: y.go\n" + c.body + "*** End Patch"})
			if d := cmp.Diff(before, b.names(t)); d != "" {
				t.Error(d)
			}
			if b.get(t, "x.go") != text {
				t.Error("x.go was changed")
			}
		})
	}
	t.Run("restores changed files when a later step fails", func(t *testing.T) {
		b := newBench(t)
		b.put(t, "one", "1\n")
		b.put(t, "two", "2\n")
		v, err := b.files.view()
		if err != nil {
			t.Fatal(err)
		}
		p := &plan{view: v}
		defer p.close()
		for _, s := range []section{
			{verb: "add", path: "d/n", add: "n\n"},
			{verb: "update", path: "one", hunks: []block{{parts: []part{{'-', "1"}, {'+', "one"}}}}},
			{verb: "delete", path: "two"},
		} {
			if err := p.add(s); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range p.changes[:2] {
			if err := (&staging{view: v}).stage(c); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range p.changes {
			if err := c.take(); err != nil {
				t.Fatal(err)
			}
		}
		if err := undo(p.changes); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"one", "two"}, b.names(t)); d != "" || b.get(t, "one") != "1\n" || b.get(t, "two") != "2\n" {
			t.Errorf("%s %q %q", d, b.get(t, "one"), b.get(t, "two"))
		}
	})
}

func TestAmend(t *testing.T) {
	for _, c := range []struct{ name, text, body, want string }{
		{"at the end", "a\nb\na\n", "-a\n+c\n*** End of File\n", "a\nb\nc\n"},
		{"keeps a missing last newline", "a\nb", "-b\n+c\n", "a\nc"},
		{"keeps CRLF", "a\r\nb\r\n", " a\n-b\n+c\n+d\n", "a\r\nc\r\nd\r\n"},
		{"forgives trailing space", "a  \nb\n", " a\n-b\n+c\n", "a  \nc\n"},
		{"in order", "x\na\nx\na\n", "@@ a\n-x\n+y\n@@\n-a\n+b\n", "x\na\ny\nb\n"},
		{"only adds", "a\n", "+b\n", "a\nb\n"},
		{"adds to an empty file", "", "+b\n", "b\n"},
		{"adds after an anchor", "a\nb\n", "@@ a\n+x\n", "a\nx\nb\n"},
		{"knows line numbers", "a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", "a\nc\n"},
		{"repeats the anchor", "a\nb\n", "@@ a\n a\n-b\n+c\n", "a\nc\n"},
		{"removes a blank line", "a\n\nb\n", "@@ a\n-\n b\n", "a\nb\n"},
	} {
		sections, err := parsePatch("*** Begin Patch\n*** Update File: f\n" + c.body + "*** End Patch")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, err := amend(c.text, sections[0].hunks); err != nil || got != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}
