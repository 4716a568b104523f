package workspace

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// invocation returns a call with arguments, as it is before an approval.
func invocation(name string, args any) tool.Invocation {
	data, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return tool.Invocation{Name: name, Args: data}
}

// brief formats a preview without its text.
func brief(all []protocol.FilePreview) (list []string) {
	for _, f := range all {
		var line strings.Builder
		line.WriteString(fmt.Sprintf("%s %s +%d -%d", f.Kind, f.Path, f.Added, f.Removed))
		for _, h := range f.Hunks {
			line.WriteString(fmt.Sprintf(" @%d,%d,%d,%d", h.OldStart, h.OldLines, h.NewStart, h.NewLines))
		}
		if f.Binary {
			line.WriteString(" binary")
		}
		if f.Cut {
			line.WriteString(" cut")
		}
		if f.Problem != "" {
			line.WriteString(" problem: " + f.Problem)
		}
		list = append(list, line.String())
	}
	return list
}

const tenLines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n"

func TestPreviewShowsWhatCallsWillChange(t *testing.T) {
	b := newBench(t)
	b.put(t, "a.txt", tenLines)
	b.put(t, "gone.txt", "x\ny\n")
	b.put(t, "bin", "a\x00b")
	b.put(t, "latin", "caf\xe9\n")
	b.put(t, "../state/lashd.db", "ours")
	for _, c := range []struct {
		name, tool string
		args       any
		want       []string
	}{
		{"a new file", "write", writeArgs{"new/b.txt", "x\ny\n"}, []string{"create new/b.txt +2 -0 @0,0,1,2"}},
		{"a changed file", "write", writeArgs{"a.txt", "0\n" + tenLines[:len(tenLines)-3]}, []string{"change a.txt +1 -1 @1,3,1,4 @9,4,10,3"}},
		{"the same content", "write", writeArgs{"a.txt", tenLines}, nil},
		{"an edit", "edit", editArgs{Path: "a.txt", Old: "6\n", New: "six\n"}, []string{"change a.txt +1 -1 @3,7,3,7"}},
		{"an edit that does not match", "edit", editArgs{Path: "a.txt", Old: "six", New: "6"},
			[]string{"change a.txt +0 -0 problem: the old text is not in the file; none of its lines are in the file; read the file again"}},
		{"a missing file", "edit", editArgs{Path: "none", Old: "a", New: "b"}, []string{"change none +0 -0 problem: file does not exist"}},
		{"a patch", "patch", patchArgs{"*** Begin Patch\n*** Add File: new.txt\n+n\n*** Update File: a.txt\n@@\n-1\n+one\n*** Delete File: gone.txt\n*** End Patch"},
			[]string{"create new.txt +1 -0 @0,0,1,1", "change a.txt +1 -1 @1,4,1,4", "delete gone.txt +0 -2 @1,2,0,0"}},
		{"a moved file", "patch", patchArgs{"*** Begin Patch\n*** Update File: gone.txt\n*** Move to: here.txt\n*** End Patch"},
			[]string{"delete gone.txt +0 -2 @1,2,0,0", "create here.txt +2 -0 @0,0,1,2"}},
		{"a binary file", "write", writeArgs{"bin", "text\n"}, []string{"change bin +0 -0 binary"}},
		{"a file that is not UTF-8", "write", writeArgs{"latin", "text\n"}, []string{"change latin +0 -0 binary"}},
		{"a directory", "write", writeArgs{".", "text\n"}, []string{"change . +0 -0 problem: this is a directory; use list to see its contents"}},
		{"a file of lashd", "write", writeArgs{b.state + "/lashd.db", "text\n"}, []string{"change " + b.state + "/lashd.db +0 -0 problem: the path leads outside the workspace"}},
		{"a large file", "write", writeArgs{"big", strings.Repeat("0123456789012345678\n", 5_000)}, []string{"create big +5000 -0 @0,0,1,5000 cut"}},
		{"a tool that reads", "read", map[string]string{"path": "a.txt"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := b.names(t)
			call := invocation(c.tool, c.args)
			got, fails := b.files.Preview(t.Context(), call)
			if diff := cmp.Diff(c.want, brief(got)); diff != "" {
				t.Error(diff)
			}
			if size := len(encodePreview(got)); size > maxPreview*2 {
				t.Errorf("the preview has %d bytes", size)
			}
			if problem := len(got) > 0 && got[0].Problem != ""; problem != (fails != nil) {
				t.Errorf("the certain result is %+v", fails)
			}
			if fails != nil { // it is that of the tool
				call.Host = b.host
				if res, err := b.files.Execute(t.Context(), call); err != nil || !cmp.Equal(res.Output, *fails) {
					t.Errorf("the call returns %+v, the preview says %+v", res.Output, fails)
				}
			}
			if !slices.Equal(b.names(t), before) || b.get(t, "a.txt") != tenLines {
				t.Errorf("the preview changed files: %v", b.names(t))
			}
		})
	}
	got, _ := b.files.Preview(t.Context(), invocation("edit", editArgs{Path: "a.txt", Old: "6\n", New: "six\n"}))
	if want := " 3\n 4\n 5\n-6\n+six\n 7\n 8\n 9\n"; got[0].Hunks[0].Text != want || got[0].Before != protocol.DigestOf([]byte(tenLines)) {
		t.Errorf("the hunk is %q, the hash %s", got[0].Hunks[0].Text, got[0].Before)
	}
}

