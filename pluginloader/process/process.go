// Package process runs a plugin as a process in any language. The process speaks JSON-RPC on stdin
// and stdout, one JSON value per line; docs/plugin-protocol.md describes the messages. The plugin
// loader calls this package.
//
// A Factory owns one process, which serves all sessions. The process starts on first use. If it
// ends unexpectedly, it restarts on the next use, with the last saved state of each session. These
// are the main parts, from the outside in:
//
//   - Factory implements plugin.Factory. Its supervisor (package child) starts the process, delays
//     restarts and quarantines a process that crashes too often.
//   - instance is the plugin in one session. It outlives processes. A seat is an instance in one process.
//   - life is one run of the process: its pipes, its goroutines and its end.
//   - peer is the JSON-RPC connection of a life. It matches answers to calls and limits their time.
//   - grant says what the plugin may ask of lashd during one call. host.go lists these requests.
//
// Two goroutines serve a life: one writes its stdin (life.run), and one reads its stdout
// (life.listen). Each request of the plugin runs on a goroutine of its own. Calls to the plugin run
// on the goroutines of their callers and wait for the reader to hand over the answer.
//
// lashd does not trust the process. It may crash, hang, lie, or write without end. A misbehaving
// process fails only its own calls, each with a typed Error and within its time limit. A process
// that breaks the protocol is ended, because its later messages could not be trusted either. A
// Factory is safe for concurrent use.
package process

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"lashd/engine/plugin"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// ProtocolVersion is the version of the protocol between lashd and plugin processes.
const ProtocolVersion = 1

// Config configures a Factory. Optional fields may be zero.
type Config struct {
	ID          string            // required
	Version     string            // of the plugin, for logs
	Argv        []string          // required; program and arguments
	Dir         string            // required; the plugin's directory, absolute, and the working directory
	DataDir     string            // directory for the plugin's own files; empty: none
	Environ     []string          // lashd's environment; the plugin gets a part of it
	Allow       []string          // names of more variables to inherit
	Set         map[string]string // variables to add or replace
	Options     json.RawMessage   // the plugin's options for all sessions; empty: none
	Contributes Contributions
	Uses        []Capability // requests that it may send to lashd; none: only traces
	Tireless    bool         // restarted however often it ends: it fails because of what it is given, not by itself
	Eager       bool         // started by Start and restarted whenever it ends
	Generation  int64        // of the set of plugins that it belongs to
	Deadlines   Deadlines
	Limits      Limits
	Confine     *child.Confinement // limits and sandbox; nil: none
	Workspace   string             // of a plugin of one workspace; empty: it serves all
	Approval    child.Approval     // nil: the program needs no approval
	Nonce       string             // prefix of the mark of its processes, for proc.Sweep
	Log         *slog.Logger       // required
	Output      *child.Log         // the plugin's log; nil: a new one

	// Also returns what else the plugin contributes to a session, for example command tools. May be
	// nil.
	Also func(plugin.BuildContext) (plugin.Spec, error)
	// ToolsChanged is called when the plugin's tools in a session changed, so that the session
	// fetches them again. May be nil.
	ToolsChanged func(context.Context, protocol.SessionID)

	// Outside lists the plugin's programs outside a sandbox; see plugin.Outsider. May be nil.
	Outside func(protocol.SandboxMode) []plugin.Program
	// Quarantined is called when the process crashed too often, and when it works again. It must
	// not wait for the plugin. May be nil.
	Quarantined func()
}

// sandboxed reports whether the plugin requests a sandbox.
func (c *Config) sandboxed() bool { return c.Confine != nil && c.Confine.Sandbox != nil }

// Deadlines are time limits. Zero means the default. Hooks and tools may have their own.
type Deadlines struct {
	Start     time.Duration // start and handshake, and how long a call waits for these; default 10 s
	State     time.Duration // opening a session, writing or restoring state; default 5 s
	Hook      time.Duration // a hook without its own limit; default 5 s
	Query     time.Duration // default 10 s
	Command   time.Duration // default 30 s
	Task      time.Duration // default 1 h
	Tool      time.Duration // a tool without its own limit; default 10 min
	Code      time.Duration // a code cell; default 10 min
	Cancel    time.Duration // for a cancelled or late call to end; default 10 s
	Stall     time.Duration // for the plugin to read its input; default 10 s
	Stop      time.Duration // from the end of stdin to SIGTERM; default 2 s
	Terminate time.Duration // from SIGTERM to SIGKILL; default 1 s
	Unused    time.Duration // from Try to the end of an unused process; default 1 min
}

