// Package hostrule compares hosts of the network with patterns, such as those of approval rules and of the argument hosts of a command.
// It does no I/O: names are compared as text.
//
// A pattern is a name ("registry.npmjs.org"), all names below one ("*.github.com", without github.com itself), all names ("*"), or an
// address ("192.0.2.7", "[2001:db8::7]"). Each may end with a port. A pattern without a port that allows something allows ports 80 and
// 443; one that asks or denies concerns every port. Only a pattern with the address allows an address.
package hostrule

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Ports of a pattern without a port, where it allows something.
const (
	portHTTP  = 80
	portHTTPS = 443
)

// Pattern matches hosts. The zero value is invalid: make one with Parse. Patterns are comparable; equal ones match the same hosts.
type Pattern struct {
	name  string     // in lower case, without a dot at the end; empty if all or addr is set
	below bool       // only names below name
	all   bool       // every name
	addr  netip.Addr // without zone, and IPv4 as such; valid if the pattern is an address
	port  uint16     // 0: none given
}

// Parse reads a pattern. Case and a dot at the end do not matter. Names must be written in ASCII, so that a person sees whether a letter is
// of another script. The error says what to write instead.
func Parse(text string) (Pattern, error) {
	p, err := parse(text)
	if err != nil {
		return Pattern{}, fmt.Errorf("host %q: %w", text, err)
	}
	return p, nil
}

func parse(text string) (p Pattern, err error) {
	if i := strings.Index(text, "://"); i >= 0 {
		return p, fmt.Errorf("write the host without %q", text[:i+3])
	}
	if strings.ContainsAny(text, "/?#@\\ \t\r\n") {
		return p, errors.New("write only the host, and a port if needed, such as example.com:8080")
	}
	name, port, err := splitPort(text)
	if err != nil {
		return p, err
	}
	p.port = port
	if addr, err := netip.ParseAddr(name); err == nil {
		if addr.Zone() != "" {
			return p, errors.New("an address must not name a network interface")
		}
		p.addr = addr.Unmap()
		return p, nil
	}
	if name == "*" {
		p.all = true
		return p, nil
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	p.name, p.below = strings.CutPrefix(name, "*.")
	return p, checkName(p.name)
}

// splitPort cuts the port off a host. Brackets around an address are removed. Without a port it returns 0.
func splitPort(text string) (host string, port uint16, err error) {
	if strings.Count(text, ":") > 1 && !strings.HasPrefix(text, "[") {
		return text, 0, nil // an IPv6 address without brackets has no port
	}
	host, after := text, ""
	if strings.HasPrefix(text, "[") {
		end := strings.Index(text, "]")
		if end < 0 {
			return "", 0, errors.New("the bracket is not closed")
		}
		host, after = text[1:end], text[end+1:]
		if addr, err := netip.ParseAddr(host); err != nil || !addr.Is6() {
			return "", 0, errors.New("only an IPv6 address may be in brackets")
		}
	} else if i := strings.Index(text, ":"); i >= 0 {
		host, after = text[:i], text[i:]
	}
	if after == "" {
		return host, 0, nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(after, ":"), 10, 16)
	if err != nil || n == 0 || after[0] != ':' || after[1] < '0' || after[1] > '9' {
		return "", 0, errors.New("the port must be a number from 1 to 65535")
	}
	return host, uint16(n), nil
}

// Limits of DNS for names, in bytes.
const (
	maxName  = 253
	maxLabel = 63
)

// checkName returns an error unless a name in lower case is one of DNS. Names that some programs read as an address, such as 0x7f.1, are
// none.
func checkName(name string) error {
	if name == "" {
		return errors.New("the name is missing")
	}
	if strings.Contains(name, "*") {
		return errors.New(`"*" can only stand for everything before a name, such as *.example.com`)
	}
	if strings.IndexFunc(name, func(r rune) bool { return r > 0x7f }) >= 0 {
		return errors.New("write the name in its ASCII form, which begins with xn--")
	}
	if len(name) > maxName {
		return fmt.Errorf("the name is longer than %d bytes", maxName)
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if label == "" || len(label) > maxLabel || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return errors.New("this is not the name of a host")
		}
	}
	last := labels[len(labels)-1]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") {
		return errors.New("this is neither a name nor an address in its usual form")
	}
	return nil
}

