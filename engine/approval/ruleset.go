package approval

import (
	"path/filepath"
	"slices"
	"strings"

	"lashd/engine/commandrule"
	"lashd/engine/hostrule"
	"lashd/rpc/protocol"
)

// Rules are approval rules of one level that apply in one directory, parsed and indexed once, so that a decision compares a call
// only with rules that can match it. Immutable and safe for concurrent use. Nil has no rules.
type Rules struct {
	all   []*rule
	whole []*rule // rules about every call of a tool
	// commands has rules by the name of their program, in lower case. paths has rules by a name that each matching path has, in
	// lower case; byWalk are those without such a name.
	commands, paths map[string][]*rule
	programs        []*rule // rules whose program is a path
	byWalk          []*rule
	hosts           []*rule
	byHost          map[string][]*rule // hosts by their keys; "": those that cannot be parsed
	dir             string             // as of Compile
}

// rule is a parsed rule.
type rule struct {
	protocol.ApprovalRule
	level protocol.RuleLevel
	owner string // whose rule it is, in a sentence
	order int    // in Rules.all

	command commandrule.Prefix
	path    pathPattern
	host    hostrule.Pattern
	// broken means that the limit cannot be parsed: a rule that allows then matches nothing, any other may match everything.
	broken bool
}

// Compile parses rules of a level. dir is where relative paths begin. owner completes the sentence "The rule … of OWNER decides".
// It resolves the paths of the rules, which reads the file system; links that change later are seen by Current and the next Compile.
func Compile(dir string, level protocol.RuleLevel, owner string, rules []protocol.ApprovalRule) *Rules {
	if len(rules) == 0 {
		return nil
	}
	rs := &Rules{commands: map[string][]*rule{}, paths: map[string][]*rule{}, byHost: map[string][]*rule{}, dir: dir}
	for i, r := range rules {
		rs.add(dir, &rule{ApprovalRule: r, level: level, owner: owner, order: i})
	}
	return rs
}

// Current reports whether the paths of the rules still lead where they led. It reads the file system.
func (rs *Rules) Current() bool {
	return rs == nil || !slices.ContainsFunc(rs.all, func(r *rule) bool { return r.Path != "" && !r.path.current(rs.dir) })
}

// add parses and indexes a rule.
func (rs *Rules) add(dir string, r *rule) {
	rs.all = append(rs.all, r)
	switch {
	case r.Command != "":
		r.command = commandrule.ParsePrefix(r.Command)
		program, isPath := r.command.Program()
		rs.commands[program] = append(rs.commands[program], r)
		if isPath {
			rs.programs = append(rs.programs, r)
		}
	case r.Path != "":
		r.path, r.broken = parsePath(dir, r.Path)
		keys := r.path.keys()
		for _, key := range keys {
			rs.paths[key] = append(rs.paths[key], r)
		}
		if len(keys) == 0 || r.broken {
			rs.byWalk = append(rs.byWalk, r)
		}
	case r.Host != "":
		var err error
		r.host, err = hostrule.Parse(r.Host)
		r.broken = err != nil
		rs.hosts = append(rs.hosts, r)
		rs.byHost[r.host.Key()] = append(rs.byHost[r.host.Key()], r)
	default:
		rs.whole = append(rs.whole, r)
	}
}

// candidates returns the rules that can match a call, in their order and without those about hosts.
func (rs *Rules) candidates(about *Subjects) []*rule {
	found := slices.Clone(rs.whole)
	for i := range about.all {
		found = append(found, rs.candidatesFor(about, &about.all[i])...)
	}
	slices.SortFunc(found, func(a, b *rule) int { return a.order - b.order })
	return slices.Compact(found)
}

// candidatesFor returns the rules that can match a subject of a call. A rule may occur more than once.
func (rs *Rules) candidatesFor(about *Subjects, subject *parsedSubject) (found []*rule) {
	switch {
	case subject.Host != "":
		return nil
	case subject.Command != "" && len(rs.commands) > 0:
		programs := subject.line.Programs(about.dir(subject.Dir), about.resolve)
		if programs.Any {
			return rs.limited(func(r *rule) bool { return r.Command != "" })
		}
		for name := range programs.Names {
			found = append(found, rs.commands[name]...)
		}
		found = append(found, rs.commands[""]...) // of rules that are not the beginning of a command
		if programs.Paths {
			found = append(found, rs.programs...)
		}
	case subject.Command == "" && (subject.Below || len(subject.at) == 0):
		return rs.limited(func(r *rule) bool { return r.Path != "" })
	case subject.Command == "" && len(rs.paths)+len(rs.byWalk) > 0:
		found = append(found, rs.byWalk...)
		for _, place := range subject.at {
			for name := range strings.SplitSeq(strings.ToLower(place), string(filepath.Separator)) {
				found = append(found, rs.paths[name]...)
			}
		}
	}
	return found
}

// limited returns the rules of a kind.
func (rs *Rules) limited(is func(*rule) bool) []*rule {
	return slices.DeleteFunc(slices.Clone(rs.all), func(r *rule) bool { return !is(r) })
}

// names reports whether a rule applies to a tool. A rule that asks or denies also applies to tools that declare themselves like the
// named one. A rule that allows applies only by name, and without a name only to tools that ship with lashd: others may have an
// argument of that name and do anything with it.
func (r *rule) names(m protocol.ToolManifest, ships bool) bool {
	if r.Tool == "" {
		return ships || r.Action != protocol.ApproveAllow
	}
	return ruleNames(r.ApprovalRule, m)
}

