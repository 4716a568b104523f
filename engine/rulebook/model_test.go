package rulebook_test

import (
	"path/filepath"
	"slices"
	"strings"

	"lashd/rpc/protocol"
)

const (
	allow = protocol.ApproveAllow
	asks  = protocol.ApproveAsk
	deny  = protocol.ApproveDeny
)

// cause is one of those who caused a call: a session, or a plugin of a session, as it was at the time of its request. The session of the
// call itself is one, too.
type cause struct {
	approval  protocol.ApprovalConfig
	cwd       string
	sandboxed bool // a plugin in a sandbox made the request
	late      bool // the request was for a turn, not for the session
}

// call is a call of a tool.
type call struct {
	tool    string
	command string
	path    string
	hosts   []string
	outside bool
}

func (c call) reads() bool { return c.tool == "read" }
func (c call) ships() bool { return c.tool != "foreign" }

// confined reports whether the programs of the call run in the sandbox, if there is one.
func (c call) confined() bool { return c.tool == "shell" && !c.outside }

// place is the path on which the call of a session in cwd acts.
func (c call) place(cwd string) string { return filepath.Join(cwd, c.path) }

// model is what applies beside the causes. Its methods are a second implementation of docs/permissions.md, which knows only the few
// commands, paths and hosts of this test.
type model struct {
	user   []protocol.ApprovalRule
	stored map[string][]protocol.ApprovalRule // by workspace
	files  map[string][]protocol.ApprovalRule // by workspace

	answered *call  // a person allowed this call; nil: none
	answerIn string // the workspace of the session in which the person answered
	always   string // the workspace for which the answer is; empty: for the session
	width    *protocol.ApprovalRule
}

// rules returns the rules of all levels for a cause.
func (m *model) rules(by cause) []protocol.ApprovalRule {
	all := slices.Concat(m.user, m.stored[by.cwd], by.approval.Rules)
	for _, r := range m.files[by.cwd] {
		if r.Action == allow {
			r.Action = asks
		}
		all = append(all, r)
	}
	return all
}

// order is that of verdicts and of sandbox modes.
var (
	order  = []protocol.ApprovalMode{"", allow, asks, deny}
	widths = []protocol.SandboxMode{protocol.SandboxReadOnly, protocol.SandboxWorkspace, ""}
)

