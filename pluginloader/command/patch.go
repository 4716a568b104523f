package command

import (
	"encoding/json"
	"strings"
)

// section is what a patch does to a file.
type section struct {
	path     string
	added    bool
	old, new string // the lines that go, and those that come
}

// sections are the files of a patch. What is no patch has none.
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

func (s *section) take(line string) {
	switch line[0] {
	case '+':
		s.new += line[1:] + "\n"
	case '-':
		s.old += line[1:] + "\n"
	}
}

func patchAsEdits(c call) (all tongue, err error) {
	sections, err := c.sections()
	for _, s := range sections {
		var w tongue
		if s.added {
			w, err = one("Write", edited{Path: s.path, Content: s.new})
		} else {
			w, err = one("Edit", edited{Path: s.path, replaced: &replaced{Old: s.old, New: s.new}})
		}
		if err != nil {
			return nil, err
		}
		all = append(all, w...)
	}
	return all, err
}

func patchAsMultiEdits(c call) (all tongue, err error) {
	sections, err := c.sections()
	for _, s := range sections {
		if s.added {
			continue
		}
		w, err := one("MultiEdit", edited{Path: s.path, Edits: []replaced{{Old: s.old, New: s.new}}})
		if err != nil {
			return nil, err
		}
		all = append(all, w...)
	}
	return all, err
}
