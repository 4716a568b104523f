// Package process runs a plugin as a process in any language. The process speaks JSON-RPC on stdin and stdout, one JSON value per
// line. The plugin loader calls this package. One process serves all sessions. It starts on first use. If it ends unexpectedly, it
// restarts with the last saved state of each session.
//
// A misbehaving process fails only its own calls, each with a typed Error and within its time limit. A Factory is safe for
// concurrent use.
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
	"lashd/engine/proc"
	"lashd/pluginloader/child"
	"lashd/rpc/protocol"
)

// ProtocolVersion is that of the messages between lashd and a plugin.
const ProtocolVersion = 1

// Config is what a Factory needs to know of a plugin. Zero values of optional fields mean the default.
type Config struct {
	ID          string            // required
	Version     string            // of the plugin, for logs
	Argv        []string          // required
	Dir         string            // required: the plugin's directory, absolute, in which it runs
	DataDir     string            // where the plugin may keep files of its own; empty: nowhere
	Environ     []string          // of the daemon; the plugin gets what is allowed of it
	Allow       []string          // names of further variables that it gets
	Set         map[string]string // variables that it gets besides
	Options     json.RawMessage   // of the plugin, for all sessions; empty: none
	Contributes Contributions
	Uses        []Capability // what it may ask of lashd, where that is granted; none: it may only trace
	Eager       bool         // started by Start, and again whenever it has ended
	Generation  int64        // of the set of plugins that it belongs to
	Deadlines   Deadlines
	Limits      Limits
	Confine     *child.Confinement // what the process is held to; nil: to nothing
	Workspace   string             // of a plugin of one workspace; empty: it serves all
	Approval    child.Approval     // nil: nobody has to approve its program
	Nonce       string             // of the daemon: begins the mark of the processes, for proc.Sweep
	Log         *slog.Logger       // required
	Output      *child.Log         // takes what the plugin says; nil: one of its own

	// Also is what else the plugin contributes to a session, besides its process; nil: nothing.
	Also func(plugin.BuildContext) (plugin.Spec, error)
	// ToolsChanged is told that the plugin offers other tools in a session, which has to ask for them again; nil: nobody is.
	ToolsChanged func(context.Context, protocol.SessionID)

	// Quarantined is told that the process has crashed too often and is not started any more. It must not wait for the plugin;
	// nil: nobody is told.
	Quarantined func()

	held *proc.Confinement
}

// sandboxed tells whether the plugin is in a sandbox.
func (c *Config) sandboxed() bool { return c.Confine != nil && c.Confine.Sandbox != nil }

// Deadlines are how long things may take. Hooks have their own.
type Deadlines struct {
	Start     time.Duration // to start the process and shake hands, and for a call to wait for that; default 10 s
	State     time.Duration // to open a session, to write or restore state; default 5 s
	Hook      time.Duration // of hooks that have none of their own; default 5 s
	Query     time.Duration // default 10 s
	Command   time.Duration // default 30 s
	Task      time.Duration // default 1 h
	Tool      time.Duration // of tools whose contract has none; default 10 min
	Code      time.Duration // of a code cell; default 10 min
	Cancel    time.Duration // for a call to end that was cancelled, or was too late; default 10 s
	Stall     time.Duration // for the plugin to read what waits for it; default 10 s
	Stop      time.Duration // from the end of its stdin to SIGTERM; default 2 s
	Terminate time.Duration // from SIGTERM to SIGKILL; default 1 s
	Unused    time.Duration // from Try to the end of the process, if no session uses it; default 1 min
}

// Limits bound what a plugin may have lashd hold.
type Limits struct {
	Line    int // bytes of a message of the plugin; default 8 MiB
	Queue   int // bytes that wait to be read by the plugin, but one message may be larger; default 16 MiB
	Depth   int // arrays and objects inside one another; default 64
	Calls   int // calls of the plugin at once; default 64
	Noise   int // bytes on stdout that are no messages; default 64 KiB
	Strays  int // answers that nobody asked for; default 64
	Notices int // notifications a second; default 5,000
}

// filled is c with the defaults, or says what is wrong with it.
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
	if c.held, err = c.Confine.In(c.Workspace); err != nil {
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

// declares tells whether the plugin may ask for what needs a capability; empty: what needs none.
func (c *Config) declares(need Capability) bool { return need == "" || slices.Contains(c.Uses, need) }

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
