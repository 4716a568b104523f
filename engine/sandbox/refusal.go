package sandbox

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"lashd/rpc/protocol"
)

// Guide returns the text about a mode for the model's prompt; empty if the mode has no sandbox.
func Guide(mode protocol.SandboxMode) string {
	if !mode.Confines() {
		return ""
	}
	return `# Sandbox of commands
- Commands run in a sandbox. They can write only to ` + writes(mode) + `. They have no network, except servers that they start themselves, and no local
  sockets. Keys and other secrets in the home directory are empty or missing there.
- The parts of .git that start programs (config, hooks) cannot be changed; commits and branches work.
- If a command needs hosts of the network, name them: "hosts": ["registry.npmjs.org"]. It then reaches these, and those that rules
  allow, by HTTP and HTTPS through the proxy in HTTPS_PROXY. There is no DNS, and no SSH. A person is asked, unless rules allow the hosts.
- If a command needs more, call it again with "outside": true. A person is asked, so do that only for what the task needs.`
}

// writes names the directories that a command writes to.
func writes(mode protocol.SandboxMode) string {
	if mode == protocol.SandboxReadOnly {
		return "/tmp"
	}
	return "the workspace and to /tmp"
}

// kind is a limit of the sandbox that an output can point to.
type kind int

const (
	changing    kind = iota // a file cannot be changed
	moving                  // a file cannot be moved or removed
	secureShell             // a host cannot be reached by SSH
	resolving               // a host has no address
	connecting              // a host cannot be reached
	dialing                 // a host or an own server cannot be reached
	docker
	serving    // a server does not answer
	accessing  // a file cannot be used
	privileged // a privilege is missing
)

// signs are texts by which programs report what a sandbox refuses, the surest first.
var signs = []struct {
	text  string
	kind  kind
	clear bool // also a sign if the command succeeded
}{
	{"read-only file system", changing, true},
	{"device or resource busy", moving, true},
	{"ssh: could not resolve hostname", secureShell, true},
	{"could not resolve host", resolving, true},
	{"could not resolve '", resolving, true},
	{"name resolution", resolving, true},
	{"eai_again", resolving, true},
	{"enotfound", resolving, true},
	{"no such host", resolving, true},
	{"unknownhostexception", resolving, true},
	{"name or service not known", resolving, true},
	{"temporary failure resolving", resolving, true},
	{"unable to resolve host address", resolving, true},
	{"bad address '", resolving, false},
	{"dns error", resolving, false},
	{"no address associated with hostname", resolving, true},
	{"dial tcp: lookup ", resolving, true},
	{"network is unreachable", connecting, true},
	{"enetunreach", connecting, true},
	{"couldn't connect to server", dialing, false},
	{"could not connect to server", dialing, false},
	{"docker daemon", docker, false},
	{"connection refused", serving, false},
	{"permission denied", accessing, false},
	{"operation not permitted", privileged, false},
}

// reason is a limit of the sandbox that explains why a command failed.
type reason struct {
	text  string   // the part of a sentence about the command, such as "it has no privileges"
	brief string   // that part for people, without what only the model can do; empty: text
	sure  bool     // the command certainly met the limit; otherwise it may have failed for another reason
	hosts []string // hosts that the command seems to need
}

// Ended is a command that has ended.
type Ended struct {
	Command string // for sh
	Output  string // its end, which need not be complete
	Code    int    // its exit code; 0 for a command that was stopped, too
}

// Explain returns sentences for the model about what the sandbox refused, if the end of a command looks like that; else "". The sentences also
// name missing variables. Some programs report a refusal and exit with 0.
func (b *Box) Explain(e Ended) string {
	if b == nil {
		return ""
	}
	text := b.ExplainHosts() // the proxy knows; all else is guessed
	if r := b.reason(e); text == "" && r != nil {
		ran := fmt.Sprintf("ran in a sandbox (mode %s): ", b.mode)
		if !r.sure {
			ran = fmt.Sprintf("may have failed because it ran in a sandbox (mode %s): ", b.mode)
		}
		text = "[The command " + ran + r.text + ". If it needs more, call again with \"outside\": true; a person is asked, unless a rule allows the command.]\n"
	}
	if text != "" && b.narrowed != "" {
		text += fmt.Sprintf("[Commands cannot change files here, because %s. A session in a subdirectory can.]\n", b.narrowed)
	}
	if e.Code != 0 {
		text += b.missing(e.Output)
	}
	return text
}

