package approval

import (
	"reflect"
	"slices"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// Hosts returns the hosts that the call names for its programs, if these run in a sandbox.
func (q *Request) Hosts() (all []string) {
	if q.Programs != tool.ProgramsInside || q.Sandbox() == "" {
		return nil
	}
	for _, about := range q.Call.all {
		if about.Host != "" {
			all = append(all, about.Host)
		}
	}
	return all
}

// Network returns the hosts that the programs of the call reach from their sandbox: those that the call names, and those that the rules of
// all policies with a sandbox allow. Nil: none, or the programs run in no sandbox. For tools that do not say where their programs run, such
// as those of MCP servers, it has only the hosts that rules deny.
func (q *Request) Network() *protocol.NetworkAccess {
	if q.Programs == tool.ProgramsUnknown && q.Sandbox() != "" {
		return q.deniedHosts()
	}
	if q.Programs != tool.ProgramsInside || q.Sandbox() == "" {
		return nil
	}
	n := &protocol.NetworkAccess{Granted: q.Hosts()}
	closed := false // a policy allows no host by a rule
	for _, p := range q.Policies {
		rules, denied := judging{Policy: p, ships: q.Ships}.access(q.Call)
		n.Denied = append(n.Denied, denied...)
		if !p.Approval.Sandbox.Confines() {
			continue
		}
		closed = closed || len(rules.Allow) == 0
		if !slices.ContainsFunc(n.Rules, func(r protocol.HostRules) bool { return reflect.DeepEqual(r, rules) }) {
			n.Rules = append(n.Rules, rules)
		}
	}
	if closed {
		n.Rules = nil
	}
	if len(n.Granted)+len(n.Rules) == 0 {
		return nil
	}
	slices.Sort(n.Denied)
	n.Denied = slices.Compact(n.Denied)
	return n
}

// deniedHosts returns an access with the hosts that the rules of all policies deny; nil: none.
func (q *Request) deniedHosts() *protocol.NetworkAccess {
	n := &protocol.NetworkAccess{}
	for _, p := range q.Policies {
		_, denied := judging{Policy: p, ships: q.Ships}.access(q.Call)
		n.Denied = append(n.Denied, denied...)
	}
	if len(n.Denied) == 0 {
		return nil
	}
	slices.Sort(n.Denied)
	n.Denied = slices.Compact(n.Denied)
	return n
}

// DeniedHosts returns the hosts that rules of any of the policies deny, for any tool, sorted.
func DeniedHosts(policies []Policy) (denied []string) {
	for _, p := range policies {
		for _, level := range p.Rules {
			if level == nil {
				continue
			}
			for _, r := range level.hosts {
				if r.Action == protocol.ApproveDeny {
					denied = append(denied, r.Host)
				}
			}
		}
	}
	slices.Sort(denied)
	return slices.Compact(denied)
}

// access returns the hosts of the policy's rules, by their actions. A host that cannot be parsed stays among those that ask or deny, so that
// the command does not start.
func (q judging) access(about *Subjects) (rules protocol.HostRules, denied []string) {
	for _, level := range q.rules(about) {
		if level == nil {
			continue
		}
		for _, r := range level.hosts {
			switch named := r.names(about.entry.Manifest, q.ships); {
			case !named:
			case r.Action == protocol.ApproveDeny:
				denied = append(denied, r.Host)
			case r.Action == protocol.ApproveAsk:
				rules.Ask = append(rules.Ask, r.Host)
			case !r.broken:
				rules.Allow = append(rules.Allow, r.Host)
			}
		}
	}
	return rules, denied
}
