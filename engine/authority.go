package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"lashd/engine/authority"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/internal/pathresolve"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// requester identifies a session that asks lashd for something through one of its plugins or tasks,
// with the limits that apply. A nil requester means that a client asks, which has no limits of its
// own.
type requester struct {
	session protocol.SessionID
	// ceiling limits the turn, the task or the plugin that asks, in addition to the ceiling of the
	// session; nil if it has none.
	ceiling *protocol.Ceiling
	// bound is set if the plugin that asks does not ship with lashd. It may then name only the
	// session itself, its subagents, and the sessions created at its request.
	bound bool
	// sandbox is the widest mode for commands that a bound plugin has lash run; empty: outside a sandbox.
	sandbox protocol.SandboxMode
}

// id returns the session that asks, or "" for a client.
func (a *requester) id() protocol.SessionID {
	if a == nil {
		return ""
	}
	return a.session
}

// Errors for a requester that may not have lash run commands on its behalf.
var (
	errSandbox  = &plugin.UnavailableError{Capability: "commands outside of the plugin's sandbox"}
	errPlanning = &plugin.UnavailableError{Capability: "commands in plan mode"}
	errWider    = &plugin.UnavailableError{Capability: "input to commands with a wider sandbox than the session's"}
)

// checkCommands returns an error if the requester is in a sandbox or in plan mode. Commands of
// tasks and monitors are started by lashd itself, outside every plugin sandbox.
func (a *requester) checkCommands() error {
	switch c := a.ceiling; {
	case c == nil:
		return nil
	case c.Sandboxed:
		return errSandbox
	case c.ReadOnly:
		return errPlanning
	}
	return nil
}

// confined returns the mode for a command for which the requester asks for another one.
func (a *requester) confined(wanted protocol.SandboxMode) protocol.SandboxMode {
	if a == nil || a.sandbox == "" {
		return wanted
	}
	return authority.Narrowest(wanted, a.sandbox)
}

// networked returns the hosts that a command of the requester reaches. A bound plugin gets none in a sandbox: its request was not judged as
// a call.
func (a *requester) networked(wanted *protocol.NetworkAccess) *protocol.NetworkAccess {
	if a == nil || !a.sandbox.Confines() {
		return wanted
	}
	return nil
}

// confine returns the spec of a task whose command, if it has one, runs in no wider mode than the requester may use.
func (a *requester) confine(spec protocol.TaskSpec) protocol.TaskSpec {
	if spec.Command == nil {
		return spec
	}
	command := *spec.Command
	command.Sandbox, command.Network = a.confined(command.Sandbox), a.networked(command.Network)
	spec.Command = &command
	return spec
}

// checkTaskCommand is checkCommands for a task. Tasks without a command always pass.
func checkTaskCommand(by *requester, spec *protocol.TaskSpec) error {
	if spec.Command == nil {
		return nil
	}
	return by.checkCommands()
}

// checkSignal is checkTaskCommand for a signal. A shell runs what it reads, so a requester with a sandbox must not write to a command with
// a wider one.
func (a *requester) checkSignal(spec *protocol.TaskSpec) error {
	if a != nil && a.sandbox.Confines() && spec.Command != nil && a.confined(spec.Command.Sandbox) != spec.Command.Sandbox {
		return errWider
	}
	return checkTaskCommand(a, spec)
}

// limits returns everything that restricts what a requester may cause in other sessions: its
// session's authority, the tools removed from its model, and the requester's own ceiling. Roots are
// resolved to where they lead now, but the session's own workspace must not lead elsewhere. a must not be nil.
func (e *Engine) limits(ctx context.Context, a *requester) (protocol.Ceiling, error) {
	row, err := e.store.Session(ctx, a.session)
	if err = cmp.Or(err, pathresolve.Elsewhere(row.Cwd)); err != nil {
		return protocol.Ceiling{}, err
	}
	c := authority.Of(&row.Session)
	removed, err := e.removedTools(ctx, &row)
	if err != nil {
		return c, err
	}
	c = authority.Meet(c, protocol.Ceiling{Hidden: removed})
	if a.ceiling != nil {
		c = authority.Meet(c, *a.ceiling)
	}
	c.Roots, err = realRoots(c.Roots)
	if err == nil && len(c.Policies) > authority.MaxPolicies {
		err = authority.ErrTooMany
	}
	return c, err
}

