package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"lashd/rpc/protocol"
)

// What commands without a network print and return in the sandbox, and which hosts lashd offers for it. Unless another source is named, the
// texts are those of the programs of Debian 12, Node.js 20, Go 1.26 and uv 0.5.
func TestReasonsAboutTheNetwork(t *testing.T) {
	box := &Box{mode: protocol.SandboxWorkspace}
	const sure, may = "The command ran in a sandbox, and ", "The command may have failed because it ran in a sandbox: "
	const noDNS, noNetwork, own = "it has no network.", "it has no network.", "its network has only its own servers."
	const noSSH = "it has no SSH. It reaches allowed hosts only by HTTP and HTTPS, so use an address with https:// if the host has one."
	for _, c := range []struct {
		name, command, output string
		code                  int
		begins                string
		hosts                 []string
	}{
		{"curl -s prints nothing", "curl -s https://a.example.com/x", "", 6, may + noDNS, []string{"a.example.com"}},
		{"curl with a user and a port", "cd x && /usr/bin/curl -sf 'https://me:pw@A.example.com:8443/x'", "", 6, may + noDNS, []string{"a.example.com"}},
		{"curl of an address", "curl -s http://93.184.216.34/", "", 7, may + noNetwork, nil},
		{"curl of an address, with a message", "curl -sS http://93.184.216.34", "curl: (7) Failed to connect to 93.184.216.34 port 80 after 0 ms: Couldn't connect to server", 7, sure + noNetwork, nil},
		{"curl of a name, with a message", "make get", "curl: (7) Failed to connect to a.example.com port 443 after 2 ms: Could not connect to server", 2, sure + noNetwork, []string{"a.example.com"}},
		{"curl of its own server", "curl -s http://localhost:3000/", "", 7, may + own, nil},
		{"curl of its own server, with a message", "make get", "curl: (7) Failed to connect to 127.0.0.1 port 3000 after 0 ms: Couldn't connect to server", 2, may + own, nil},
		{"psql", "psql -h localhost", `psql: could not connect to server: Connection refused. Is the server running on host "localhost" (127.0.0.1)?`, 2, may + own, nil},
		{"wget -q prints nothing", "wget -q https://a.example.com", "", 4, may + noNetwork, []string{"a.example.com"}},
		{"wget in German", "wget https://a.example.com", "wget: kann die Hostadresse »a.example.com« nicht auflösen", 4, may + noNetwork, []string{"a.example.com"}},
		{"a variable", `curl -s "$URL"`, "", 6, may + noDNS, nil},
		{"a code of another program", "curl -s https://a.example.com", "", 22, "", nil},
		{"another program with this code", "./curling https://a.example.com", "", 6, "", nil},
		{"a command that succeeds", "curl -s https://a.example.com; true", "", 0, "", nil},
		{"apt, which succeeds", "apt-get update", "W: Failed to fetch http://deb.debian.org/x  Temporary failure resolving 'deb.debian.org'", 0, sure + noDNS, []string{"deb.debian.org"}},
		{"BusyBox", "wget http://a.example.com", "wget: bad address 'a.example.com'", 1, sure + noDNS, []string{"a.example.com"}},
		{"uv", "uv pip install x", "error: Failed to fetch: `https://pypi.org/simple/x/`\n  Caused by: dns error: failed to lookup address information: Temporary failure in name resolution", 2, sure + noDNS, []string{"pypi.org"}},
		{"git", "git clone https://github.com/a/b", "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com", 128, sure + noDNS, []string{"github.com"}},
		{"git in German", "git pull", "fatal: konnte nicht auf 'https://github.com/a/b/' zugreifen: Could not resolve host: github.com", 1, sure + noDNS, []string{"github.com"}},
		{"git over SSH", "git pull https://a.example.com", "ssh: Could not resolve hostname github.com: Temporary failure in name resolution", 128, sure + noSSH, nil},
		{"npm", "npm view x", "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org", 1, sure + noDNS, []string{"registry.npmjs.org"}},
		{"npm with colors", "npm view x", "npm \x1b[31merror\x1b[0m getaddrinfo \x1b[1mENOTFOUND\x1b[22m registry.npmjs.org", 1, sure + noDNS, []string{"registry.npmjs.org"}},
		{"pip", "pip download x", "HTTPSConnectionPool(host='pypi.org', port=443): Max retries exceeded: Failed to resolve 'pypi.org' ([Errno -3] Temporary failure in name resolution)", 1, sure + noDNS, []string{"pypi.org"}},
		{"Go", "go get example.com/y", "dial tcp: lookup proxy.golang.org on 10.0.0.1:53: dial udp 10.0.0.1:53: connect: network is unreachable", 1, sure + noDNS, []string{"proxy.golang.org"}},
		{"Go with a resolver of its own", "go get example.com/y", "dial tcp: lookup proxy.golang.org on 127.0.0.53:53: read udp 127.0.0.1:1->127.0.0.53:53: read: connection refused", 1, sure + noDNS, []string{"proxy.golang.org"}},
		{"Python, with the address in the command", "python3 -c \"urlopen('https://a.example.com')\"", "<urlopen error [Errno -3] Temporary failure in name resolution>", 1, sure + noDNS, []string{"a.example.com"}},
		{"an address that the proxy would refuse behind a name", "./build", "curl: (7) Failed to connect to 169.254.169.254 port 80 after 0 ms: Couldn't connect to server", 1, sure + noNetwork, nil},
		{"a part of a name in another alphabet", "curl https://www.bücher.example", "curl: (6) Could not resolve host: www.bücher.example", 6, sure + noDNS, nil},
		{"a part of an address with two users", "curl -s https://a@good.example@evil.example/", "", 6, may + noDNS, nil},
		{"a name at the end of a sentence", "make get", "Could not resolve host: a.example.com.\nStop.", 2, sure + noDNS, []string{"a.example.com"}},
		{"a name in another alphabet", "curl https://bücher.example", "curl: (6) Could not resolve host: bücher.example", 6, sure + noDNS, nil},
	} {
		r := box.Refusal([]byte(`{"command":"x"}`), Ended{Command: c.command, Output: c.output, Code: c.code})
		var got string
		var hosts []string
		if r != nil {
			got = r.What
			if r.WithHosts != nil {
				hosts = r.WithHosts.Hosts
			}
		}
		if (c.begins == "") != (got == "") || !strings.HasPrefix(got, c.begins) || !slices.Equal(hosts, c.hosts) {
			t.Errorf("%s: lashd says %q and offers %v, want %q and %v", c.name, got, hosts, c.begins, c.hosts)
		}
	}
}

// Output that names many hosts offers at most as many as a call can name, and no text of the output but their names.
func TestHostsOfAHugeOutput(t *testing.T) {
	var output strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&output, "curl: (6) Could not resolve host: h%d.example.com\x1b]8;;http://evil.example\a]\n\u202e", i)
	}
	r := (&Box{mode: protocol.SandboxWorkspace}).Refusal([]byte(`{"command":"x"}`), Ended{Command: strings.Repeat("curl ", 1<<20), Output: output.String(), Code: 6})
	if r == nil || r.WithHosts == nil || len(r.WithHosts.Hosts) != mostHosts || len(r.What) > 4000 || strings.ContainsAny(r.What, "\x1b\a\u202e") {
		t.Errorf("the refusal is %+v", r)
	}
}
