package netproxy

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"lashd/engine/hostrule"
)

// dialTimeout limits a connection, with the resolution of its name.
const dialTimeout = 30 * time.Second

// refusedError means that the proxy does not connect to a host or address.
type refusedError struct {
	host   string // with its port, unless that is 80 or 443
	reason string
	allow  []string // the patterns that would allow it; empty: none would
}

// refusedTo returns a refusedError for a host with a port.
func refusedTo(h hostrule.Pattern, reason string, allow ...hostrule.Pattern) *refusedError {
	e := &refusedError{host: short(h), reason: reason}
	for _, p := range allow {
		e.allow = append(e.allow, short(p))
	}
	return e
}

// short returns a host without a port that a pattern allows anyway.
func short(h hostrule.Pattern) string {
	text := h.String()
	for _, usual := range []string{":80", ":443"} {
		if name, is := strings.CutSuffix(text, usual); is {
			return strings.Trim(name, "[]")
		}
	}
	return text
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("lashd: the sandbox refuses %s: %s", e.host, e.reason)
}

// dial connects to a host that check has allowed. The address is checked after the resolution of the name, for each attempt.
func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, err := hostrule.Host(address, 0)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialTimeout, Resolver: p.config.Resolver, ControlContext: func(_ context.Context, _, at string, _ syscall.RawConn) error {
		return p.checkAddress(host, at)
	}}
	return d.DialContext(ctx, network, address)
}

// checkAddress returns a refusedError if a connection to an address is not allowed. host is what the command asked for.
func (p *Proxy) checkAddress(host hostrule.Pattern, address string) error {
	at, err := hostrule.Host(address, 0)
	if err != nil {
		return err
	}
	ip, is := at.Address()
	if !is {
		return fmt.Errorf("the address %s cannot be read", address)
	}
	if hostrule.AnyConcerns(p.access.denied, at) {
		return refusedTo(host, fmt.Sprintf("a rule denies its address %s", ip))
	}
	kind := special(ip, ownAddresses)
	if kind == "" || p.access.names(at) {
		return nil
	}
	reason := "it is " + kind + "; a person can allow the address itself"
	if host != at {
		reason = fmt.Sprintf("its address %s is %s; a person can allow that address", ip, kind)
	}
	return refusedTo(host, reason, host, at)
}

// names reports whether patterns that allow name an address itself.
func (a access) names(at hostrule.Pattern) bool {
	return hostrule.AnyAllows(a.granted, at) || len(a.rules) > 0 && !slices.ContainsFunc(a.rules, func(r hostRules) bool { return !r.allows(at) })
}

// blocks are addresses that are not of the public internet, with what they are.
var blocks = []struct {
	prefix netip.Prefix
	kind   string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), thisMachine},
	{netip.MustParsePrefix("100.64.0.0/10"), privateNetwork}, // of a provider; has metadata of a cloud
	{netip.MustParsePrefix("192.0.0.0/24"), cloudService},
	{netip.MustParsePrefix("168.63.129.16/32"), cloudService},
	{netip.MustParsePrefix("192.0.2.0/24"), reserved},
	{netip.MustParsePrefix("198.51.100.0/24"), reserved},
	{netip.MustParsePrefix("203.0.113.0/24"), reserved},
	{netip.MustParsePrefix("198.18.0.0/15"), privateNetwork},
	{netip.MustParsePrefix("240.0.0.0/4"), reserved},
	{netip.MustParsePrefix("::/96"), thisMachine}, // has IPv4 addresses in an old form
	{netip.MustParsePrefix("64:ff9b:1::/48"), privateNetwork},
	{netip.MustParsePrefix("100::/64"), reserved},
	{netip.MustParsePrefix("2001::/23"), reserved}, // tunnels and tests, such as Teredo
	{netip.MustParsePrefix("2001:db8::/32"), reserved},
	{netip.MustParsePrefix("fec0::/10"), privateNetwork},
}

// embedded are prefixes of IPv6 addresses that lead to an IPv4 address, with the byte at which that begins.
var embedded = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, {netip.MustParsePrefix("2002::/16"), 2},
}

// The kinds of addresses, as messages name them.
const (
	thisMachine    = "an address of this machine"
	privateNetwork = "an address of a private network"
	linkLocal      = "an address of the local network, where clouds have their metadata"
	cloudService   = "an address for the services of a cloud"
	reserved       = "a reserved address"
	group          = "an address of a group"
)

// special says what an address is if it is not one of the public internet; else it returns "". own returns the addresses of this machine.
func special(ip netip.Addr, own func() []netip.Addr) string {
	ip = ip.Unmap()
	switch {
	case ip.IsLoopback(), ip.IsUnspecified():
		return thisMachine
	case ip.IsLinkLocalUnicast():
		return linkLocal
	case ip.IsPrivate():
		return privateNetwork
	case ip.IsMulticast():
		return group
	}
	for _, b := range blocks {
		if b.prefix.Contains(ip) {
			return b.kind
		}
	}
	for _, e := range embedded {
		if e.prefix.Contains(ip) {
			b := ip.As16()
			return special(netip.AddrFrom4([4]byte(b[e.at:e.at+4])), own)
		}
	}
	if slices.Contains(own(), ip) {
		return thisMachine
	}
	return ""
}

// ownAddresses returns the addresses of this machine's network interfaces. If the system does not say, there are none: those that are not
// public are refused anyway.
func ownAddresses() (all []netip.Addr) {
	found, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range found {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, prefix.Addr().Unmap())
		}
	}
	return all
}