// sentence returns a reason as a sentence for people.
func (r *reason) sentence() string {
	text := cmp.Or(r.brief, r.text)
	if r.sure {
		return "The command ran in a sandbox, and " + text + "."
	}
	return "The command may have failed because it ran in a sandbox: " + text + "."
}

// reason returns the limit of the sandbox that the end of a command points to; nil: none. A limit that the command certainly met comes before
// others, and the output before the exit code.
func (b *Box) reason(e Ended) (guess *reason) {
	e.Output = withoutEscapes(e.Output)
	lower := strings.ToLower(e.Output)
	for _, s := range signs {
		if e.Code == 0 && !s.clear || !strings.Contains(lower, s.text) {
			continue
		}
		for line := range strings.Lines(e.Output) {
			at := strings.Index(strings.ToLower(line), s.text)
			if at < 0 {
				continue
			}
			r := b.explain(s.kind, line[:min(at, len(line))], line[min(at+len(s.text), len(line)):], e)
			if r != nil && r.sure {
				return r
			}
			guess = cmp.Or(guess, r)
		}
	}
	return cmp.Or(guess, b.byExitCode(e))
}

// explain returns the reason for a sign in a line; nil: the sandbox does not explain it. before and after are the other parts of the line.
func (b *Box) explain(k kind, before, after string, e Ended) *reason {
	switch k {
	case changing, moving, accessing:
		return b.explainFiles(k, before, after)
	case secureShell:
		return &reason{text: "it has no SSH. It reaches allowed hosts only by HTTP and HTTPS, so use an address with https:// if the host has one", sure: true}
	case resolving:
		return b.explainNetwork("it has no DNS", true, e)
	case connecting:
		return b.explainNetwork("it has no network", true, e)
	case dialing:
		if dialed.MatchString(before) && !ownServer.MatchString(before) {
			return b.explainNetwork("it has no network", true, e)
		}
		return &reason{text: ownServers}
	case docker:
		return &reason{text: "it does not use sockets of other programs, such as that of Docker", sure: true}
	case serving:
		return &reason{text: ownServers}
	}
	return &reason{text: "it has no privileges"}
}

// explainFiles returns the reason for a sign about files.
func (b *Box) explainFiles(k kind, before, after string) (guess *reason) {
	for _, name := range fileNames(before, after) {
		r := b.explainFile(k, name)
		if r != nil && r.sure {
			return r
		}
		guess = cmp.Or(guess, r)
	}
	return guess
}

// explainFile returns the reason for a sign about a file; its name is empty if the output does not have it.
func (b *Box) explainFile(k kind, name string) *reason {
	switch at := b.placeOf(name, k != changing); {
	case at == hidden:
		return &reason{text: "it cannot use " + name + ", which may contain secrets", sure: true}
	case at == fixed:
		return &reason{text: "it cannot change " + name + ", because editors, shells or git start programs from there", sure: true}
	case at == socket:
		return &reason{text: "it does not use sockets of other programs, such as " + name, sure: true}
	case k == accessing && (at == inWorkspace || at == open):
		return nil // the sandbox does not keep a command from reading or running these files
	case k == accessing:
		return &reason{text: "it does not read secrets, and does not use sockets of other programs"}
	case k == moving:
		return &reason{text: "some files, such as .git/config and .git/hooks, cannot be changed or moved", sure: at != unknown}
	case at == unknown || at == open: // open: the command changed its directory, or the file system is read-only for all
		return &reason{text: "it writes only to " + writes(b.mode)}
	case at == inWorkspace && b.narrowed == "" && filepath.IsAbs(name):
		return &reason{text: "it cannot change " + name + ", because it writes only to " + writes(b.mode) + ". The mode workspace would allow that", sure: true}
	case at == inWorkspace && b.narrowed == "":
		return &reason{text: "it cannot change " + name + ", because it writes only to " + writes(b.mode) + ". The mode workspace would allow that in the workspace", sure: true}
	}
	return &reason{text: "it cannot change " + name + ", because it writes only to " + writes(b.mode), sure: true}
}
