package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestSchemas(t *testing.T) {
	b := newBench(t)
	for _, x := range b.files.Tools() {
		if err := tool.CheckSchema(x.Manifest.Input); err != nil {
			t.Errorf("%s: %v", x.Manifest.Name, err)
		}
	}
	b.fails(t, "invalid_arguments", "read", map[string]any{"path": "x", "surplus": 1})
	b.fails(t, "invalid_arguments", "read", []int{})
}

func TestStandingAnswers(t *testing.T) {
	t.Run("issue/2 write and edit are allowed for a file, whatever is written; patch for what it is", func(t *testing.T) {
		got := map[string][]string{}
		for _, x := range newBench(t).files.Tools() {
			if v := x.Contract.Varying; v != nil {
				got[x.Manifest.Name] = v
			}
		}
		if diff := cmp.Diff(map[string][]string{"write": {"content"}, "edit": {"old", "new", "replaceAll"}}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBuildDoesNoIO(t *testing.T) {
	p, err := new(Factory).Build(plugin.BuildContext{Cwd: filepath.Join(t.TempDir(), "missing")})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Register(&plugin.Registrar{}); err != nil {
		t.Error(err)
	}
	f := p.(*instance).files
	if len(f.Tools()) != 7 {
		t.Errorf("%d tools, want 7", len(f.Tools()))
	}
	if err := p.(plugin.Closer).Close(); err != nil {
		t.Error(err)
	}
	res, err := f.Execute(t.Context(), tool.Invocation{Name: "list", Args: json.RawMessage(`{}`)})
	if err != nil || res.Output.Status != protocol.OutputFailure {
		t.Errorf("list after close: %+v, %v, want a failure", res.Output, err)
	}
}

func TestRead(t *testing.T) {
	t.Run("runtime/K03 numbers lines and continues", func(t *testing.T) {
		b := newBench(t)
		var text strings.Builder
		for i := range 4500 {
			fmt.Fprintf(&text, "line %d\n", i+1)
		}
		b.put(t, "long.txt", text.String())
		out := b.ok(t, "read", readArgs{Path: "long.txt"})
		has(t, out.Text, "     1\tline 1\n", "  2000\tline 2000\n", "Continue with offset 2001")
		out = b.ok(t, "read", readArgs{Path: "long.txt", Offset: 4001})
		has(t, out.Text, "  4001\tline 4001\n", "  4500\tline 4500\n")
		if strings.Contains(out.Text, "Go on") {
			t.Error("the end of the file claims to have more")
		}
		out = b.ok(t, "read", readArgs{Path: filepath.Join(b.dir, "long.txt"), Offset: 7, Limit: 2})
		if want := "     7\tline 7\n     8\tline 8\n[There are more lines. Continue with offset 9.]\n"; out.Text != want {
			t.Errorf("got %q, want %q", out.Text, want)
		}
		b.fails(t, "past_end", "read", readArgs{Path: "long.txt", Offset: 4501})
	})
	t.Run("runtime/R09 returns the text without numbers and notes for code", func(t *testing.T) {
		b := newBench(t)
		b.put(t, "table.csv", "a,1\r\nb,2\nc,3")
		b.put(t, "empty", "")
		out := b.ok(t, "read", readArgs{Path: "table.csv", Offset: 1, Limit: 2, Plain: true})
		if out.Text != "a,1\nb,2\n" || !strings.Contains(string(out.Value), `"nextOffset":3`) {
			t.Errorf("%q, %s", out.Text, out.Value)
		}
		if out := b.ok(t, "read", readArgs{Path: "empty", Plain: true}); out.Text != "" {
			t.Errorf("an empty file has the text %q", out.Text)
		}
	})
	t.Run("runtime/K03 caps bytes and long lines", func(t *testing.T) {
		b := newBench(t)
		b.put(t, "wide.txt", strings.Repeat(strings.Repeat("\u00e4", 3000)+"\n", 40))
		out := b.ok(t, "read", readArgs{Path: "wide.txt"})
		if len(out.Text) > readBytes+200 {
			t.Errorf("%d bytes, want about %d", len(out.Text), readBytes)
		}
		has(t, out.Text, "[2000 more bytes in this line]", "Continue with offset 13")
		b.put(t, "one.txt", strings.Repeat("x", 5<<20))
		has(t, b.ok(t, "read", readArgs{Path: "one.txt"}).Text, "more bytes in this line")
	})
	t.Run("runtime/S15 returns an image or a document as an attachment", func(t *testing.T) {
		b := newBench(t)
		const header = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01"
		image := header + strings.Repeat("\x00", 3<<20)
		b.put(t, "pics/a.jpg", image)
		b.put(t, "b.pdf", "%PDF-1.7 \x00")
		out := b.ok(t, "read", readArgs{Path: "pics/a.jpg"})
		if a := out.Attachments; len(a) != 1 || a[0].Name != "a.jpg" || a[0].Type != "image/png" || string(a[0].Data) != image || out.Text != "[pics/a.jpg is attached: image/png, 3145752 bytes]" {
			t.Errorf("%d attachments, %q", len(a), out.Text)
		}
		if a := b.ok(t, "read", readArgs{Path: "b.pdf"}).Attachments; len(a) != 1 || a[0].Type != "application/pdf" {
			t.Errorf("of a document: %+v", a)
		}
		b.put(t, "large.png", header+strings.Repeat("\x00", 5<<20))
		has(t, b.fails(t, "unreadable_file", "read", readArgs{Path: "large.png"}).Text, "large.png has 5242904 bytes; the limit for image/png is 5242880")
		b.put(t, "broken.png", header[:12]+"rubbish")
		has(t, b.fails(t, "unreadable_file", "read", readArgs{Path: "broken.png"}).Text, "broken.png is damaged")
	})
	t.Run("runtime/K03 rejects a binary file", func(t *testing.T) {
		b := newBench(t)
		b.put(t, "bin", "ELF\x00\x01")
		has(t, b.fails(t, "binary_file", "read", readArgs{Path: "bin"}).Text, "binary file of 5 bytes")
		b.fails(t, "is_directory", "read", readArgs{Path: "."})
		b.fails(t, "not_found", "read", readArgs{Path: "nothing"})
		b.put(t, "latin1", "caf\xe9\n")
		has(t, b.ok(t, "read", readArgs{Path: "latin1"}).Text, "caf\uFFFD")
		b.put(t, "empty", "")
		has(t, b.ok(t, "read", readArgs{Path: "empty"}).Text, "empty")
	})
}

func TestWrite(t *testing.T) {
	t.Run("runtime/K03 creates directories and keeps the mode", func(t *testing.T) {
		b := newBench(t)
		out := b.ok(t, "write", writeArgs{Path: "new/dir/f.sh", Content: "one\ntwo\n"})
		if got := b.get(t, "new/dir/f.sh"); got != "one\ntwo\n" {
			t.Errorf("content %q", got)
		}
		want := &protocol.FileChange{Path: "new/dir/f.sh", Added: 2, Diff: "--- /dev/null\n+++ b/new/dir/f.sh\n@@ -0,0 +1,2 @@\n+one\n+two\n"}
		if d := cmp.Diff(want, out.Change); d != "" {
			t.Error(d)
		}
		name := filepath.Join(b.dir, "new/dir/f.sh")
		if err := os.Chmod(name, 0o751); err != nil {
			t.Fatal(err)
		}
		out = b.ok(t, "write", writeArgs{Path: "new/dir/f.sh", Content: "one\n2\n"})
		if fi, err := os.Stat(name); err != nil || fi.Mode().Perm() != 0o751 {
			t.Errorf("mode %v, %v, want 0751", fi.Mode(), err)
		}
		has(t, out.Change.Diff, "@@ -1,2 +1,2 @@\n one\n-two\n+2\n")
		if d := cmp.Diff([]string{"new/dir/f.sh", "new/dir/f.sh"}, b.host.touched); d != "" {
			t.Error(d)
		}
		if d := cmp.Diff([]string{"new/dir/f.sh"}, b.names(t)); d != "" {
			t.Errorf("files left: %s", d)
		}
		out = b.ok(t, "write", writeArgs{Path: "new/dir/f.sh", Content: "one\n2\n"})
		if out.Change != nil || len(b.host.touched) != 2 {
			t.Errorf("writing the same content is a change: %+v", out.Change)
		}
	})
	t.Run("runtime/K03 writes through a link and keeps it", func(t *testing.T) {
		b := newBench(t)
		b.put(t, "real.txt", "old\n")
		symlink(t, "real.txt", filepath.Join(b.dir, "link.txt"))
		b.ok(t, "write", writeArgs{Path: "link.txt", Content: "new\n"})
		if got := b.get(t, "real.txt"); got != "new\n" {
			t.Errorf("content %q", got)
		}
		if _, err := os.Readlink(filepath.Join(b.dir, "link.txt")); err != nil {
			t.Error(err)
		}
	})
	t.Run("a refused touch changes nothing", func(t *testing.T) {
		b := newBench(t)
		b.host.refuse = errors.New("no file point")
		if out := b.call(t, "write", writeArgs{Path: "d/f", Content: "x"}); out.Status != protocol.OutputFailure {
			t.Errorf("got %+v", out)
		}
		if _, err := os.Stat(filepath.Join(b.dir, "d")); err == nil {
			t.Error("the directory was made")
		}
	})
	t.Run("a cancelled call changes nothing", func(t *testing.T) {
		b := newBench(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if out := b.callCtx(t, ctx, "write", writeArgs{Path: "d/f", Content: "x"}); out.Status != protocol.OutputCancelled {
			t.Errorf("got %+v", out)
		}
		if _, err := os.Stat(filepath.Join(b.dir, "d")); err == nil {
			t.Error("the directory was made")
		}
	})
}

func TestEdit(t *testing.T) {
	const text = "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n"
	t.Run("runtime/K03 replaces a text that occurs once", func(t *testing.T) {
		b := newBench(t)
		b.put(t, "x.go", text)
		out := b.ok(t, "edit", editArgs{Path: "x.go", Old: "func b() {\n\treturn 1", New: "func b() {\n\treturn 2"})
		if out.Change.Added != 1 || out.Change.Removed != 1 {
			t.Errorf("counts %+v", out.Change)
		}
		has(t, b.get(t, "x.go"), "return 1\n}\n\nfunc b() {\n\treturn 2")
		b.ok(t, "edit", editArgs{Path: "x.go", Old: "return", New: "yield", ReplaceAll: true})
		if strings.Contains(b.get(t, "x.go"), "return") {
			t.Error("replaceAll left one")
		}
	})
	for _, c := range []struct{ name, old, new, code, say string }{
		{"twice", "return 1", "return 2", "ambiguous_match", "2 times, at lines 2, 6"},
		{"indentation", "func a() {\n    return 1\n}", "x", "no_match", "line 1 differs from it only in indentation"},
		{"trailing space", "func b() {  \n\treturn 1", "x", "no_match", "line 5 differs from it only in white space at the ends"},
		{"case", "FUNC B() {", "x", "no_match", "line 5 differs from it only in upper and lower case"},
		{"escaped", `return 1\n}`, "x", "no_match", "two characters"},
		{"partly", "func b() {\n\treturn 3", "x", "no_match", "its line 1 is at line 5"},
		{"nothing alike", "quux", "x", "no_match", "read the file again"},
		{"same", "return 1", "return 1", "invalid_arguments", "the same"},
		{"empty", "", "x", "invalid_arguments", "old is empty"},
	} {
		t.Run("runtime/K03 explains a failed edit: "+c.name, func(t *testing.T) {
			b := newBench(t)
			b.put(t, "x.go", text)
			has(t, b.fails(t, c.code, "edit", editArgs{Path: "x.go", Old: c.old, New: c.new}).Text, c.say)
			if b.get(t, "x.go") != text {
				t.Error("the file was changed")
			}
		})
	}
	t.Run("keeps Windows line ends", func(t *testing.T) {
		b := newBench(t)
		b.put(t, "w.txt", "a\r\nb\r\nc\r\n")
		b.ok(t, "edit", editArgs{Path: "w.txt", Old: "a\nb\n", New: "x\ny\n"})
		if got := b.get(t, "w.txt"); got != "x\r\ny\r\nc\r\n" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("edits in one batch do not overwrite each other", func(t *testing.T) {
		b := newBench(t)
		b.put(t, "n.txt", "<0>\n<1>\n<2>\n<3>\n<4>\n<5>\n<6>\n<7>\n")
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				b.call(t, "edit", editArgs{Path: "n.txt", Old: fmt.Sprintf("<%d>", i), New: fmt.Sprintf("[%d]", i)})
			})
		}
		all.Wait()
		if got := b.get(t, "n.txt"); strings.Contains(got, "<") {
			t.Errorf("got %q", got)
		}
	})
}

func TestConcurrentWriter(t *testing.T) {
	b := newBench(t)
	b.put(t, "f", "one\n")
	v, err := b.files.view()
	if err != nil {
		t.Fatal(err)
	}
	at, err := v.locate("f")
	if err != nil {
		t.Fatal(err)
	}
	b.put(t, "f", "theirs\n")
	err = commit(t.Context(), b.host, v, []*change{{at: at, before: []byte("one\n"), after: []byte("ours\n"), mode: at.info.Mode().Perm()}})
	if !errors.Is(err, errMoved) || b.get(t, "f") != "theirs\n" {
		t.Errorf("err %v, content %q, want their content kept", err, b.get(t, "f"))
	}
	if d := cmp.Diff([]string{"f"}, b.names(t)); d != "" {
		t.Errorf("files left: %s", d)
	}
}

func TestList(t *testing.T) {
	b := newBench(t)
	b.put(t, "a/b/c/d/deep.txt", "")
	b.put(t, "a/top.txt", "")
	b.put(t, ".git/config", "")
	b.put(t, "node_modules/x/y.js", "")
	b.put(t, ".gitignore", "node_modules/\n")
	symlink(t, "a", filepath.Join(b.dir, "to_a"))
	want := ".git/\n  config\n.gitignore\na/\n  b/\n    c/\n  top.txt\nnode_modules/ (ignored)\nto_a@\n"
	want = strings.Replace(want, "  config\n", "", 1)
	t.Run("runtime/K03 three levels", func(t *testing.T) {
		if got := b.ok(t, "list", listArgs{}).Text; got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
		if got := b.ok(t, "list", listArgs{Path: "a/b"}).Text; got != "c/\n  d/\n    deep.txt\n" {
			t.Errorf("got %q", got)
		}
		has(t, b.ok(t, "list", listArgs{Path: "node_modules"}).Text, "x/\n  y.js")
		b.fails(t, "not_directory", "list", listArgs{Path: "a/top.txt"})
		b.fails(t, "not_found", "list", listArgs{Path: "b"})
	})
	t.Run("runtime/K03 500 entries", func(t *testing.T) {
		for i := range 600 {
			b.put(t, fmt.Sprintf("many/%03d", i), "")
		}
		got := b.ok(t, "list", listArgs{Path: "many"}).Text
		has(t, got, "499\n", "more than 500")
		if strings.Contains(got, "500\n[") || strings.Count(got, "\n") != 501 {
			t.Errorf("%d lines", strings.Count(got, "\n"))
		}
	})
}

func TestGlob(t *testing.T) {
	b := newBench(t)
	old := time.Now().Add(-time.Hour)
	for i := range 120 {
		name := fmt.Sprintf("src/p%d/f%03d.go", i%3, i)
		b.put(t, name, "")
		if err := os.Chtimes(filepath.Join(b.dir, name), old, old.Add(time.Duration(i)*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	b.put(t, "build/out.go", "")
	b.put(t, ".gitignore", "/build\n*.log\n!keep.log\n")
	b.put(t, "x.log", "")
	b.put(t, "keep.log", "")
	paths := func(a globArgs) globValue {
		var v globValue
		if err := json.Unmarshal(b.ok(t, "glob", a).Value, &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	t.Run("runtime/K03 newest hundred", func(t *testing.T) {
		v := paths(globArgs{Pattern: "**/*.go"})
		if v.Total != 120 || len(v.Paths) != 100 || v.Paths[0] != "src/p2/f119.go" {
			t.Errorf("got %d of %d, first %s", len(v.Paths), v.Total, v.Paths[0])
		}
	})
	for _, c := range []struct {
		args globArgs
		want []string
	}{
		{globArgs{Pattern: "f11[7-8].go"}, []string{"src/p1/f118.go", "src/p0/f117.go"}},
		{globArgs{Pattern: "src/*/f00{1,2}.go"}, []string{"src/p2/f002.go", "src/p1/f001.go"}},
		{globArgs{Pattern: "p0/f000.go", Path: "src"}, []string{"src/p0/f000.go"}},
		{globArgs{Pattern: "*.log"}, []string{"keep.log"}},
		{globArgs{Pattern: "*.go", Path: "build"}, []string{"build/out.go"}},
		{globArgs{Pattern: "src/*.go"}, []string{}},
	} {
		if d := cmp.Diff(c.want, paths(c.args).Paths); d != "" {
			t.Errorf("%+v: %s", c.args, d)
		}
	}
	b.fails(t, "invalid_pattern", "glob", globArgs{Pattern: "a[b"})
	b.fails(t, "invalid_pattern", "glob", globArgs{Pattern: "a{b"})
}

func TestGrep(t *testing.T) {
	b := newBench(t)
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "needle %d\nhay\n", i)
	}
	b.put(t, "a/many.txt", text.String())
	b.put(t, "b.go", "func Needle() {}\n")
	b.put(t, "bin", "needle\x00")
	b.put(t, ".git/x", "needle")
	b.put(t, "long.txt", strings.Repeat("\u00e4", 500)+"thorn"+strings.Repeat("y", 500)+"\n")
	t.Run("runtime/K03 pages", func(t *testing.T) {
		var seen []int
		for offset, pages := 0, 0; ; pages++ {
			var v grepValue
			if err := json.Unmarshal(b.ok(t, "grep", grepArgs{Pattern: `needle \d+`, Offset: offset}).Value, &v); err != nil {
				t.Fatal(err)
			}
			for _, m := range v.Matches {
				seen = append(seen, m.Line)
			}
			if v.Next == 0 {
				break
			}
			if len(v.Matches) != grepResults || pages > 5 {
				t.Fatalf("page of %d at %d", len(v.Matches), offset)
			}
			offset = v.Next
		}
		if len(seen) != 50 || !slices.IsSorted(seen) {
			t.Errorf("saw %d matches: %v", len(seen), seen)
		}
	})
	t.Run("runtime/K03 short lines, include, case", func(t *testing.T) {
		out := b.ok(t, "grep", grepArgs{Pattern: "thorn"})
		has(t, out.Text, "long.txt:1: ...", "thorn")
		if n := len([]rune(out.Text)); n > grepChars+30 {
			t.Errorf("%d characters", n)
		}
		if got := b.ok(t, "grep", grepArgs{Pattern: "needle", Include: "*.go", IgnoreCase: true}).Text; got != "b.go:1: func Needle() {}\n" {
			t.Errorf("got %q", got)
		}
		has(t, b.ok(t, "grep", grepArgs{Pattern: "Needle", Path: "b.go"}).Text, "b.go:1:")
		has(t, b.ok(t, "grep", grepArgs{Pattern: "absent"}).Text, "No match")
		b.fails(t, "invalid_pattern", "grep", grepArgs{Pattern: "("})
		b.fails(t, "binary_file", "grep", grepArgs{Pattern: "x", Path: "bin"})
	})
	t.Run("runtime/K03 refuses a huge file", func(t *testing.T) {
		name := filepath.Join(b.dir, "huge")
		b.put(t, "huge", "")
		if err := os.Truncate(name, maxFile+1); err != nil {
			t.Fatal(err)
		}
		b.fails(t, "too_large", "grep", grepArgs{Pattern: "x", Path: "huge"})
	})
}