// String returns the pattern in the form that Parse reads, in lower case and with brackets where needed.
func (p Pattern) String() string {
	text := p.name
	switch {
	case p.all:
		text = "*"
	case p.below:
		text = "*." + p.name
	case p.addr.IsValid():
		text = p.addr.String()
	}
	if p.port == 0 {
		return text
	}
	if p.addr.Is6() {
		text = "[" + text + "]"
	}
	return text + ":" + strconv.Itoa(int(p.port))
}

// Allows reports whether p, as a pattern that allows, allows a host. h must be a single host with a port: see Host.
func (p Pattern) Allows(h Pattern) bool { return p.covers(h) && p.opens(h.port) }

// AllowsAll reports whether p, as a pattern that allows, allows everything that q would allow.
func (p Pattern) AllowsAll(q Pattern) bool {
	return p.covers(q) && (p.port == q.port || p.port == 0 && p.opens(q.port))
}

// Concerns reports whether p, as a pattern that asks or denies, concerns any host that q would allow.
func (p Pattern) Concerns(q Pattern) bool {
	if !p.contains(q) && !q.contains(p) {
		return false
	}
	return p.port == 0 || p.port == q.port || q.port == 0 && q.opens(p.port)
}

// ConcernsAll reports whether p, as a pattern that asks or denies, concerns every host that q would allow.
func (p Pattern) ConcernsAll(q Pattern) bool {
	return p.contains(q) && (p.port == 0 || p.port == q.port)
}

// Name returns the name or address of the pattern without its port; "" if it is "*" or stands for the names below one.
func (p Pattern) Name() string {
	if p.below {
		return ""
	}
	if p.addr.IsValid() {
		return p.addr.String()
	}
	return p.name
}

// Address returns the address of a pattern that is one.
func (p Pattern) Address() (netip.Addr, bool) { return p.addr, p.addr.IsValid() }

// Key returns the name by which an index finds the pattern: see Keys.
func (p Pattern) Key() string {
	switch {
	case p.all:
		return "*"
	case p.addr.IsValid():
		return p.addr.String()
	}
	return p.name
}

// Keys returns the keys of all patterns that can concern a single host.
func (p Pattern) Keys() []string {
	all := []string{Pattern{all: true}.Key()}
	if p.addr.IsValid() {
		return append(all, p.Key())
	}
	for name, more := p.name, p.name != ""; more; _, name, more = strings.Cut(name, ".") {
		all = append(all, name)
	}
	return all
}

// opens reports whether p allows a port.
func (p Pattern) opens(port uint16) bool {
	if p.port == 0 {
		return port == portHTTP || port == portHTTPS
	}
	return p.port == port
}

// covers is contains for a pattern that allows: only an address stands for an address.
func (p Pattern) covers(q Pattern) bool { return p.contains(q) && p.addr.IsValid() == q.addr.IsValid() }

// contains reports whether p stands for every name or address that q stands for, whatever the ports.
func (p Pattern) contains(q Pattern) bool {
	switch {
	case p.all:
		return true
	case q.all || p.addr != q.addr:
		return false
	case p.below:
		return strings.HasSuffix(q.name, "."+p.name) || q.below && q.name == p.name
	}
	return p.name == q.name && !q.below
}

// Host parses the target of a request: one name or address, with the given port if it names none. Port 0 means that it must name
// one. The result only matches itself.
func Host(text string, port uint16) (Pattern, error) {
	p, err := Parse(text)
	if err != nil {
		return p, err
	}
	if p.all || p.below {
		return Pattern{}, fmt.Errorf("host %q: this is not the name of a host", text)
	}
	if p.port = cmp.Or(p.port, port); p.port == 0 {
		return Pattern{}, fmt.Errorf("host %q: the port is missing", text)
	}
	return p, nil
}

// ParseAll parses several patterns, and fails with the first error.
func ParseAll(texts []string) ([]Pattern, error) {
	var all []Pattern
	for _, text := range texts {
		p, err := Parse(text)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// AnyAllows reports whether one of the patterns allows a host.
func AnyAllows(all []Pattern, h Pattern) bool {
	return slices.ContainsFunc(all, func(p Pattern) bool { return p.Allows(h) })
}

// AnyConcerns reports whether one of the patterns, which ask or deny, concerns a host.
func AnyConcerns(all []Pattern, h Pattern) bool {
	return slices.ContainsFunc(all, func(p Pattern) bool { return p.Concerns(h) })
}