// action returns what the rule demands for the call; "" if it does not apply. sure means that it applies, and not only may apply. A
// limited rule that allows must cover all commands and paths of the call. A rule that asks or denies applies if it covers any part. If it
// is unclear whether it covers something, the result is ask: a person can tell.
func (r *rule) action(s *Subjects, ships bool) (mode protocol.ApprovalMode, sure bool) {
	switch {
	case !r.names(s.entry.Manifest, ships):
		return "", false
	case !r.Limited():
		return r.Action, true
	case r.Action == protocol.ApproveAllow:
		covered := 0
		for i := range s.all {
			switch about := &s.all[i]; {
			case about.Host != "":
			case r.broken || !r.allows(s, about):
				return "", false
			default:
				covered++
			}
		}
		if covered == 0 {
			return "", false
		}
		return r.Action, true
	}
	found := commandrule.No
	for i := range s.all {
		found = max(found, r.stops(s, &s.all[i]))
	}
	return r.demand(found)
}

// demand returns what a rule that asks or denies demands, by how sure it matches.
func (r *rule) demand(found commandrule.Match) (mode protocol.ApprovalMode, sure bool) {
	switch found {
	case commandrule.Yes:
		return r.Action, true
	case commandrule.Maybe:
		return protocol.ApproveAsk, false
	}
	return "", false
}

// allows reports whether all of a subject is what the rule names. A path with characters that a shell would interpret never is,
// because a tool may pass it to a shell.
func (r *rule) allows(s *Subjects, about *parsedSubject) bool {
	if about.Command != "" {
		return r.Command != "" && about.line.Covers(r.command, s.dir(about.Dir), s.resolve)
	}
	return r.Path != "" && !strings.ContainsAny(about.Path, ";&|<>`$()\n\\") && r.path.covers(about.at)
}

// stops returns whether any part of a subject is what the rule names.
func (r *rule) stops(s *Subjects, about *parsedSubject) commandrule.Match {
	switch {
	case about.Command != "" && r.Command != "":
		return about.line.About(r.command, s.dir(about.Dir), s.resolve)
	case about.Command != "" || about.Host != "" || r.Path == "":
		return commandrule.No
	case r.broken:
		return commandrule.Maybe
	case r.path.touches(about.at):
		return commandrule.Yes
	case about.Below:
		return r.path.below(about.at, about.Skips)
	}
	return commandrule.No
}

// decide returns the strictest demand of the rules for a call, without its hosts. sure means that a rule applies, and not only may
// apply.
func (rs *Rules) decide(about *Subjects, ships bool) (found finding, sure bool) {
	if rs == nil {
		return found, false
	}
	for _, r := range rs.candidates(about) {
		action, applies := r.action(about, ships)
		sure = sure || applies
		found = stricter(found, finding{mode: action, rule: r})
	}
	return found, sure
}

// decideHost returns the strictest demand of the rules for a host of a call.
func (rs *Rules) decideHost(about *Subjects, h hostrule.Pattern, ships bool) (found finding) {
	if rs == nil {
		return found
	}
	for _, r := range rs.candidatesForHost(h) {
		if r.names(about.entry.Manifest, ships) && r.decidesHost(h) {
			found = stricter(found, finding{mode: r.Action, rule: r})
		}
	}
	return found
}

// candidatesForHost returns the rules that can match a host of a call, in their order.
func (rs *Rules) candidatesForHost(h hostrule.Pattern) []*rule {
	found := slices.Clone(rs.byHost[""])
	for _, key := range h.Keys() {
		found = append(found, rs.byHost[key]...)
	}
	slices.SortFunc(found, func(a, b *rule) int { return a.order - b.order })
	return found
}

// decidesHost reports whether the rule decides about a host of a call. A denial of one of its ports does not: the proxy refuses that port,
// and the call can use the others.
func (r *rule) decidesHost(h hostrule.Pattern) bool {
	switch r.Action {
	case protocol.ApproveAllow:
		return !r.broken && r.host.AllowsAll(h)
	case protocol.ApproveDeny:
		return r.broken || r.host.ConcernsAll(h)
	}
	return r.broken || r.host.Concerns(h)
}

// coversTool returns the rule that allows every call of the tool; nil if none does.
func (rs *Rules) coversTool(about *Subjects, ships bool) *rule {
	if rs != nil {
		for _, r := range rs.whole {
			if r.Action == protocol.ApproveAllow && r.names(about.entry.Manifest, ships) {
				return r
			}
		}
	}
	return nil
}

// allowing returns a rule that allows the call; nil if none does.
func (rs *Rules) allowing(about *Subjects, ships bool) *rule {
	if rs != nil {
		for _, r := range rs.candidates(about) {
			if action, _ := r.action(about, ships); action == protocol.ApproveAllow {
				return r
			}
		}
	}
	return nil
}

// stopping returns a limited rule that asks or denies and names a tool; nil if there is none.
func (rs *Rules) stopping(m protocol.ToolManifest) *rule {
	if rs != nil {
		for _, r := range rs.all {
			if r.Limited() && r.Action != protocol.ApproveAllow && r.names(m, false) {
				return r
			}
		}
	}
	return nil
}

// Concern reports whether rules that ask may be about a call, or about a part of it: one of its commands, paths or hosts.
func (rs *Rules) Concern(about *Subjects) bool {
	if found, _ := rs.decide(about, false); found.mode != "" {
		return true
	}
	return slices.ContainsFunc(about.hosts(), func(h hostrule.Pattern) bool {
		return h == (hostrule.Pattern{}) && rs != nil && len(rs.hosts) > 0 || rs.decideHost(about, h, false).mode != ""
	})
}
