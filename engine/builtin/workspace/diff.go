package workspace

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// diffContext is the number of unchanged lines around a change.
	diffContext = 3
	// maxEdits limits the search for the shortest diff, whose cost is quadratic. Beyond it the whole changed region is
	// shown as replaced.
	maxEdits = 1000
	// maxDiff is the size in bytes after which a diff is cut.
	maxDiff = 64 << 10
)

// span means that before[a0:a1] became after[b0:b1]. Indexes count lines.
type span struct{ a0, a1, b0, b1 int }

// unified returns the body of the unified diff from before to after, and the numbers of
// added and removed lines. The body is cut after maxDiff bytes, the numbers are complete.
// Spans with little unchanged text between them share a hunk. Bytes that are not UTF-8 become
// U+FFFD.
func unified(before, after string) (body string, added, removed int) {
	a, b := lines(before), lines(after)
	spans := changes(a, b)
	for _, s := range spans {
		added += s.b1 - s.b0
		removed += s.a1 - s.a0
	}
	var out strings.Builder
	groups := grouped(spans)
	for len(groups) > 0 && out.Len() <= maxDiff {
		at := extentOf(a, b, groups[0])
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", extent(at.a0, at.a1), extent(at.b0, at.b1))
		hunk(&out, a, b, groups[0])
		groups = groups[1:]
	}
	return cutDiff(strings.ToValidUTF8(out.String(), "\uFFFD"), len(groups) > 0), added, removed
}

// grouped divides the spans of a diff into those of each hunk.
func grouped(spans []span) (hunks [][]span) {
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n].a0-spans[n-1].a1 <= 2*diffContext {
			n++
		}
		hunks, spans = append(hunks, spans[:n]), spans[n:]
	}
	return hunks
}

// extentOf returns the lines that a hunk shows, with the context.
func extentOf(a, b []string, spans []span) span {
	first, last := spans[0], spans[len(spans)-1]
	before := min(diffContext, first.a0)
	after := min(diffContext, len(a)-last.a1)
	return span{first.a0 - before, last.a1 + after, first.b0 - before, last.b1 + after}
}

// cutDiff cuts a diff at a line end and marks it as incomplete. more means that it already
// is.
func cutDiff(diff string, more bool) string {
	if len(diff) > maxDiff {
		diff, more = diff[:strings.LastIndexByte(diff[:maxDiff], '\n')+1], true
	}
	if more {
		diff += "\\ The rest of the diff is omitted\n"
	}
	return diff
}

// hunk writes the lines of one hunk with the given spans.
func hunk(out *strings.Builder, a, b []string, spans []span) {
	within := extentOf(a, b, spans)
	at := within.a0
	for _, s := range spans {
		mark(out, ' ', a[at:s.a0])
		mark(out, '-', a[s.a0:s.a1])
		mark(out, '+', b[s.b0:s.b1])
		at = s.a1
	}
	mark(out, ' ', a[at:within.a1])
}

// extent formats the zero-based line range [from, to) as diff does.
func extent(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

// mark writes lines with a mark before each.
func mark(out *strings.Builder, mark byte, text []string) {
	for _, line := range text {
		if out.Len() > 2*maxDiff {
			return // cutDiff cuts the rest
		}
		out.WriteByte(mark)
		out.WriteString(line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// lines splits s after each newline.
func lines(s string) []string {
	all := strings.SplitAfter(s, "\n")
	if all[len(all)-1] == "" {
		return all[:len(all)-1]
	}
	return all
}

// changes returns the differing regions of a and b in order. It skips the common ends and
// runs Myers' greedy algorithm on the rest.
func changes(a, b []string) []span {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	whole := span{head, len(a) - tail, head, len(b) - tail}
	if whole.a0 == whole.a1 && whole.b0 == whole.b1 {
		return nil
	}
	trace := explore(a[whole.a0:whole.a1], b[whole.b0:whole.b1])
	if trace == nil {
		return []span{whole}
	}
	return backtrack(trace, whole)
}

// reach holds, after d edits, the furthest column in a on each diagonal k in -d..d, at
// index k+d. -1 means unreachable.
type reach []int

// at returns the column on diagonal k, or -1 outside of the range.
func (r reach) at(k int) int {
	if i := k + len(r)/2; i >= 0 && i < len(r) {
		return r[i]
	}
	return -1
}

// before returns the diagonal from which the path to diagonal k comes, and the column after
// the edit.
func (r reach) before(k int) (from, column int) {
	down, right := r.at(k+1), r.at(k-1)
	if right >= 0 && right+1 > down {
		return k - 1, right + 1
	}
	return k + 1, down
}

// explore returns the reach for each number of edits up to the smallest one that turns a
// into b, or nil beyond maxEdits.
// This is the algorithm of Myers: after d edits, only the furthest column on each diagonal matters.
func explore(a, b []string) []reach {
	var trace []reach
	for d := 0; d <= min(maxEdits, len(a)+len(b)); d++ {
		r := slices.Repeat(reach{-1}, 2*d+1)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				_, x = trace[d-1].before(k)
			}
			if x < 0 || x > len(a) || x-k > len(b) {
				continue
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			r[k+d] = x
			if x == len(a) && x-k == len(b) {
				return append(trace, r)
			}
		}
		trace = append(trace, r)
	}
	return nil
}

// backtrack follows the path from the end to the start and joins neighbouring edits.
// whole is the region that explore compared; the returned spans are in ascending order.
func backtrack(trace []reach, whole span) []span {
	var spans []span
	x, y := whole.a1-whole.a0, whole.b1-whole.b0
	for d := len(trace) - 1; d > 0; d-- {
		k := x - y
		from, after := trace[d-1].before(k)
		x = trace[d-1].at(from)
		y = x - from
		edit := span{whole.a0 + x, whole.a0 + after, whole.b0 + y, whole.b0 + after - k}
		if n := len(spans) - 1; n >= 0 && spans[n].a0 == edit.a1 && spans[n].b0 == edit.b1 {
			spans[n].a0, spans[n].b0 = edit.a0, edit.b0
			continue
		}
		spans = append(spans, edit)
	}
	slices.Reverse(spans)
	return spans
}
