package process

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// HookName is the name of a hook in the plugin protocol: the method is hook/NAME.
type HookName string

const (
	// The hooks of the protocol. docs/plugin-reference.md describes when each runs and what it
	// returns.
	Prompt            HookName = "prompt"
	BeforeTurn        HookName = "beforeTurn"
	BeforeToolCall    HookName = "beforeToolCall"
	AfterToolCall     HookName = "afterToolCall"
	Checkpoint        HookName = "checkpoint"
	AfterTurn         HookName = "afterTurn"
	AssistantStream   HookName = "assistantStream"
	AssistantResponse HookName = "assistantResponse"
	StreamFinished    HookName = "streamFinished"
	ProjectToolResult HookName = "projectToolResult"
	ConfigChanged     HookName = "configChanged"
	Event             HookName = "event"
	TransformContext  HookName = "transformContext"
	Compact           HookName = "compact"
	Catalog           HookName = "catalog"
	ProjectProse      HookName = "projectProse"
)

// OnError is the effect of a hook that fails or does not answer.
type OnError string

const (
	Fail  OnError = "fail"  // the effect of an error at that step of the turn; the default
	Deny  OnError = "deny"  // deny the call or end the turn; the default before a tool call
	Allow OnError = "allow" // continue as if the plugin had no hook
)

// deniable lists the hooks that can deny something.
var deniable = []HookName{BeforeTurn, BeforeToolCall, AfterToolCall, Checkpoint}

// Hook is a hook that the manifest declares.
type Hook struct {
	Name     HookName
	Timeout  time.Duration // 0: Deadlines.Hook
	OnError  OnError
	Priority int                    // for transformContext and compact: higher runs first
	Messages bool                   // include the conversation; compact always does
	Events   []plugin.LifecycleKind // for event: the kinds of events; empty: all
}

// Contributions are what the manifest declares for the process. The process has to confirm the same
// in its handshake, so that an approved manifest describes what the program does.
type Contributions struct {
	Hooks      []Hook
	Tools      []tool.Tool
	Changing   bool // the plugin may list other tools at run time
	Preparing  bool // the plugin completes the arguments of its tools' calls
	Prompts    []plugin.Prompt
	Operations []protocol.OperationInfo
	Tasks      []string          // names of task handlers
	Input      *plugin.TurnInput // JSON that clients send with each turn; nil: none
	Triggers   []plugin.TriggerEvent
	Extensions []plugin.Extension
	Executor   *CodeExecutor // runs code cells; nil: it does not
	State      string        // version of the plugin's state; empty: no state
}

// CodeExecutor declares how a process runs code cells.
type CodeExecutor struct {
	// Replay says that a cell depends on nothing but its source, the state before it and what it asks of lashd. Then a cell
	// that a crash interrupted runs again.
	Replay bool
}

// maxTools is the maximum number of tools of one plugin in a session.
const maxTools = 512

var (
	errManyTools = fmt.Errorf("more than %d tools", maxTools)
	errDefers    = errors.New("a tool of a process cannot defer its result")
)

// filled returns c with the defaults of its hooks, or an error if c is invalid.
func (c Contributions) filled(d Deadlines) (Contributions, error) {
	c.Hooks = slices.Clone(c.Hooks)
	seen := map[HookName]bool{}
	for i := range c.Hooks {
		h := &c.Hooks[i]
		h.Timeout = cmp.Or(h.Timeout, d.Hook)
		if h.OnError == "" && h.Name == BeforeToolCall {
			h.OnError = Deny
		}
		h.OnError = cmp.Or(h.OnError, Fail)
		h.Messages = h.Messages || h.Name == Compact
		if err := h.check(); err != nil {
			return c, err
		}
		if seen[h.Name] {
			return c, fmt.Errorf("hook %s: declared twice", h.Name)
		}
		seen[h.Name] = true
	}
	return c, checkTools(c.Tools)
}

// check returns an error if a hook is unknown or its OnError does not suit it.
func (h *Hook) check() error {
	_, known := registrations[h.Name]
	switch {
	case !known:
		return fmt.Errorf("unknown hook %q", h.Name)
	case !slices.Contains([]OnError{Fail, Deny, Allow}, h.OnError):
		return fmt.Errorf("hook %s: unknown onError %q", h.Name, h.OnError)
	case h.OnError == Deny && !slices.Contains(deniable, h.Name):
		return fmt.Errorf("hook %s: cannot deny anything; use allow or fail", h.Name)
	}
	return nil
}

