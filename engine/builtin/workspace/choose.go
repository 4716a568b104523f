package workspace

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"lashd/engine/tool"
)

// errIndivisible means that the tool has no arguments that make the chosen changes and no others.
var errIndivisible = refuse("indivisible", "these hunks cannot be applied without the others; allow the whole call, or change its arguments")

// Choose implements tool.Previewer. Files without a chosen hunk stay as they are.
func (f *files) Choose(ctx context.Context, call tool.Invocation, hunks []int) (json.RawMessage, error) {
	if plannerOf(call) == nil {
		return nil, tool.ErrNoPreview
	}
	return planned(ctx, f, call, func(p *plan) (json.RawMessage, error) {
		all, err := p.choices(hunks)
		if err != nil {
			return nil, err
		}
		switch call.Name {
		case "write":
			return chosenWrite(call.Args, all[0])
		case "edit":
			return chosenEdit(call.Args, all[0])
		}
		return chosenPatch(call.Args, all)
	})
}

// choice is a planned change of which a person takes some hunks.
type choice struct {
	*change
	a, b  []string // lines of the old and new content
	hunks [][]span
	taken [][]span // some of hunks, in order
}

// choices assigns indexes over all hunks to the changes of the plan. It fails if a file has changed since it was shown.
func (p *plan) choices(hunks []int) ([]*choice, error) {
	var all []*choice
	n := 0
	for _, c := range p.changes {
		if err := p.view.asShown(c); err != nil {
			return nil, err
		}
		next := &choice{change: c}
		next.a, next.b, next.hunks = c.hunks()
		for _, h := range next.hunks {
			if slices.Contains(hunks, n) {
				next.taken = append(next.taken, h)
			}
			n++
		}
		all = append(all, next)
	}
	if n == 0 || slices.Max(hunks) >= n {
		return nil, refuse("invalid_arguments", "there are only %d hunks", n)
	}
	return all, nil
}

// content returns the lines from..to of the old content with the taken hunks applied.
func (c *choice) content(from, to int) string {
	var out strings.Builder
	at := from
	for _, s := range slices.Concat(c.taken...) {
		if s.a0 < from || s.a1 > to {
			continue
		}
		out.WriteString(strings.Join(c.a[at:s.a0], ""))
		out.WriteString(strings.Join(c.b[s.b0:s.b1], ""))
		at = s.a1
	}
	out.WriteString(strings.Join(c.a[at:to], ""))
	return out.String()
}

// whole returns the whole content with the taken hunks.
func (c *choice) whole() string { return c.content(0, len(c.a)) }

// around returns the lines of the old content that spans change, with n lines around them.
func (c *choice) around(spans []span, n int) (from, to int) {
	return max(0, spans[0].a0-n), min(len(c.a), spans[len(spans)-1].a1+n)
}

// contexts are the numbers of lines around a change that are tried, until the text occurs once in the file.
var contexts = []int{diffContext, 20, maxFile}

// chosenWrite returns arguments of write that set the content with the taken hunks.
func chosenWrite(args json.RawMessage, c *choice) (json.RawMessage, error) {
	var a writeArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	a.Content = c.whole()
	return json.Marshal(a)
}

// chosenEdit returns arguments of edit that replace the region of all taken hunks. The region grows until its text occurs once.
func chosenEdit(args json.RawMessage, c *choice) (json.RawMessage, error) {
	var a editArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	for _, n := range contexts {
		from, to := c.around(slices.Concat(c.taken...), n)
		next := editArgs{Path: a.Path, Old: strings.Join(c.a[from:to], ""), New: c.content(from, to)}
		if got, _, err := replace(string(c.before), next); err == nil && got == c.whole() {
			return json.Marshal(next)
		}
	}
	return nil, errIndivisible
}

// chosenPatch returns a patch with the sections of which all hunks are taken, and those parts of updates that are taken.
func chosenPatch(args json.RawMessage, all []*choice) (json.RawMessage, error) {
	var a patchArgs
	if err := decode(args, &a); err != nil {
		return nil, err
	}
	sections, err := parsePatch(a.Patch)
	if err != nil {
		return nil, err
	}
	parts := []string{begin}
	for i, s := range sections {
		text, err := chosenSection(s, slices.DeleteFunc(slices.Clone(all), func(c *choice) bool { return c.section != i }))
		if err != nil {
			return nil, err
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return json.Marshal(patchArgs{Patch: strings.Join(append(parts, end), "\n")})
}

// chosenSection returns the taken part of a section, which makes one change, or two if it moves a file; empty if nothing is taken.
func chosenSection(s section, makes []*choice) (string, error) {
	taken, hunks := 0, 0
	for _, c := range makes {
		taken += len(c.taken)
		hunks += len(c.hunks)
	}
	switch {
	case taken == 0:
		return "", nil
	case taken == hunks:
		return s.text, nil
	case len(makes) > 1:
		return "", refuse("indivisible", "take all hunks of %s and %s or none: they move the file", s.path, s.moved)
	}
	return chosenUpdate(s, makes[0])
}

// chosenUpdate returns a section that updates a file by the taken hunks, with as much context as is necessary to find their places.
func chosenUpdate(s section, c *choice) (string, error) {
	for _, n := range contexts {
		var out strings.Builder
		out.WriteString(headers[1].prefix + s.path)
		if n < len(c.a) {
			for _, spans := range c.taken {
				c.block(&out, spans, n)
			}
		} else {
			c.block(&out, slices.Concat(c.taken...), n)
		}
		made, err := parsePatch(begin + "\n" + out.String() + "\n" + end)
		if err != nil {
			return "", err
		}
		if got, err := amend(string(c.before), made[0].hunks); err == nil && got == c.whole() {
			return out.String(), nil
		}
	}
	return "", errIndivisible
}

// block writes a block of an update with n lines around its change.
func (c *choice) block(out *strings.Builder, spans []span, n int) {
	write := func(mark string, lines []string) {
		for _, line := range lines {
			out.WriteString("\n" + mark + strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		}
	}
	from, to := c.around(spans, n)
	out.WriteString("\n@@")
	for _, s := range spans {
		write(" ", c.a[from:s.a0])
		write("-", c.a[s.a0:s.a1])
		write("+", c.b[s.b0:s.b1])
		from = s.a1
	}
	write(" ", c.a[from:to])
}
