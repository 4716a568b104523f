package engine

import (
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

// requester is whoever asks lashd for something and is no client: a session, as far as its turn or its task may act for it.
type requester struct {
	session protocol.SessionID
	ceiling *protocol.Ceiling // of the turn, the task and the plugin that ask, beside that of the session; nil: none
	bound   bool              // a plugin asks that does not ship with lashd: it may name only its own sessions
}

// id is the session that asks; empty: a client does.
func (a *requester) id() protocol.SessionID {
	if a == nil {
		return ""
	}
	return a.session
}

// What is refused to an asker where lashd itself would run a command.
var (
	errSandbox  = &plugin.UnavailableError{Capability: "commands outside of the plugin's sandbox"}
	errPlanning = &plugin.UnavailableError{Capability: "commands in plan mode"}
)

// checkCommands refuses commands, which lashd itself runs, to an asker in a sandbox or in plan mode.
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

// checkTaskCommand refuses the task of a command to an asker that may have no commands run.
func checkTaskCommand(by *requester, spec *protocol.TaskSpec) error {
	if spec.Command == nil {
		return nil
	}
	return by.checkCommands()
}

// limits are what an asker may cause others to do.
func (e *Engine) limits(ctx context.Context, a *requester) (protocol.Ceiling, error) {
	row, err := e.store.Session(ctx, a.session)
	if err != nil {
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

// removedTools names the tools that a session has, and has taken from its model: what works for it does not get them back.
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

// realRoots are directories where they lead now.
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

// insideRoots tells whether a directory is in all of the roots of a ceiling now.
func insideRoots(c *protocol.Ceiling, dir string) bool {
	if c == nil || len(c.Roots) == 0 {
		return true
	}
	at, err := pathresolve.Real(dir)
	return err == nil && !slices.ContainsFunc(c.Roots, func(root string) bool { return !authority.Inside(at, root) })
}

// turnCeiling is what an asker's request to another session is held to beyond what that session is held to anyway. The session must be in
// the asker's workspace.
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
	return authority.Beyond(c, authority.Held(&row.Session)), nil
}

// taskCeiling is what a task may cause others to do, beside the limits of the session that has it now. In another session than where it was
// started it may do no more than it could there.
func (e *Engine) taskCeiling(ctx context.Context, t *protocol.Task, in protocol.SessionID) (*protocol.Ceiling, error) {
	if t.Origin.SessionID == in || t.Origin.ClientID != "" {
		return t.Origin.Ceiling, nil
	}
	c, err := e.limits(ctx, &requester{session: t.Origin.SessionID, ceiling: t.Origin.Ceiling})
	if isGone(err) { // nobody knows what it could do there
		return &protocol.Ceiling{NoTools: true, Sandboxed: true}, nil
	}
	return &c, err
}

// wakeCeiling is what the turns are held to for which a task wakes a session, beyond what that session is held to anyway. Where nobody can
// tell, they call no tools.
func (e *Engine) wakeCeiling(ctx context.Context, t *protocol.Task, there *protocol.Session) *protocol.Ceiling {
	c, err := e.taskCeiling(ctx, t, there.ID)
	switch {
	case err != nil:
		e.Log.Error("cannot determine the limits of a task; the turn that it wakes may not call tools", "session", there.ID, "task", t.ID, "error", err)
		return &protocol.Ceiling{NoTools: true, Sandboxed: true}
	case c == nil:
		return nil
	}
	return authority.Beyond(*c, authority.Held(there))
}

// clientError is an error of the package authority as clients are told it.
func clientError(err error) error {
	if r, ok := errors.AsType[*authority.Refusal](err); ok {
		return param.Bad(r.Pointer, "%s", r.Reason)
	}
	return err
}

// authorityFor checks what a new session is to be granted. One that works for another, starts where another is, or is asked for
// by a plugin of another, never gets more than that one has.
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

// baseAuthority is what a session is granted beside its parent and the session where it starts.
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
