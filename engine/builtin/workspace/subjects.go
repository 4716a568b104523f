package workspace

import (
	"encoding/json"

	"lashd/engine/tool"
)

// Subjects implements tool.Subjecter: it returns the paths that approval rules check. A
// patch has all files that it names. grep has everything below its directory except .git,
// because it reads all of it.
// Arguments that cannot be decoded have no subjects; such a call fails later.
func (f *files) Subjects(name string, args json.RawMessage) []tool.Subject {
	var a struct {
		Path  string `json:"path"`
		Patch string `json:"patch"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil
	}
	switch name {
	case "patch":
		return patched(a.Patch)
	case "grep":
		return []tool.Subject{{Path: a.Path, Below: true, Skips: ".git"}}
	}
	return []tool.Subject{{Path: a.Path}}
}

// patched returns the files of a patch, including the new names of moved files.
// An invalid patch has none, because it changes no file.
func patched(text string) (all []tool.Subject) {
	sections, err := parsePatch(text)
	if err != nil {
		return nil
	}
	for _, s := range sections {
		all = append(all, tool.Subject{Path: s.path})
		if s.moved != "" {
			all = append(all, tool.Subject{Path: s.moved})
		}
	}
	return all
}