func strictest(a, b protocol.ApprovalMode) protocol.ApprovalMode {
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// narrowest returns the narrowest mode; empty: full access.
func narrowest(all []cause) protocol.SandboxMode {
	at := len(widths) - 1
	for _, by := range all {
		if i := slices.Index(widths, by.approval.Sandbox); i >= 0 {
			at = min(at, i)
		}
	}
	return widths[at]
}

// lines are the commands of a line. Nobody knows what the last one runs.
var lines = map[string][]string{"go test": {"go test"}, "git push": {"git push"}, "go test && git push": {"go test", "git push"}, `sh -c "$X"`: nil}

// matches reports whether a rule without a host applies to a call, and whether it may apply.
func matches(r protocol.ApprovalRule, c call, of, cwd string) (yes, maybe bool) {
	if !names(r, c) || r.Host != "" {
		return false, false
	}
	begins := func(line string) bool { return line == r.Command || strings.HasPrefix(line, r.Command+" ") }
	switch commands := lines[c.command]; {
	case r.Command == "" && r.Path == "":
		return true, true
	case r.Path != "":
		return c.path != "" && contains(of, r.Path, c.place(cwd)), false
	case c.command == "":
		return false, false
	case commands == nil:
		return false, r.Action != allow
	case r.Action == allow:
		return !slices.ContainsFunc(commands, func(line string) bool { return !begins(line) }), false
	default:
		return slices.ContainsFunc(commands, begins), false
	}
}

func names(r protocol.ApprovalRule, c call) bool {
	if r.Tool == "" {
		return c.ships() || r.Action != allow
	}
	return r.Tool == "*" || r.Tool == c.tool
}

// contains compares a path with that of a rule: a file, a directory, or all Go files.
func contains(of, path, at string) bool {
	if path == "**/*.go" {
		return strings.HasPrefix(at, of+"/") && strings.HasSuffix(at, ".go")
	}
	return below(at, filepath.Join(of, path))
}

func below(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// host reports whether a rule is about a host with a port.
func host(r protocol.ApprovalRule, c call, target string) bool {
	if r.Host == "" || !names(r, c) {
		return false
	}
	name, port, _ := strings.Cut(target, ":")
	named, only, _ := strings.Cut(r.Host, ":")
	suffix, wild := strings.CutPrefix(named, "*")
	switch {
	case only != "" && only != port, only == "" && r.Action == allow && port != "80" && port != "443":
		return false
	case wild:
		return strings.HasSuffix(name, suffix)
	}
	return name == named
}

// opened returns the targets that a host opens which a call names; there are none if it is not the name of a host.
func opened(named string) []string {
	switch {
	case strings.HasPrefix(named, "*"):
		return nil
	case strings.Contains(named, ":"):
		return []string{named}
	}
	return []string{named + ":80", named + ":443"}
}

// exact reports whether a person allowed this call before, for a cause.
func (m *model) exact(by cause, c call, cwd string) bool {
	if m.answered == nil || m.answered.tool != c.tool || m.answered.command != c.command || m.answered.path != c.path || m.answered.outside != c.outside || !slices.Equal(m.answered.hosts, c.hosts) {
		return false
	}
	return (m.always == "" || m.always == by.cwd) && (c.path == "" || m.answerIn == cwd)
}

// demand returns what a cause demands for a call of a session in cwd.
func (m *model) demand(by cause, c call, cwd string) protocol.ApprovalMode {
	var all protocol.ApprovalMode
	sure, covered := false, false
	for _, r := range m.rules(by) {
		switch yes, maybe := matches(r, c, by.cwd, cwd); {
		case yes:
			all, sure, covered = strictest(all, r.Action), true, covered || r.Action == allow
		case maybe:
			all = strictest(all, asks)
		}
	}
	wide := false // a person allowed calls like this one
	if m.width != nil {
		wide, _ = matches(*m.width, c, by.cwd, cwd)
	}
	if !sure {
		base := m.unruled(by, c, cwd)
		if base == asks && all == "" && wide {
			base = allow
		}
		all = strictest(all, base)
	}
	for _, named := range c.hosts {
		all = strictest(all, m.hosts(by, c, named))
	}
	if all == asks && m.exact(by, c, cwd) {
		all = allow
	}
	if leaves(by, c) && !covered && !wide && !m.exact(by, c, cwd) {
		all = strictest(all, asks)
	}
	return all
}

// unruled returns what a cause demands for a call that no rule is about.
func (m *model) unruled(by cause, c call, cwd string) protocol.ApprovalMode {
	boxed := narrowest([]cause{by}) != ""
	switch {
	case by.approval.Mode != "":
		return by.approval.Mode
	case c.reads(), boxed && c.confined(), by.approval.Sandbox == protocol.SandboxWorkspace && c.tool == "write" && below(c.place(cwd), by.cwd):
		return allow
	}
	return asks
}

// leaves reports whether a call does what the sandbox mode of a cause does not allow.
func leaves(by cause, c call) bool {
	switch by.approval.Sandbox {
	case protocol.SandboxReadOnly:
		return !c.reads() && !c.confined()
	case protocol.SandboxWorkspace:
		return c.outside
	}
	return false
}

// hosts returns what a cause demands for a host that a call names. A rule that allows or denies counts only if it is about all that the
// host opens; one that asks, if it is about any of it.
func (m *model) hosts(by cause, c call, named string) (found protocol.ApprovalMode) {
	boxed, open := narrowest([]cause{by}) != "" && c.confined(), opened(named)
	about := func(r protocol.ApprovalRule) bool {
		n := len(slices.DeleteFunc(slices.Clone(open), func(target string) bool { return !host(r, c, target) }))
		return n == len(open) || n > 0 && r.Action == asks
	}
	if open == nil && !boxed {
		return ""
	} else if open == nil {
		return asks
	}
	for _, r := range m.rules(by) {
		if whole := r.Command+r.Path+r.Host == "" && names(r, c); about(r) || whole && r.Action == allow {
			found = strictest(found, r.Action)
		}
	}
	if found == "" && boxed && (m.width == nil || !about(*m.width)) {
		return asks
	}
	return found
}

// verdict returns what all causes demand together.
func (m *model) verdict(all []cause, c call, cwd string) (said protocol.ApprovalMode) {
	fresh := &model{user: m.user, stored: m.stored, files: m.files} // without answers
	for _, by := range all {
		said = strictest(said, m.demand(by, c, cwd))
		if by.sandboxed && !c.reads() {
			said = strictest(said, asks)
		}
		// An answer does not satisfy a later cause, unless one before it in the same workspace demands as much.
		if by.late && fresh.demand(by, c, cwd) == asks && !slices.ContainsFunc(all[1:], func(o cause) bool { return !o.late && o.cwd == by.cwd && fresh.demand(o, c, cwd) == asks }) {
			said = strictest(said, asks)
		}
	}
	if c.path == ".git/config" && !c.reads() {
		said = strictest(said, asks)
	}
	return said
}

// reaches reports whether the command of a call that runs reaches a target.
func (m *model) reaches(all []cause, c call, target string) bool {
	if narrowest(all) == "" || !c.confined() {
		return false // the proxy has no part in it
	}
	ruled := true
	for _, by := range all {
		allowed := false
		for _, r := range m.rules(by) {
			switch {
			case !host(r, c, target):
			case r.Action == deny:
				return false
			case r.Action == allow:
				allowed = true
			case narrowest([]cause{by}) != "":
				ruled = false
			}
		}
		ruled = ruled && (allowed || narrowest([]cause{by}) == "")
	}
	return ruled || slices.ContainsFunc(c.hosts, func(named string) bool {
		return named == "*" && !strings.HasSuffix(target, ":8080") || slices.Contains(opened(named), target)
	})
}
