package command

import (
	"encoding/json"
	"strings"
)

// section is the change of one file in a patch, in the format of lashd's patch tool.
type section struct {
	path     string
	added    bool
	old, new string // removed and added lines
}

// sections returns the files of a patch. It returns none for text that is no patch; the patch tool
// reports that later. It does not check that the patch applies.
func (c call) sections() ([]section, error) {
	var args struct{ Patch string }
	if err := json.Unmarshal(c.args, &args); err != nil {
		return nil, err
	}
	var all []section
	for line := range strings.Lines(args.Patch) {
		line = strings.TrimRight(line, "\r\n")
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, ok := strings.CutPrefix(line, head); ok {
				all = append(all, section{path: c.at(strings.TrimSpace(path)), added: head == "*** Add File: "})
			}
		}
		if len(all) > 0 && line != "" {
			all[len(all)-1].take(line)
		}
	}
	return all, nil
}

// take adds one line of the patch.
func (s *section) take(line string) {
	switch line[0] {
	case '+':
		s.new += line[1:] + "\n"
	case '-':
		s.old += line[1:] + "\n"
	}
}

// patchAsEdits presents a patch as one call for each file: Write for a new file, otherwise Edit
// with the removed and added lines. A hook cannot change such a call.
func patchAsEdits(c call) (all format, err error) {
	sections, err := c.sections()
	for _, s := range sections {
		var w format
		if s.added {
			w, err = one("Write", edited{Path: s.path, Content: s.new})
		} else {
			w, err = one("Edit", edited{Path: s.path, replaced: &replaced{Old: s.old, New: s.new}})
		}
		if err != nil {
			return nil, err
		}
		all = append(all, w.of(s.path)...)
	}
	return all, err
}

// of notes the file that a call of a format is about.
func (f format) of(path string) format {
	f[0].path = path
	return f
}

// patchAsMultiEdits presents a patch as one MultiEdit call for each existing file. It skips new
// files, which MultiEdit cannot create.
func patchAsMultiEdits(c call) (all format, err error) {
	sections, err := c.sections()
	for _, s := range sections {
		if s.added {
			continue
		}
		w, err := one("MultiEdit", edited{Path: s.path, Edits: []replaced{{Old: s.old, New: s.new}}})
		if err != nil {
			return nil, err
		}
		all = append(all, w.of(s.path)...)
	}
	return all, err
}
