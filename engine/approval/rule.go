package approval

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"lashd/engine/commandrule"
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
	rules string // directory that relative rule prefixes start from; empty: cwd
	all   []parsedSubject
}

// SubjectsOf returns the subjects of a call in the workspace cwd. It resolves symbolic links, which reads the file
// system.
func SubjectsOf(cwd string, e *tool.Entry, args json.RawMessage) *Subjects {
	s := &Subjects{cwd: cwd, entry: e, args: args}
	for _, about := range e.Subjects(args) {
		next := parsedSubject{Subject: about}
		if about.Command != "" {
			next.line, next.at = commandrule.Parse(about.Command), pathresolve.Of(cwd, about.Dir)
		} else {
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
}

// Places returns where the paths of the call lead, and the directories that it names for commands. An entry is empty if
// the path cannot be resolved.
func (s *Subjects) Places() []string {
	var all []string
	for _, about := range s.all {
		switch n := len(about.at); {
		case about.Command != "" && about.Dir == "": // the workspace
		case n == 0:
			all = append(all, "")
		default:
			all = append(all, about.at[n-1])
		}
	}
	return all
}

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

// action returns what a rule demands for the call; "" if it does not apply. A rule with a prefix that allows must cover
// everything the call acts on. A rule that asks or denies applies if it covers any part. If it is unclear whether a
// command runs something denied, the result is ask: a person can tell.
func (s *Subjects) action(r protocol.ApprovalRule) protocol.ApprovalMode {
	switch {
	case !ruleNames(r, s.entry.Manifest):
		return ""
	case r.Prefix == "":
		return r.Action
	case r.Action == protocol.ApproveAllow:
		if len(s.all) > 0 && !slices.ContainsFunc(s.all, func(about parsedSubject) bool { return !s.allows(r.Prefix, about) }) {
			return r.Action
		}
		return ""
	}
	found := commandrule.No
	for _, about := range s.all {
		found = max(found, s.stops(r.Prefix, about))
	}
	return map[commandrule.Match]protocol.ApprovalMode{commandrule.Maybe: protocol.ApproveAsk, commandrule.Yes: r.Action}[found]
}

// allows reports whether all of a subject is under the prefix of a rule. A path with characters that a shell would
// interpret never is, because a tool may pass it to a shell.
func (s *Subjects) allows(prefix string, about parsedSubject) bool {
	if about.Command != "" {
		return about.line.Covers(commandrule.ParsePrefix(prefix), s.dir(about.Dir), s.resolve)
	}
	return !strings.ContainsAny(about.Path, ";&|<>`$()\n\\") && about.at.In(s.resolve("", prefix))
}

// stops reports whether any part of a subject is under the prefix of a rule.
func (s *Subjects) stops(prefix string, about parsedSubject) commandrule.Match {
	if about.Command != "" {
		return about.line.About(commandrule.ParsePrefix(prefix), s.dir(about.Dir), s.resolve)
	}
	rule := s.resolve("", prefix)
	if about.at.MayBeIn(rule) || about.Below && about.at.MayHold(rule, about.Skips) {
		return commandrule.Yes
	}
	return commandrule.No
}

// inside reports whether the call names paths and all of them lead into a directory.
func (s *Subjects) inside(dir string) bool {
	root := pathresolve.Of("", dir)
	return len(s.all) > 0 && !slices.ContainsFunc(s.all, func(about parsedSubject) bool { return about.Command != "" || !about.at.In(root) })
}

// kind returns the kind that the tool declares.
func (s *Subjects) kind() protocol.ToolKind { return s.entry.Manifest.Kind }

// changesProtected reports whether a tool of a kind may change a protected file: it does not only read, and a path of
// the call leads to one.
func (s *Subjects) changesProtected(kind protocol.ToolKind) bool {
	return !Reads(kind) && slices.ContainsFunc(s.all, func(about parsedSubject) bool { return about.Command == "" && protected(about.at) })
}
