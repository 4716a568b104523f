package workspace

import (
	"context"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// describePatch is the description of patch that the model reads. It defines the format,
// which parsePatch parses.
const describePatch = `Change several files of the workspace at once. Either the whole patch is applied or nothing. Format:

*** Begin Patch
*** Add File: path/new.txt
+each line of the new file
*** Update File: path/old.txt
*** Move to: path/renamed.txt
@@ a line before the change, such as the first line of a function
 a line to keep
-a line to remove
+a line to add
*** Delete File: path/gone.txt
*** End Patch

"Move to" and "@@" are optional. Include about three lines of context around each change, so that it matches only one place.
"*** End of File" after a change anchors it at the end of the file.`

// patchArgs are the arguments of patch.
type patchArgs struct {
	Patch string `json:"patch" jsonschema:"the whole patch, from *** Begin Patch to *** End Patch"`
}

// patch is the patch tool. It parses the patch before it waits for other changes.
func (f *files) patch(ctx context.Context, req request[patchArgs]) (protocol.ToolOutput, error) {
	sections, err := parsePatch(req.args.Patch)
	if err != nil {
		return protocol.ToolOutput{}, explained("patch", "", err)
	}
	out, err := f.change(ctx, req.view, req.host, func(p *plan) error { return p.patch(sections) })
	return out, explained("patch", "", err)
}

// patch plans all sections, so that an impossible one fails before any file changes.
func (p *plan) patch(sections []section) error {
	for i, s := range sections {
		before := len(p.changes)
		if err := p.add(s); err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		for _, c := range p.changes[before:] {
			c.section = i
		}
	}
	return nil
}

// add plans one section of the patch.
// It reads the old content of a file to update or delete, and changes nothing on disk.
func (p *plan) add(s section) error {
	c, err := p.at(s.path)
	if err != nil {
		return err
	}
	if s.verb == "add" {
		if c.exists() {
			return refuse("exists", "the file to add already exists; update it, or delete it first")
		}
		c.after = []byte(s.add)
		p.say("Added %s.", c)
		return nil
	}
	if err := p.read(c); err != nil {
		return err
	}
	if s.verb == "delete" {
		c.remove = true
		p.say("Deleted %s.", c)
		return nil
	}
	return p.update(s, c)
}

// update plans the update of a file, and its move.
// A move is a removal and a new file with the same mode. It never replaces an existing file.
func (p *plan) update(s section, c *change) error {
	text, err := amend(string(c.before), s.hunks)
	if err != nil {
		return err
	}
	if len(text) > maxFile {
		return refuse("too_large", "the file would grow beyond %d bytes", maxFile)
	}
	if s.moved == "" {
		c.after = []byte(text)
		p.say("Updated %s.", c)
		return nil
	}
	to, err := p.at(s.moved)
	if err != nil {
		return fmt.Errorf("move to %s: %w", s.moved, err)
	}
	if to.exists() {
		return refuse("exists", "cannot move to %s: the file already exists", s.moved)
	}
	to.after, to.mode = []byte(text), c.mode
	c.remove = true
	p.said = append(p.said, fmt.Sprintf("Moved %s to %s.", c.at.path(), to.at.path()))
	return nil
}

// amend applies the blocks of an update to a text, in order. Each block is searched after
// the previous one. Kept lines are copied from the file and not from the patch, so loose
// comparison does not change their white space. New lines get the line ends of the file.
// A text that ended with a newline still does, unless it becomes empty.
func amend(text string, blocks []block) (string, error) {
	eol := ""
	if crlf(text) {
		eol = "\r"
	}
	have := strings.Split(text, "\n")
	final := have[len(have)-1] == "" // the text ends with a newline, or is empty
	if final {
		have = have[:len(have)-1]
	}
	var out []string
	at := 0
	for _, b := range blocks {
		found, err := b.locate(have, at)
		if err != nil {
			return "", err
		}
		out = append(out, have[at:found]...)
		at = found
		for _, p := range b.parts {
			switch p.mark {
			case '+':
				out = append(out, p.text+eol)
			case ' ':
				out = append(out, have[at])
				at++
			case '-':
				at++
			}
		}
	}
	out = append(out, have[at:]...)
	if len(out) == 0 {
		return "", nil
	}
	joined := strings.Join(out, "\n")
	if final {
		joined += "\n"
	}
	return joined, nil
}

// looseness are the ways to compare lines, strictest first.
var looseness = []func(string) string{
	func(s string) string { return strings.TrimSuffix(s, "\r") },
	func(s string) string { return strings.TrimRight(s, " \t\r") },
	strings.TrimSpace,
}

// locate returns the index of the line in have, from or later, at which the block starts.
//
// Anchors are searched in order, each after the previous one. Then the lines to keep and
// remove must occur after the last anchor. Without anchors the place must be unique; with
// them the first match is used. A block without such lines is inserted after its anchors,
// or at the end of the file.
func (b block) locate(have []string, from int) (int, error) {
	for _, anchor := range b.anchors {
		at := seek(have[from:], []string{anchor})
		if len(at) == 0 {
			return 0, refuse("no_match", "line %d of the patch: the anchor %q is not in the file after line %d", b.line, anchor, from)
		}
		from += at[0] - 1
		// The anchor may be repeated as the first line of context.
		if old := b.old(); len(old) == 0 || strings.TrimSpace(old[0]) != strings.TrimSpace(anchor) {
			from++
		}
	}
	old := b.old()
	if len(old) == 0 {
		if len(b.anchors) > 0 && !b.end {
			return from, nil
		}
		return len(have), nil
	}
	found := seek(have[from:], old)
	if b.end {
		found = keepLast(found, len(have)-from-len(old)+1)
	}
	switch {
	case len(found) == 0:
		miss := nearMiss(strings.Join(have, "\n"), strings.Join(old, "\n"))
		return 0, refuse("no_match", "line %d of the patch: these lines are not in the file after line %d; %s", b.line, from, miss)
	case len(found) > 1 && len(b.anchors) == 0:
		for i := range found {
			found[i] += from
		}
		return 0, refuse("ambiguous_match", "line %d of the patch: these lines occur %s, at lines %s; include more lines around the change, or an @@ line before it",
			b.line, times(len(found)), enumerate(found))
	}
	return from + found[0] - 1, nil
}

// seek returns the line numbers, from 1, at which want occurs, using the strictest
// comparison that finds a match.
// Comparisons are not mixed: all lines of want match in the same way.
func seek(have, want []string) []int {
	for _, norm := range looseness {
		if at := find(have, want, norm); len(at) > 0 {
			return at
		}
	}
	return nil
}

// keepLast returns only the last match if it is at line last, else none.
func keepLast(found []int, last int) []int {
	if n := len(found); n > 0 && found[n-1] == last {
		return found[n-1:]
	}
	return nil
}
