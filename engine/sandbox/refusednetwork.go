package sandbox

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"lashd/engine/hostrule"
)

// ownServers is why a command may not reach a server that it did not start.
const ownServers = "its network has only its own servers"

// explainNetwork returns the reason that a command reaches no hosts, and how it would. It names the hosts that the end of the command names,
// because the model cannot reach them by another name or address.
func (b *Box) explainNetwork(limit string, sure bool, e Ended) *reason {
	text := limit + ", and reaches allowed hosts only by HTTP and HTTPS through the proxy in HTTPS_PROXY. "
	hosts := needed(e)
	if len(hosts) == 0 {
		return &reason{text: text + "If it needs a host, call again with \"hosts\": [\"NAME\"]", brief: "it has no network", sure: sure}
	}
	text += fmt.Sprintf("If it needs %s, call again with \"hosts\": %s, or a person adds a rule that allows host %s", strings.Join(hosts, ", "), list(union(b.granted, hosts)), hosts[0])
	return &reason{text: text, brief: "it has no network. It seems to need " + strings.Join(hosts, ", "), sure: sure, hosts: hosts}
}

// codes are exit codes by which programs report that they reach no host, whatever their language and even if they print nothing.
var codes = []struct {
	program *regexp.Regexp
	code    int
	limit   string
}{
	{program("curl"), 6, "it has no DNS"},
	{program("curl"), 7, "it has no network"},
	{program("wget"), 4, "it has no network"},
}

// program matches a command that may start a program.
func program(name string) *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s;&|(/])` + name + `\s`) }

// byExitCode returns the limit that the exit code of a command points to; nil: none. Another command of the line may have returned the code.
func (b *Box) byExitCode(e Ended) *reason {
	for _, c := range codes {
		switch {
		case c.code != e.Code || !c.program.MatchString(e.Command):
		case ownServer.MatchString(e.Command):
			return &reason{text: ownServers}
		default:
			return b.explainNetwork(c.limit, false, e)
		}
	}
	return nil
}

// ownServer matches an address of the machine itself, which in the sandbox has only servers of the command.
var ownServer = regexp.MustCompile(`(?i)(?:connect to |//|\s)(?:localhost|127\.[0-9.]+|\[?::1\]?)(?:[\s:/?]|$)`)

// dialed matches what curl prints before it says why it reaches no server.
var dialed = regexp.MustCompile(`(?i)failed to connect to \S+ port \d`)

// hostName is a whole name of a host with at least one dot, and what ends it.
const hostName = `([a-z0-9-]+(?:\.[a-z0-9-]+)+)(?:\.?$|\.?[^\pL\pN\pM._@-])`

// unresolvedName finds the names of hosts in what curl, git, wget, BusyBox, Node.js, Go, Python, Java, Rust and apt print without a network.
var unresolvedName = regexp.MustCompile(`(?im)(?:could not resolve (?:host: |')|resolve host address \W+|bad address '|getaddrinfo (?:ENOTFOUND|EAI_AGAIN) |\blookup |failed to resolve '|` +
	`failure resolving '|failed to connect to |ConnectionPool\(host='|UnknownHostException: |unknown host |(?:unable to access '|failed to fetch: ` + "`" + `|request for url \()https?://)` + hostName)

// addressed finds the names of hosts in the addresses of a command.
var addressed = regexp.MustCompile(`(?im)\bhttps?://(?:[^\s/@'"]*@)?` + hostName)

// needed returns the hosts that a command without a network looked for: those that the end of its output names, or else those of the
// addresses in the command. Nothing reaches them before a person or a rule allows it.
func needed(e Ended) []string {
	if all := unresolved(e.Output); len(all) > 0 {
		return all
	}
	return names(addressed, e.Command)
}

// unresolved returns the hosts that a command without DNS looked for, by the end of its output.
func unresolved(output string) []string { return names(unresolvedName, withoutEscapes(output)) }

// names returns the host names that an expression finds, each once, at most mostHosts. Addresses are left out: what prints them could mean one
// that the proxy would refuse behind a name.
func names(found *regexp.Regexp, text string) (all []string) {
	for _, m := range found.FindAllStringSubmatch(text, -1) {
		p, err := hostrule.Parse(strings.ToLower(m[1]))
		if _, isAddress := p.Address(); err == nil && !isAddress && !slices.Contains(all, p.Name()) && len(all) < mostHosts {
			all = append(all, p.Name())
		}
	}
	return all
}

// escapes matches the sequences that color text in a terminal.
var escapes = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`)

// withoutEscapes returns an output without the sequences that color it.
func withoutEscapes(output string) string { return escapes.ReplaceAllString(output, "") }