// A file that could not be read says nothing about the call, which may succeed later.
func TestPreviewOfAFileThatCannotBeRead(t *testing.T) {
	b := newBench(t)
	b.put(t, "a", "one\n")
	if err := os.Symlink("loop", filepath.Join(b.files.cwd, "loop")); err != nil {
		t.Fatal(err)
	}
	elsewhere := invocation("edit", editArgs{Path: "a", Old: "two", New: "2"})
	elsewhere.Places = []string{filepath.Join(b.files.cwd, "b")}
	slow, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		call tool.Invocation
	}{
		"a link to itself":                      {t.Context(), invocation("edit", editArgs{Path: "loop", Old: "two", New: "2"})},
		"a path that led elsewhere when judged": {t.Context(), elsewhere},
		"a file system that hangs":              {slow, invocation("edit", editArgs{Path: "a", Old: "two", New: "2"})},
	} {
		got, fails := b.files.Preview(c.ctx, c.call)
		if len(got) != 1 || got[0].Problem == "" || fails != nil {
			t.Errorf("%s: the preview is %+v, the certain result %+v", name, got, fails)
		}
	}
}

func encodePreview(all []protocol.FilePreview) string {
	text, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func TestCallIsRefusedAfterTheFileOfItsPreviewHasChanged(t *testing.T) {
	patch := patchArgs{"*** Begin Patch\n*** Update File: a\n@@\n-one\n+two\n*** Add File: b\n+new\n*** End Patch"}
	for _, c := range []struct {
		name   string
		call   tool.Invocation
		change map[string]string
	}{
		{"its content changed", invocation("edit", editArgs{Path: "a", Old: "one", New: "two"}), map[string]string{"a": "one\nmore\n"}},
		{"the old text is gone", invocation("edit", editArgs{Path: "a", Old: "one", New: "two"}), map[string]string{"a": "more\n"}},
		{"it was created", invocation("write", writeArgs{"b", "mine\n"}), map[string]string{"b": "theirs\n"}},
		{"one of several changed", invocation("patch", patch), map[string]string{"a": "one\nmore\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.put(t, "a", "one\n")
			c.call.Shown = map[string]protocol.Digest{}
			shown, _ := b.files.Preview(t.Context(), c.call)
			for _, f := range shown {
				c.call.Shown[f.Path] = f.Before
			}
			for name, content := range c.change {
				b.put(t, name, content)
			}
			names := b.names(t)
			c.call.Host = b.host
			res, err := b.files.Execute(t.Context(), c.call)
			if err != nil || res.Output.Failure == nil || res.Output.Failure.Code != "changed_since_approval" {
				t.Errorf("%+v, %v", res.Output, err)
			}
			has(t, res.Output.Text, "has changed since the approval request showed this change, so nothing was changed")
			if !slices.Equal(b.names(t), names) {
				t.Errorf("files are %v", b.names(t))
			}
			if _, err := b.files.Choose(t.Context(), c.call, []int{0}); err == nil || !strings.Contains(err.Error(), "has changed since the approval request") {
				t.Errorf("choosing hunks: %v", err)
			}
		})
	}
}

// TestChosenHunks compares the effect of each choice of hunks with the diff: what was taken is changed, and nothing else.
func TestChosenHunks(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t)
		line := rapid.SampledFrom([]string{"a", "b", "", " c", "{", "*** End Patch", "@@", "+x", "-", "ä"})
		eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "eol")
		before := strings.Join(rapid.SliceOfN(line, 1, 80).Draw(rt, "before"), eol) + rapid.SampledFrom([]string{"", eol}).Draw(rt, "end")
		after := mutated(rt, before, eol)
		if before == after || before == "" {
			return
		}
		b.put(t, "f", before)
		call := rapid.SampledFrom([]tool.Invocation{
			invocation("write", writeArgs{"f", after}),
			invocation("edit", editArgs{Path: "f", Old: before, New: after}),
			invocation("patch", patchArgs{"*** Begin Patch\n*** Update File: f\n" + wholePatch(before, after) + "\n*** End Patch"}),
		}).Draw(rt, "call")
		shown, _ := b.files.Preview(t.Context(), call)
		if len(shown) == 0 || shown[0].Problem != "" {
			return // the patch format cannot say this change
		}
		var taken []int
		for i := range shown[0].Hunks {
			if rapid.Bool().Draw(rt, "take") {
				taken = append(taken, i)
			}
		}
		if len(taken) == 0 {
			return
		}
		args, err := b.files.Choose(t.Context(), call, taken)
		if err != nil {
			if err == errIndivisible && call.Name == "patch" {
				return
			}
			rt.Fatalf("choose %v of %d: %v", taken, len(shown[0].Hunks), err)
		}
		want := applied(before, shown[0].Hunks, taken)
		res, err := b.files.Execute(t.Context(), tool.Invocation{Name: call.Name, Args: args, Host: b.host})
		if err != nil || res.Output.Status != protocol.OutputSuccess {
			rt.Fatalf("%s %s: %+v, %v", call.Name, args, res.Output, err)
		}
		if got := b.get(t, "f"); got != want {
			rt.Fatalf("%s %s\nof %q\ngives %q\nwant  %q", call.Name, args, before, got, want)
		}
	})
}

