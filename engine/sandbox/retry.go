package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// mostHosts is how many hosts a call can name.
const mostHosts = 32

// Refusal returns what the sandbox refused to a command, and the arguments of calls that run it again with more; nil: it refused nothing.
// args are those of the call that ran it, absent if no call can. The hosts that the proxy refused are exact, all else is guessed.
func (b *Box) Refusal(args json.RawMessage, e Ended) *protocol.SandboxRefusal {
	if b == nil {
		return nil
	}
	r := &protocol.SandboxRefusal{Mode: b.mode, Hosts: b.Refused()}
	more := unresolved(e.Output)
	if r.What = describeHosts(r.Hosts); r.What == "" {
		why := b.reason(e)
		if why == nil {
			return nil
		}
		r.What, more = why.sentence(), union(more, why.hosts)
	}
	r.Retry = with(args, "outside", true, "hosts") // the two exclude each other
	r.WithHosts = b.withHosts(args, r.Hosts, more)
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

// withHosts returns the call with the hosts that it lacked; nil if there are none, or if the call would name too many. They are those that
// the proxy refused; without a proxy, those that were guessed.
func (b *Box) withHosts(args json.RawMessage, refused []protocol.RefusedHost, guessed []string) *protocol.HostsRetry {
	more := guessed
	if b.proxy != nil {
		more = nil
	}
	for _, r := range refused {
		more = append(more, r.Hosts...)
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