// removedTools returns the sorted names of tools that a session knows but has removed from its
// catalog. A subagent of the session must not get them back.
func (e *Engine) removedTools(ctx context.Context, s *persistence.Session) (names []string, err error) {
	parts, err := e.store.Components(ctx, s.Key, "")
	if err != nil || parts[componentTools] == nil {
		return nil, err
	}
	var stored protocol.ToolState
	if err := json.Unmarshal(parts[componentTools], &stored); err != nil {
		return nil, fmt.Errorf("component %s: %w", componentTools, err)
	}
	for _, t := range stored.Tools {
		if !t.IsMember() {
			names = append(names, t.Manifest.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// realRoots resolves symbolic links in directories. A directory that cannot be resolved is an
// error, because a limit that cannot be checked must not be dropped.
func realRoots(roots []string) (all []string, err error) {
	for _, root := range roots {
		at, err := pathresolve.Real(root)
		if err != nil {
			return nil, fmt.Errorf("resolve the workspace of the requesting session: %w", err)
		}
		all = append(all, at)
	}
	return all, nil
}

// insideRoots reports whether a directory lies in all roots of a ceiling, with links resolved now.
// It is false if the directory cannot be resolved.
func insideRoots(c *protocol.Ceiling, dir string) bool {
	if c == nil || len(c.Roots) == 0 {
		return true
	}
	at, err := pathresolve.Real(dir)
	return err == nil && !slices.ContainsFunc(c.Roots, func(root string) bool { return !authority.Inside(at, root) })
}

// turnCeiling returns the ceiling for a turn that a requester starts in another session: what
// exceeds the ceiling which that session has anyway. It refuses a session outside the requester's
// workspace.
func (e *Engine) turnCeiling(ctx context.Context, a *requester, id protocol.SessionID) (*protocol.Ceiling, error) {
	c, err := e.limits(ctx, a)
	if err != nil {
		return nil, err
	}
	row, err := e.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	if !insideRoots(&c, row.Cwd) {
		return nil, param.Bad("/sessionId", "must be a session in the workspace of the requesting session, or below it")
	}
	return authority.Beyond(c, authority.PermanentLimits(&row.Session)), nil
}

// taskCeiling returns what a task may cause, in addition to the limits of the session that owns it
// now. A task that moved to another session keeps the limits of the session that started it. If
// that session is gone, its limits are unknown, and the task may cause no tool calls and no
// commands.
func (e *Engine) taskCeiling(ctx context.Context, t *protocol.Task, in protocol.SessionID) (*protocol.Ceiling, error) {
	if t.Origin.SessionID == in || t.Origin.ClientID != "" {
		return t.Origin.Ceiling, nil
	}
	c, err := e.limits(ctx, &requester{session: t.Origin.SessionID, ceiling: t.Origin.Ceiling})
	if isGone(err) { // its limits are unknown
		return &protocol.Ceiling{NoTools: true, Sandboxed: true}, nil
	}
	return &c, err
}

// wakeCeiling returns the ceiling for turns that a task wakes in a session, beyond that session's
// own ceiling. If the limits of the task cannot be determined, the woken turns may not call tools.
func (e *Engine) wakeCeiling(ctx context.Context, t *protocol.Task, there *protocol.Session) *protocol.Ceiling {
	c, err := e.taskCeiling(ctx, t, there.ID)
	switch {
	case err != nil:
		e.Log.Error("cannot determine the limits of a task; the turn that it wakes may not call tools", "session", there.ID, "task", t.ID, "error", err)
		return &protocol.Ceiling{NoTools: true, Sandboxed: true}
	case c == nil:
		return nil
	}
	return authority.Beyond(*c, authority.PermanentLimits(there))
}

// clientError turns a refusal of package authority into an error about the offending parameter.
// Other errors pass unchanged.
func clientError(err error) error {
	if r, ok := errors.AsType[*authority.Refusal](err); ok {
		return param.Bad(r.Pointer, "%s", r.Reason)
	}
	return err
}

// authorityFor returns the authority and relation of a new session, or refuses what the request
// asks for. A subagent, a session that starts from another one, and a session that a plugin creates
// never get more than the parent, the source, or the requester has. by is nil if a client creates
// the session.
func (ss *Sessions) authorityFor(ctx context.Context, p *protocol.SessionNewParams, from *origin, by *requester) (protocol.Authority, protocol.Relation, error) {
	got, r, err := ss.baseAuthority(ctx, p, from)
	if err != nil || by == nil {
		return got, r, clientError(err)
	}
	may, err := ss.eng.limits(ctx, by)
	if err != nil {
		return got, r, err
	}
	if got, err = authority.NarrowTo(may, got); err != nil || r.Parent == by.session {
		return got, r, clientError(err)
	}
	row, err := ss.eng.store.Session(ctx, by.session)
	if err == nil {
		got.Subagent, err = authority.Deep(row.Authority.Subagent, got.Subagent, r)
	}
	return got, r, clientError(err)
}

// baseAuthority narrows the requested authority to that of the parent and of the source session. It
// does not consider the requester.
func (ss *Sessions) baseAuthority(ctx context.Context, p *protocol.SessionNewParams, from *origin) (protocol.Authority, protocol.Relation, error) {
	got := p.Authority
	if err := param.CheckAuthority(&got); err != nil {
		return got, p.Relation, err
	}
	var err error
	if from != nil {
		if got, err = authority.Narrow(from.row.Authority, got); err != nil {
			return got, p.Relation, err
		}
	}
	if p.Relation.Kind != protocol.RelationChild {
		if from != nil { // a root asks for no depth of its own: checkRelation
			got.Subagent = from.row.Authority.Subagent
		}
		return got, p.Relation, nil
	}
	parent, err := ss.eng.store.Session(ctx, p.Relation.Parent)
	if err != nil {
		return got, p.Relation, err
	}
	if got, err = authority.Narrow(parent.Authority, got); err != nil {
		return got, p.Relation, err
	}
	got.Subagent, err = authority.Below(&parent.Session, got)
	return got, p.Relation, err
}