// mutated changes some lines of a text.
func mutated(rt *rapid.T, text, eol string) string {
	var out []string
	for _, line := range strings.SplitAfter(text, eol) {
		switch rapid.IntRange(0, 25).Draw(rt, "change") {
		case 0:
		case 1:
			out = append(out, "new"+eol, line)
		case 2:
			out = append(out, "other"+line)
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// wholePatch returns an update with all lines of a text.
func wholePatch(before, after string) string {
	var out strings.Builder
	out.WriteString("@@")
	a, b := lines(before), lines(after)
	write := func(mark string, all []string) {
		for _, line := range all {
			out.WriteString("\n" + mark + strings.TrimRight(line, "\r\n"))
		}
	}
	at := 0
	for _, s := range changes(a, b) {
		write(" ", a[at:s.a0])
		write("-", a[s.a0:s.a1])
		write("+", b[s.b0:s.b1])
		at = s.a1
	}
	write(" ", a[at:])
	return out.String()
}

// applied applies some hunks as their texts say, independently of the code under test.
func applied(before string, hunks []protocol.Hunk, taken []int) string {
	old := strings.SplitAfter(before, "\n")
	var out strings.Builder
	at := 0
	for i, h := range hunks {
		if !slices.Contains(taken, i) {
			continue
		}
		from := h.OldStart - 1
		if h.OldLines == 0 {
			from = h.OldStart
		}
		out.WriteString(strings.Join(old[at:from], ""))
		rows := strings.SplitAfter(h.Text, "\n")
		for i, row := range rows {
			if row == "" || row[0] == '-' || row[0] == '\\' {
				continue
			}
			line := row[1:]
			if i+1 < len(rows) && strings.HasPrefix(rows[i+1], "\\") {
				line = strings.TrimSuffix(line, "\n")
			}
			out.WriteString(line)
		}
		at = from + h.OldLines
	}
	return out.String() + strings.Join(old[at:], "")
}

func TestHunksOfPatchesThatCannotBeDivided(t *testing.T) {
	b := newBench(t)
	b.put(t, "a", "x\n")
	b.put(t, "b", "y\n")
	call := invocation("patch", patchArgs{"*** Begin Patch\n*** Update File: a\n*** Move to: c\n@@\n-x\n+z\n*** Delete File: b\n*** End Patch"})
	if _, err := b.files.Choose(t.Context(), call, []int{0}); err == nil || err.Error() != "take all hunks of a and c or none: they move the file" {
		t.Errorf("half of a move: %v", err)
	}
	for _, c := range []struct {
		hunks []int
		want  string
	}{
		{[]int{2}, "*** Begin Patch\n*** Delete File: b\n*** End Patch"},
		{[]int{1, 0}, "*** Begin Patch\n*** Update File: a\n*** Move to: c\n@@\n-x\n+z\n*** End Patch"},
	} {
		args, err := b.files.Choose(t.Context(), call, c.hunks)
		var got patchArgs
		if err != nil || json.Unmarshal(args, &got) != nil || got.Patch != c.want {
			t.Errorf("hunks %v: %s, %v", c.hunks, args, err)
		}
	}
	if _, err := b.files.Choose(t.Context(), call, []int{3}); err == nil {
		t.Error("a hunk that does not exist was taken")
	}
}