// Limits bound what a plugin can make lashd hold in memory. Zero means the default.
type Limits struct {
	Line    int // bytes of a message; default 8 MiB
	Queue   int // bytes that wait for the plugin to read, except for a single larger message; default 16 MiB
	Depth   int // nesting of arrays and objects; default 64
	Calls   int // concurrent requests of the plugin; default 64
	Noise   int // bytes on stdout that are no messages; default 64 KiB
	Strays  int // answers to calls that do not exist; default 64
	Notices int // notifications per second; default 5,000
}

// filled returns c with the defaults, or an error if c is invalid. It makes the log hide the
// secrets that the plugin gets.
func (c Config) filled() (Config, error) {
	switch {
	case c.ID == "":
		return c, fmt.Errorf("process plugin: no id")
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return c, fmt.Errorf("process plugin %s: no command", c.ID)
	case !filepath.IsAbs(c.Dir):
		return c, fmt.Errorf("process plugin %s: the directory %q is not absolute", c.ID, c.Dir)
	case c.Log == nil:
		return c, fmt.Errorf("process plugin %s: no log", c.ID)
	}
	c.Deadlines, c.Limits = c.Deadlines.filled(), c.Limits.filled()
	var err error
	if c.Contributes, err = c.Contributes.filled(c.Deadlines); err != nil {
		return c, fmt.Errorf("process plugin %s: %w", c.ID, err)
	}
	if _, err = c.Confine.In(c.Workspace); err != nil {
		return c, fmt.Errorf("process plugin %s: %w", c.ID, err)
	}
	c.Log = c.Log.With("plugin", c.ID)
	if c.Output == nil {
		c.Output = child.NewLog(c.Log)
	}
	c.Output.Hide(slices.Concat(child.Environment{Daemon: c.Environ, Pass: c.Allow, Set: c.Set}.Secrets(),
		child.SecretsInArgs(c.Argv), child.SecretsInJSON(c.Options))...)
	return c, nil
}

// declares reports whether the manifest declares a capability. The empty capability needs no
// declaration.
func (c *Config) declares(need Capability) bool { return need == "" || slices.Contains(c.Uses, need) }

// filled returns d with the defaults.
func (d Deadlines) filled() Deadlines {
	return Deadlines{
		Start:     cmp.Or(d.Start, 10*time.Second),
		State:     cmp.Or(d.State, 5*time.Second),
		Hook:      cmp.Or(d.Hook, 5*time.Second),
		Query:     cmp.Or(d.Query, 10*time.Second),
		Command:   cmp.Or(d.Command, 30*time.Second),
		Task:      cmp.Or(d.Task, time.Hour),
		Tool:      cmp.Or(d.Tool, 10*time.Minute),
		Code:      cmp.Or(d.Code, 10*time.Minute),
		Cancel:    cmp.Or(d.Cancel, 10*time.Second),
		Stall:     cmp.Or(d.Stall, 10*time.Second),
		Stop:      cmp.Or(d.Stop, 2*time.Second),
		Terminate: cmp.Or(d.Terminate, time.Second),
		Unused:    cmp.Or(d.Unused, time.Minute),
	}
}

// filled returns l with the defaults. The defaults are far above what real plugins need.
func (l Limits) filled() Limits {
	return Limits{
		Line:    cmp.Or(l.Line, 8<<20),
		Queue:   cmp.Or(l.Queue, 16<<20),
		Depth:   cmp.Or(l.Depth, 64),
		Calls:   cmp.Or(l.Calls, 64),
		Noise:   cmp.Or(l.Noise, 64<<10),
		Strays:  cmp.Or(l.Strays, 64),
		Notices: cmp.Or(l.Notices, 5000),
	}
}
