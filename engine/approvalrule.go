package engine

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

// subjects are what a call is about, as rules with a prefix see it.
type subjects struct {
	cwd   string
	entry *tool.Entry
	args  json.RawMessage
	rules string          // the directory that rules are relative to; empty: that of the call
	all   []parsedSubject // nil until a rule with a prefix asks
}

type parsedSubject struct {
	tool.Subject
	line commandrule.Line // of a command
}

func (s *subjects) list() []parsedSubject {
	if s.all == nil {
		s.all = []parsedSubject{}
		for _, about := range s.entry.Subjects(s.args) {
			next := parsedSubject{Subject: about}
			if about.Command != "" {
				next.line = commandrule.Parse(about.Command)
			}
			s.all = append(s.all, next)
		}
	}
	return s.all
}

// places are what a path may mean, from a directory of the workspace on; an empty one is that of rules.
func (s *subjects) places(dir, name string) pathresolve.Places {
	if dir == "" {
		dir = s.rules
	}
	if dir != "" && !filepath.IsAbs(name) {
		name = dir + string(filepath.Separator) + name
	}
	return pathresolve.Of(s.cwd, name)
}

// dir is where a subject is, as places wants it.
func (s *subjects) dir(dir string) string {
	if s.rules == "" {
		return dir
	}
	return cmp.Or(dir, s.cwd)
}

// action is what a rule says about the call; empty: it is not about it. One with a prefix that allows must be about all that the call is
// about; one that asks or denies, about any of it. One that denies asks where nobody can tell what a command runs: a person can.
func (s *subjects) action(r protocol.ApprovalRule) protocol.ApprovalMode {
	switch {
	case !ruleNames(r, s.entry.Manifest):
		return ""
	case r.Prefix == "":
		return r.Action
	case r.Action == protocol.ApproveAllow:
		if all := s.list(); len(all) > 0 && !slices.ContainsFunc(all, func(about parsedSubject) bool { return !s.allows(r.Prefix, about) }) {
			return r.Action
		}
		return ""
	}
	found := commandrule.No
	for _, about := range s.list() {
		found = max(found, s.stops(r.Prefix, about))
	}
	return map[commandrule.Match]protocol.ApprovalMode{commandrule.Maybe: protocol.ApproveAsk, commandrule.Yes: r.Action}[found]
}

// allows tells whether all of a subject has the prefix of a rule. A tool may give a path to a shell: one that a shell would take apart
// has not.
func (s *subjects) allows(prefix string, about parsedSubject) bool {
	if about.Command != "" {
		return about.line.Covers(commandrule.ParsePrefix(prefix), s.dir(about.Dir), s.places)
	}
	return !strings.ContainsAny(about.Path, ";&|<>`$()\n\\") && s.places(s.dir(""), about.Path).In(s.places("", prefix))
}

// stops tells whether anything of a subject has the prefix of a rule.
func (s *subjects) stops(prefix string, about parsedSubject) commandrule.Match {
	if about.Command != "" {
		return about.line.About(commandrule.ParsePrefix(prefix), s.dir(about.Dir), s.places)
	}
	at, rule := s.places(s.dir(""), about.Path), s.places("", prefix)
	if at.MayBeIn(rule) || about.Below && at.MayHold(rule, about.Skips) {
		return commandrule.Yes
	}
	return commandrule.No
}
