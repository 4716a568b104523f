package sandbox

import (
	"fmt"
	"strings"

	"lashd/rpc/protocol"
)

// Guide returns the text about a mode for the model's prompt; empty if the mode has no sandbox.
func Guide(mode protocol.SandboxMode) string {
	writes := map[protocol.SandboxMode]string{
		protocol.SandboxReadOnly:  "They can write only to /tmp.",
		protocol.SandboxWorkspace: "They can write only to the workspace and to /tmp.",
	}[mode]
	if writes == "" {
		return ""
	}
	return `# Sandbox of commands
- Commands run in a sandbox. ` + writes + ` They have no network, except servers that they start themselves, and no local
  sockets. Keys and other secrets in the home directory are empty or missing there.
- The parts of .git that start programs (config, hooks) cannot be changed; commits and branches work.
- If a command needs hosts of the network, name them: "hosts": ["registry.npmjs.org"]. It then reaches these, and those that rules
  allow, by HTTP and HTTPS through the proxy in HTTPS_PROXY. There is no DNS, and no SSH. A person is asked, unless rules allow the hosts.
- If a command needs more, call it again with "outside": true. A person is asked, so do that only for what the task needs.`
}

// Meanings of failures of the network. The model cannot reach a host by another name or address.
const (
	noDNS     = "it has no DNS, and reaches allowed hosts only by HTTP and HTTPS through the proxy in HTTPS_PROXY. If it needs a host, call again with \"hosts\": [\"NAME\"]"
	noNetwork = "it has no network, and reaches allowed hosts only by HTTP and HTTPS through the proxy in HTTPS_PROXY. If it needs a host, call again with \"hosts\": [\"NAME\"]"
)

// signs are texts by which programs report what a sandbox refuses, and what each probably means.
var signs = []struct {
	text, meaning string
	clear         bool // also a sign if the command succeeded
}{
	{"read-only file system", "it writes only to the workspace and to /tmp", true},
	{"device or resource busy", "some files, such as .git/config and .git/hooks, cannot be changed", true},
	{"could not resolve", noDNS, true},
	{"name resolution", noDNS, true},
	{"eai_again", noDNS, true},
	{"name or service not known", noDNS, true},
	{"network is unreachable", noNetwork, true},
	{"docker daemon", "it does not use sockets of other programs, such as that of Docker", false},
	{"connection refused", "its network has only its own servers", false},
	{"permission denied", "it does not read secrets, and does not use sockets of other programs", false},
	{"operation not permitted", "it has no privileges", false},
}

// Explain returns sentences for the model about what the sandbox refused, if the output of a command looks like that; else "". Output is its
// end, and need not be complete. The sentences also name missing variables.
func (b *Box) Explain(output string, failed bool) string {
	if b == nil {
		return ""
	}
	text := b.ExplainHosts() // the proxy knows; all else is guessed
	if text == "" {
		text = Explain(b.mode, output, failed)
	}
	if text != "" && b.narrowed != "" {
		text += fmt.Sprintf("[Commands cannot change files here, because %s. A session in a subdirectory can.]\n", b.narrowed)
	}
	if failed {
		text += b.missing(output)
	}
	return text
}

// Explain returns a sentence for the model if the output of a command looks as if the sandbox refused something; else "".
// Output is its end, and need not be complete. Some programs report a refusal and exit with 0.
func Explain(mode protocol.SandboxMode, output string, failed bool) string {
	meaning := Refused(mode, output, failed)
	if meaning == "" {
		return ""
	}
	return fmt.Sprintf("[The command ran in a sandbox (mode %s): %s. If it needs more, call again with \"outside\": true; a person is asked.]\n", mode, meaning)
}

// Refused returns what limit of the sandbox the output of a command points to, as the part of a sentence about the command, such as "it
// has no network"; "" if it points to none.
func Refused(mode protocol.SandboxMode, output string, failed bool) string {
	if !mode.Confines() {
		return ""
	}
	output = strings.ToLower(output)
	for _, s := range signs {
		if strings.Contains(output, s.text) && (failed || s.clear) {
			return s.meaning
		}
	}
	return ""
}
