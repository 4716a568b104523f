package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"

	"lashd/engine/hostrule"
	"lashd/engine/netproxy"
	"lashd/engine/proc"
	"lashd/rpc/protocol"
)

// Reach gives the command of the box a proxy to the hosts of an access, and the variables by which programs find it. Nil: no network. Call
// it at most once, before Apply. Outside of a sandbox (a nil Box) it does nothing, as Apply does.
func (b *Box) Reach(n *protocol.NetworkAccess) error { return b.reach(n, "") }

// reach is Reach with the reason for hosts that nothing allows; empty: that of commands.
func (b *Box) reach(n *protocol.NetworkAccess, unlisted string) error {
	if b == nil || n == nil {
		return nil
	}
	p, err := netproxy.New(netproxy.Config{Access: n, Resolver: b.resolver, Unlisted: unlisted})
	if err != nil {
		return err
	}
	b.proxy, b.granted = p, n.Granted
	b.Env = append(b.Env, proxyVariables(n)...)
	return nil
}

// Apply puts a command, whose environment is complete, into the box.
func (b *Box) Apply(c *proc.Command) {
	if b == nil {
		return
	}
	b.dir = c.Dir
	caches := b.caches(c.Env)
	c.Confine, c.Env = b.Confinement, slices.Concat(without(Environment(c.Env), caches), b.Env, caches)
	c.Serve = b.Serve()
}

// Serve serves the proxy of the box in its network; nil: it has none.
func (b *Box) Serve() func(context.Context, net.Listener) {
	if b == nil || b.proxy == nil {
		return nil
	}
	return b.proxy.Serve
}

// RefusedSince returns what the sandbox refused to a server at a time or later; nil: it refused no host. No call can be made again with more:
// the server has the hosts of its settings.
func (b *Box) RefusedSince(ms int64) *protocol.SandboxRefusal {
	if b == nil || b.proxy == nil {
		return nil
	}
	hosts := b.proxy.RefusedSince(ms)
	if len(hosts) == 0 {
		return nil
	}
	return &protocol.SandboxRefusal{What: describeHosts(hosts), Mode: b.mode, Hosts: hosts}
}

// Refused returns the hosts that the sandbox refused to the command. A nil Box refuses none.
func (b *Box) Refused() []protocol.RefusedHost {
	if b == nil || b.proxy == nil {
		return nil
	}
	return b.proxy.Refused()
}

// proxied are variables that name proxies for programs. Outside values would lead nowhere.
var proxied = []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY", "npm_config_proxy", "npm_config_https_proxy", "npm_config_noproxy"}

// isProxied reports whether a variable names a proxy, in upper or lower case.
func isProxied(name string) bool {
	return slices.ContainsFunc(proxied, func(p string) bool { return strings.EqualFold(p, name) })
}

// proxyVariables are the variables for programs that use a proxy. Servers of the command itself need none, unless the access names their
// address: then it means that of this machine. Node.js reads the variables only with NODE_USE_ENV_PROXY.
func proxyVariables(n *protocol.NetworkAccess) []string {
	const url = "http://" + proc.ListenAddress
	own := slices.DeleteFunc([]string{"localhost", "127.0.0.1", "::1"}, func(name string) bool { return named(n, name) })
	direct := strings.Join(own, ",")
	env := []string{"NODE_USE_ENV_PROXY=1", "npm_config_proxy=" + url, "npm_config_https_proxy=" + url, "npm_config_noproxy=" + direct}
	for name, value := range map[string]string{"http_proxy": url, "https_proxy": url, "all_proxy": url, "no_proxy": direct} {
		env = append(env, name+"="+value, strings.ToUpper(name)+"="+value)
	}
	slices.Sort(env)
	return env
}

// named reports whether an access may allow a host, by its own name.
func named(n *protocol.NetworkAccess, name string) bool {
	all := slices.Clone(n.Granted)
	for _, r := range n.Rules {
		all = append(all, r.Allow...)
	}
	return slices.ContainsFunc(all, func(text string) bool {
		p, err := hostrule.Parse(text)
		return err == nil && p.Name() == name
	})
}

// mostExplained limits the refused hosts that the model and people read about. All of them are in the refusal.
const mostExplained = 20

// union returns the hosts of two lists, sorted, each once.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// ExplainHosts returns a text for the model about hosts that the sandbox refused to a command; "" if there are none.
func (b *Box) ExplainHosts() string {
	var text strings.Builder
	var allow []string
	refused := b.Refused()
	for _, r := range refused[:min(len(refused), mostExplained)] {
		fmt.Fprintf(&text, "[The sandbox refused %s: %s.]\n", r.Host, r.Reason)
		allow = append(allow, r.Hosts...)
	}
	if more := len(refused) - mostExplained; more > 0 {
		fmt.Fprintf(&text, "[The sandbox refused %d more hosts.]\n", more)
	}
	if len(allow) == 0 {
		return text.String()
	}
	hosts, err := json.Marshal(union(b.granted, allow))
	if err != nil {
		panic("strings are always JSON: " + err.Error())
	}
	fmt.Fprintf(&text, "[If the task needs that, call again with \"hosts\": %s; a person is asked unless rules allow these hosts.]\n", hosts)
	return text.String()
}