// checkTools returns an error for a list of tools that no session could use.
func checkTools(tools []tool.Tool) error {
	if len(tools) > maxTools {
		return errManyTools
	}
	names := map[string]bool{}
	for _, t := range tools {
		m := t.Manifest
		switch {
		case m.Name == "":
			return errors.New("a tool without a name")
		case names[m.Name]:
			return fmt.Errorf("two tools named %q", m.Name)
		case t.Contract.MayDefer:
			return fmt.Errorf("tool %s: %w", m.Name, errDefers)
		}
		names[m.Name] = true
		for _, schema := range [][]byte{m.Input, t.Contract.Input, t.Contract.Output} {
			if err := tool.CheckSchema(schema); err != nil {
				return fmt.Errorf("tool %s: %w", m.Name, err)
			}
		}
	}
	return nil
}

// confirmed is the part of the handshake in which a plugin lists what it contributes, by name.
type confirmed struct {
	Hooks      []HookName `json:"hooks,omitempty"`
	Tools      []string   `json:"tools,omitempty"`
	Operations []string   `json:"operations,omitempty"`
	Tasks      []string   `json:"tasks,omitempty"`
	Executor   bool       `json:"executor,omitempty"`
	State      string     `json:"state,omitempty"`
	Handles    []string   `json:"handles,omitempty"` // short form of all but the state: methods, with the name of the tool or operation
}

// names returns what the handshake has to confirm.
func (c *Contributions) names() confirmed {
	n := confirmed{Tasks: c.Tasks, Executor: c.Executor != nil, State: c.State}
	for _, h := range c.Hooks {
		n.Hooks = append(n.Hooks, h.Name)
	}
	for _, t := range c.Tools {
		n.Tools = append(n.Tools, t.Manifest.Name)
	}
	for _, o := range c.Operations {
		n.Operations = append(n.Operations, o.Name)
	}
	return n
}

// spelled returns n with Handles expanded. A plugin that handles all tools has those that are
// declared.
func (n confirmed) spelled(declared confirmed) confirmed {
	for _, handled := range n.Handles {
		method, name, _ := strings.Cut(handled, " ")
		kind, hook, _ := strings.Cut(method, "/")
		switch {
		case kind == "hook":
			n.Hooks = append(n.Hooks, HookName(hook))
		case method == "tool/execute" && name == "*":
			n.Tools = append(n.Tools, declared.Tools...)
		case method == "tool/execute":
			n.Tools = append(n.Tools, name)
		case kind == "operation":
			n.Operations = append(n.Operations, name)
		case method == "task/run":
			n.Tasks = append(n.Tasks, name)
		case method == "code/execute":
			n.Executor = true
		}
	}
	return n
}

// differs lists the differences between the manifest, n, and the handshake, said.
func (n confirmed) differs(said confirmed) []string {
	said = said.spelled(n)
	wrong := append(namesDiffer("hook", n.Hooks, said.Hooks), namesDiffer("tool", n.Tools, said.Tools)...)
	wrong = append(wrong, namesDiffer("operation", n.Operations, said.Operations)...)
	wrong = append(wrong, namesDiffer("work", n.Tasks, said.Tasks)...)
	if n.Executor != said.Executor {
		wrong = append(wrong, "only one of them declares a code executor")
	}
	if n.State != said.State {
		wrong = append(wrong, fmt.Sprintf("the declared state version is %q, the program has %q", n.State, said.State))
	}
	return wrong
}

// namesDiffer lists names that are declared without a handler, and the reverse.
func namesDiffer[S ~string](kind string, declared, said []S) (wrong []string) {
	for _, name := range declared {
		if !slices.Contains(said, name) {
			wrong = append(wrong, fmt.Sprintf("the %s %s has no handler", kind, name))
		}
	}
	slices.Sort(said)
	for _, name := range slices.Compact(said) {
		if !slices.Contains(declared, name) {
			wrong = append(wrong, fmt.Sprintf("the %s %.80s is not declared", kind, name))
		}
	}
	return wrong
}
