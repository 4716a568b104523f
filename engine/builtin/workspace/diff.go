package workspace

import (
	"fmt"
	"slices"
	"strings"
)

const (
	diffContext = 3
	// maxEdits bounds the work of the search, which grows with the square; beyond it the whole changed region is
	// shown as replaced.
	maxEdits = 1000
	maxDiff  = 64 << 10
)

// span says that before[a0:a1] became after[b0:b1].
type span struct{ a0, a1, b0, b1 int }

// unified renders the change from before to after as the body of a unified diff, and counts lines.
func unified(before, after string) (body string, added, removed int) {
	a, b := lines(before), lines(after)
	spans := changes(a, b)
	for _, s := range spans {
		added += s.b1 - s.b0
		removed += s.a1 - s.a0
	}
	var out strings.Builder
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n].a0-spans[n-1].a1 <= 2*diffContext {
			n++
		}
		hunk(&out, a, b, spans[:n])
		spans = spans[n:]
		if out.Len() > maxDiff {
			break
		}
	}
	return cutDiff(strings.ToValidUTF8(out.String(), "\uFFFD"), len(spans) > 0), added, removed
}

func cutDiff(diff string, more bool) string {
	if len(diff) > maxDiff {
		diff, more = diff[:strings.LastIndexByte(diff[:maxDiff], '\n')+1], true
	}
	if more {
		diff += "\\ The rest of the diff is left out\n"
	}
	return diff
}

func hunk(out *strings.Builder, a, b []string, spans []span) {
	first, last := spans[0], spans[len(spans)-1]
	before := min(diffContext, first.a0)
	after := min(diffContext, len(a)-last.a1)
	a0, a1 := first.a0-before, last.a1+after
	b0, b1 := first.b0-before, last.b1+after
	fmt.Fprintf(out, "@@ -%s +%s @@\n", extent(a0, a1), extent(b0, b1))
	at := a0
	for _, s := range spans {
		mark(out, ' ', a[at:s.a0])
		mark(out, '-', a[s.a0:s.a1])
		mark(out, '+', b[s.b0:s.b1])
		at = s.a1
	}
	mark(out, ' ', a[at:a1])
}

// extent writes lines from (zero-based) to to the way diff does.
func extent(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func mark(out *strings.Builder, mark byte, text []string) {
	for _, line := range text {
		if out.Len() > 2*maxDiff {
			return // cutDiff takes it from here
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

// changes are the differing regions of a and b, in order, found by Myers' greedy search between the common ends.
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

// reach is, after d edits, how far into a each diagonal k in -d..d gets; index k+d. -1 means that it gets nowhere.
type reach []int

// at is the column on diagonal k, and -1 outside.
func (r reach) at(k int) int {
	if i := k + len(r)/2; i >= 0 && i < len(r) {
		return r[i]
	}
	return -1
}

// before is where the path to diagonal k came from: the diagonal, and the column after the edit.
func (r reach) before(k int) (from, column int) {
	down, right := r.at(k+1), r.at(k-1)
	if right >= 0 && right+1 > down {
		return k - 1, right + 1
	}
	return k + 1, down
}

// explore returns the reach for each number of edits up to the smallest that turns a into b; nil if that is too many.
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

// backtrack walks from the end of both to the start and joins neighbouring edits.
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
