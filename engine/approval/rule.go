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

// Subjects are what a call is about, as rules with a prefix see it.
type Subjects struct {
	cwd   string
	entry *tool.Entry
	args  json.RawMessage
	rules string // the directory that rules are relative to; empty: that of the call
	all   []parsedSubject
}

// SubjectsOf are those of a call. They look at each path once, so that all that is decided about the call is about the same places.
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

type parsedSubject struct {
	tool.Subject
	line commandrule.Line   // of a command
	at   pathresolve.Places // of the path, or of the directory of a command
}

// Places are where the paths of the call lead, and the directories that it names for commands; empty where nobody can tell.
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

// answer is what an answer about the call would hold for.
func (s *Subjects) answer() Answer {
	return answerAbout(s.entry.Manifest.Name, s.args, s.entry.Terms().Varying, s.Places())
}

// ruledFrom are the subjects as rules see them that are relative to a directory.
func (s *Subjects) ruledFrom(dir string) *Subjects {
	view := *s
	view.rules = dir
	return &view
}

// resolve is what a path may mean, from a directory of the workspace on; an empty one is that of rules.
func (s *Subjects) resolve(dir, name string) pathresolve.Places {
	if dir == "" {
		dir = s.rules
	}
	if dir != "" && !filepath.IsAbs(name) {
		name = dir + string(filepath.Separator) + name
	}
	return pathresolve.Of(s.cwd, name)
}

// dir is where a subject is, as resolve wants it.
func (s *Subjects) dir(dir string) string { return cmp.Or(dir, s.cwd) }

// action is what a rule says about the call; empty: it is not about it. One with a prefix that allows must be about all that the call is
// about; one that asks or denies, about any of it. One that denies asks where nobody can tell what a command runs: a person can.
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

// allows tells whether all of a subject has the prefix of a rule. A tool may give a path to a shell: one that a shell would take apart
// has not.
func (s *Subjects) allows(prefix string, about parsedSubject) bool {
	if about.Command != "" {
		return about.line.Covers(commandrule.ParsePrefix(prefix), s.dir(about.Dir), s.resolve)
	}
	return !strings.ContainsAny(about.Path, ";&|<>`$()\n\\") && about.at.In(s.resolve("", prefix))
}

// stops tells whether anything of a subject has the prefix of a rule.
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

// kind is the kind that the tool says it is of.
func (s *Subjects) kind() protocol.ToolKind { return s.entry.Manifest.Kind }

// changesProtected tells whether a tool of a kind may change a protected file: it is about one, and not only reads.
func (s *Subjects) changesProtected(kind protocol.ToolKind) bool {
	return !Reads(kind) && slices.ContainsFunc(s.all, func(about parsedSubject) bool { return about.Command == "" && protected(about.at) })
}
