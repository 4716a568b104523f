// Package netproxy is the way of sandboxed commands to the network: a proxy for HTTP and for HTTPS (CONNECT) that reaches only the hosts
// that are allowed. Each command has a proxy of its own, which ends with it.
//
// The proxy resolves names itself, because the command has no DNS. It connects to an address of this machine, of a private network, or of
// the services of a cloud only if that address itself is allowed, not if a name leads to it. It checks the address of each connection when
// it is made, so an answer of DNS that changes makes no difference. It does not look into HTTPS: the server that it connects to is
// the one that was allowed, but nothing compares the name that the command then asks that server for.
//
// All functions and methods are safe for concurrent use.
package netproxy

import (
	"slices"

	"lashd/engine/hostrule"
	"lashd/rpc/protocol"
)

// access is a protocol.NetworkAccess with parsed patterns. Immutable.
type access struct {
	granted, denied []hostrule.Pattern
	rules           []hostRules
	unlisted        string // the reason for a host that nothing allows
}

// hostRules are the rules of one policy.
type hostRules struct{ allow, ask []hostrule.Pattern }

// compile parses the patterns of an access.
func compile(n *protocol.NetworkAccess) (a access, err error) {
	if a.granted, err = hostrule.ParseAll(n.Granted); err != nil {
		return a, err
	}
	if a.denied, err = hostrule.ParseAll(n.Denied); err != nil {
		return a, err
	}
	for _, r := range n.Rules {
		allow, err := hostrule.ParseAll(r.Allow)
		if err != nil {
			return a, err
		}
		ask, err := hostrule.ParseAll(r.Ask)
		if err != nil {
			return a, err
		}
		a.rules = append(a.rules, hostRules{allow, ask})
	}
	return a, nil
}

// Reasons why a host is not reachable.
const (
	notAllowed = "no rule allows it, and the call did not name it"
	denied     = "a rule denies it"
)

// check returns a refusedError for a host with a port that is not reachable. A denial comes first. Every policy has to allow a host that the
// call did not name.
func (a access) check(h hostrule.Pattern) error {
	switch {
	case hostrule.AnyConcerns(a.denied, h):
		return refusedTo(h, denied)
	case hostrule.AnyAllows(a.granted, h):
		return nil
	case len(a.rules) == 0 || slices.ContainsFunc(a.rules, func(r hostRules) bool { return !r.allows(h) }):
		return refusedTo(h, a.unlisted, h)
	}
	return nil
}

// allows reports whether the rules allow a host without a question.
func (r hostRules) allows(h hostrule.Pattern) bool {
	return hostrule.AnyAllows(r.allow, h) && !hostrule.AnyConcerns(r.ask, h)
}
