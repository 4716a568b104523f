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
- If a command needs more, call it again with "outside": true. A person is asked, so do that only for what the task needs.`
}

// signs are texts by which programs report what a sandbox refuses, and what each probably means.
var signs = []struct {
	text, meaning string
	clear         bool // also a sign if the command succeeded
}{
	{"read-only file system", "it writes only to the workspace and to /tmp", true},
	{"device or resource busy", "some files, such as .git/config and .git/hooks, cannot be changed", true},
	{"could not resolve host", "it has no network", true},
	{"temporary failure in name resolution", "it has no network", true},
	{"eai_again", "it has no network", true},
	{"network is unreachable", "it has no network", true},
	{"connection refused", "its network has only its own servers", false},
	{"permission denied", "it does not read secrets, and does not use sockets of other programs", false},
	{"operation not permitted", "it has no privileges", false},
}

// Explain returns a sentence for the model if the output of a command looks as if the sandbox refused something; else "".
// Output is its end, and need not be complete. Some programs report a refusal and exit with 0.
func Explain(mode protocol.SandboxMode, output string, failed bool) string {
	if !mode.Confines() {
		return ""
	}
	output = strings.ToLower(output)
	for _, s := range signs {
		if strings.Contains(output, s.text) && (failed || s.clear) {
			return fmt.Sprintf("[The command ran in a sandbox (mode %s): %s. If it needs more, call again with \"outside\": true; a person is asked.]\n", mode, s.meaning)
		}
	}
	return ""
}
