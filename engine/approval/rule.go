package approval

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"

	"lashd/engine/commandrule"
	"lashd/engine/hostrule"
	"lashd/engine/tool"
	"lashd/internal/pathresolve"
	"lashd/rpc/protocol"
)

// Subjects are the commands and paths that a call acts on, parsed and resolved once, so that every decision about the
// call sees the same places. Immutable and safe for concurrent use.
type Subjects struct {
	cwd   string // the workspace
	entry *tool.Entry
	args  json.RawMessage
	rules string // directory that relative paths of rules start from; empty: cwd
	all   []parsedSubject
}

// SubjectsOf returns the subjects of a call in the workspace cwd. It resolves symbolic links, which reads the file
// system.
func SubjectsOf(cwd string, e *tool.Entry, args json.RawMessage) *Subjects {
	s := &Subjects{cwd: cwd, entry: e, args: args}
	for _, about := range e.Subjects(args) {
		next := parsedSubject{Subject: about}
		switch {
		case about.Command != "":
			next.line, next.at = commandrule.Parse(about.Command), pathresolve.Of(cwd, about.Dir)
		case about.Host != "":
			next.host = namedHost(about.Host)
		default:
			next.at = pathresolve.Of(cwd, about.Path)
		}
		s.all = append(s.all, next)
	}
	return s
}

// parsedSubject is a subject with its parsed command or resolved path.
type parsedSubject struct {
	tool.Subject
	line commandrule.Line   // of a command
	at   pathresolve.Places // of the path, or of the command's directory
	host hostrule.Pattern
}

// namedHost parses a host that a call names. Without a port it opens all ports that a pattern without one allows, so it is judged for all
// of them. The result is the zero Pattern if the text is not one host.
func namedHost(text string) hostrule.Pattern {
	if _, err := hostrule.Host(text, 443); err != nil { // any port
		return hostrule.Pattern{}
	}
	p, _ := hostrule.Parse(text) // Host parses it, too
	return p
}

// Places returns where the paths of the call lead, and the directories that it names for commands. An entry is empty if
// the path cannot be resolved.
func (s *Subjects) Places() []string {
	var all []string
	for _, about := range s.all {
		switch n := len(about.at); {
		case about.Host != "", about.Command != "" && about.Dir == "": // the workspace
		case n == 0:
			all = append(all, "")
		default:
			all = append(all, about.at[n-1])
		}
	}
	return all
}

// Only returns the subjects without those about other files. If none is about the file, an absolute path, or it is empty, all stay.
func (s *Subjects) Only(file string) *Subjects {
	view := *s
	view.all = slices.DeleteFunc(slices.Clone(s.all), func(about parsedSubject) bool { return s.absolute(about.Path) != file })
	if file == "" || len(view.all) == 0 {
		return s
	}
	return &view
}

// absolute returns a path that may be relative to the workspace; empty for none.
func (s *Subjects) absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(s.cwd, path)
}

// Empty reports whether nothing is known of what the call acts on.
func (s *Subjects) Empty() bool { return len(s.all) == 0 }

// answer returns the key under which a standing answer about this call would be stored.
func (s *Subjects) answer() Answer {
	return answerAbout(s.entry.Manifest.Name, s.args, s.entry.Terms().Varying, s.Places())
}

// ruledFrom returns the subjects for rules that are relative to another directory.
func (s *Subjects) ruledFrom(dir string) *Subjects {
	view := *s
	view.rules = dir
	return &view
}

// resolve returns the places that a name may mean, relative to dir; with an empty dir, relative to the directory of the
// rules.
func (s *Subjects) resolve(dir, name string) pathresolve.Places {
	if dir == "" {
		dir = s.rules
	}
	if dir != "" && !filepath.IsAbs(name) {
		name = dir + string(filepath.Separator) + name
	}
	return pathresolve.Of(s.cwd, name)
}

// dir returns the directory of a subject for resolve.
func (s *Subjects) dir(dir string) string { return cmp.Or(dir, s.cwd) }

// hosts returns the hosts that the call wants to reach. A host that cannot be parsed is the zero Pattern, which no rule allows.
func (s *Subjects) hosts() (all []hostrule.Pattern) {
	for _, about := range s.all {
		if about.Host != "" {
			all = append(all, about.host)
		}
	}
	return all
}

// inside reports whether the call names paths and all of them lead into a directory.
func (s *Subjects) inside(dir string) bool {
	root := pathresolve.Of("", dir)
	return len(s.all) > 0 && !slices.ContainsFunc(s.all, func(about parsedSubject) bool { return about.Command != "" || about.Host != "" || !about.at.In(root) })
}

// kind returns the kind that the tool declares.
func (s *Subjects) kind() protocol.ToolKind { return s.entry.Manifest.Kind }

// changesProtected reports whether a tool of a kind may change a protected file: it does not only read, and a path of
// the call leads to one.
func (s *Subjects) changesProtected(kind protocol.ToolKind) bool {
	return !Reads(kind) && slices.ContainsFunc(s.all, func(about parsedSubject) bool {
		return about.Command == "" && about.Host == "" && (protected(about.at) || inLinkedPlugin(about.at, s.cwd))
	})
}
