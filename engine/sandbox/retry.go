package sandbox

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lashd/engine/hostrule"
	"lashd/rpc/protocol"
)

// mostHosts is how many hosts a call can name.
const mostHosts = 32

// Refusal returns what the sandbox refused to a command, and the arguments of calls that run it again with more; nil: it refused nothing.
// args are those of the call that ran it, absent if no call can; output is the end of its output. The hosts that the proxy refused are exact, all else is guessed.
func (b *Box) Refusal(args json.RawMessage, output string, failed bool) *protocol.SandboxRefusal {
	if b == nil {
		return nil
	}
	r := &protocol.SandboxRefusal{Mode: b.mode, Hosts: b.Refused()}
	if r.What = describeHosts(r.Hosts); r.What == "" {
		why := b.reason(output, failed)
		if why == nil {
			return nil
		}
		r.What = why.sentence()
	}
	r.Retry = with(args, "outside", true, "hosts") // the two exclude each other
	r.WithHosts = b.withHosts(args, r.Hosts, output)
	return r
}

// describeHosts returns a sentence about refused hosts; empty: there are none.
func describeHosts(refused []protocol.RefusedHost) string {
	const most = 5
	var all []string
	for _, r := range refused[:min(len(refused), most)] {
		all = append(all, fmt.Sprintf("%s (%s)", r.Host, r.Reason))
	}
	if len(all) == 0 {
		return ""
	}
	text := "The sandbox refused " + strings.Join(all, ", ")
	if more := len(refused) - most; more > 0 {
		text += fmt.Sprintf(", and %d more hosts", more)
	}
	return text + "."
}

// withHosts returns the call with the hosts that it lacked; nil if there are none, or if the call would name too many. Without a proxy, they
// are those that the output names.
func (b *Box) withHosts(args json.RawMessage, refused []protocol.RefusedHost, output string) *protocol.HostsRetry {
	var more []string
	for _, r := range refused {
		more = append(more, r.Hosts...)
	}
	if b.proxy == nil {
		more = unresolved(output)
	}
	all := union(b.granted, more)
	retry := with(args, "hosts", all, "outside")
	if len(more) == 0 || len(all) > mostHosts || retry == nil {
		return nil
	}
	return &protocol.HostsRetry{Hosts: union(nil, more), Retry: retry}
}

// with returns arguments with another value of one of them, and without the one that excludes it; nil if they are no object.
func with(args json.RawMessage, name string, value any, excluded string) json.RawMessage {
	all := map[string]json.RawMessage{} // all arguments, whatever their names
	if json.Unmarshal(args, &all) != nil || all == nil {
		return nil
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil
	}
	all[name] = encoded
	delete(all, excluded)
	changed, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return changed
}

// unresolvedName finds the names of hosts in what curl, git, wget, Node.js, Go, Python and Java print when there is no DNS.
var unresolvedName = regexp.MustCompile(`(?i)(?:could not resolve (?:host: |')|resolve host address \W+|getaddrinfo (?:ENOTFOUND|EAI_AGAIN) |\blookup |failed to resolve '|ConnectionPool\(host='|UnknownHostException: |unknown host )([a-z0-9-]+(?:\.[a-z0-9-]+)+)`)

// unresolved returns the hosts that a command without DNS looked for, by the end of its output. Nothing reaches them before a person or a rule allows it.
func unresolved(output string) (all []string) {
	for _, m := range unresolvedName.FindAllStringSubmatch(output, -1) {
		p, err := hostrule.Parse(strings.ToLower(m[1]))
		if _, isAddress := p.Address(); err == nil && !isAddress && !slices.Contains(all, p.Name()) {
			all = append(all, p.Name())
		}
	}
	return all
}
