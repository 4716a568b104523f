package plugin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// operations are the operations that the plugins of a session registered, by name. Names are unique across plugins and
// kinds.
type operations struct {
	plugins *roster
	byName  map[string]operation
}

// operation is a registered operation. Exactly one of query and change is set.
type operation struct {
	info   protocol.OperationInfo
	query  QueryFunc
	change CommandFunc
	input  func(json.RawMessage) error // checks arguments against the input schema
}

// OperationGroup registers operations that clients can call.
type OperationGroup struct{ r *Registrar }

// Operations returns the group that registers operations. lashd fills in the plugin and the kind. Without a session
// rule, an operation requires a session.
func (r *Registrar) Operations() OperationGroup { return OperationGroup{r} }

// Query registers an operation that only reads.
func (g OperationGroup) Query(info protocol.OperationInfo, f QueryFunc) {
	g.add(protocol.OperationQuery, info, operation{query: f}, missing(f))
}

// Command registers an operation that changes something and runs between turns.
func (g OperationGroup) Command(info protocol.OperationInfo, f CommandFunc) {
	g.add(protocol.OperationCommand, info, operation{change: f}, missing(f))
}

// Task registers a long-running operation that changes something.
func (g OperationGroup) Task(info protocol.OperationInfo, f CommandFunc) {
	g.add(protocol.OperationTask, info, operation{change: f}, missing(f))
}

// add checks and registers an operation. absent means that its function is nil.
func (g OperationGroup) add(kind protocol.OperationKind, info protocol.OperationInfo, op operation, absent bool) {
	info = own(info)
	info.Plugin, info.Kind, info.Session = g.r.owner, kind, cmp.Or(info.Session, protocol.SessionRequired)
	op.info, op.input = info, tool.Checker(info.Input)
	c := g.r.in()
	other, taken := c.operations.byName[info.Name]
	switch {
	case absent:
		g.r.fail(errNil)
	case info.Name == "":
		g.r.fail(fmt.Errorf("registers a %s without a name", kind))
	case !slices.Contains(rules, info.Session):
		g.r.fail(fmt.Errorf("registers the %s %s with the unknown session rule %q", kind, info.Name, info.Session))
	case taken:
		g.r.fail(fmt.Errorf("registers the %s %s, but plugin %s already registered a %s with that name", kind, info.Name, other.info.Plugin, other.info.Kind))
	default:
		if c.operations.byName == nil {
			c.operations.byName = map[string]operation{}
		}
		c.operations.byName[info.Name] = op
	}
}

var rules = []protocol.SessionRule{protocol.SessionRequired, protocol.SessionOptional, protocol.SessionForbidden}

// Operations returns the operations that clients can call, sorted by name.
func (o *operations) Operations() []protocol.OperationInfo {
	list := make([]protocol.OperationInfo, 0, len(o.byName))
	for _, name := range slices.Sorted(maps.Keys(o.byName)) {
		list = append(list, own(o.byName[name].info))
	}
	return list
}

// Target selects the session that an operation is called for.
type Target struct {
	Explicit *protocol.SessionID // named by the caller; a pointer to "": explicitly no session
	Current  bool                // without Explicit: use the session that owns these operations
}

// Query runs a query. Every error is an OperationError.
func (o *operations) Query(ctx context.Context, name string, call *OperationCall, to Target) (json.RawMessage, error) {
	op, mine, err := o.prepare(protocol.OperationQuery, name, call, to)
	if err != nil {
		return nil, err
	}
	out, err := invoke(ctx, o.plugins, HookQuery, op.info.Plugin, func() (json.RawMessage, error) { return op.query(ctx, mine) })
	if err == nil {
		out, err = validOutput(out)
	}
	if err != nil {
		return nil, failed(name, err)
	}
	return out, nil
}

// Command runs a command and returns its result without applying it. Every error is an OperationError. A command that
// does not return within 30 minutes, or soon after ctx is done, is abandoned and fails with OperationAbandoned.
func (o *operations) Command(ctx context.Context, name string, call *OperationCall, to Target) (*OperationResult, error) {
	return o.change(ctx, protocol.OperationCommand, HookCommand, name, call, to)
}

// Task runs a task like Command, but for as long as ctx lasts. A result that arrives within workGrace after ctx is done
// still counts.
func (o *operations) Task(ctx context.Context, name string, call *OperationCall, to Target) (*OperationResult, error) {
	return o.change(ctx, protocol.OperationTask, HookTask, name, call, to)
}

func (o *operations) change(ctx context.Context, kind protocol.OperationKind, hook Hook, name string, call *OperationCall, to Target) (*OperationResult, error) {
	op, mine, err := o.prepare(kind, name, call, to)
	if err != nil {
		return nil, err
	}
	result, err := invoke(ctx, o.plugins, hook, op.info.Plugin, func() (*OperationResult, error) { return op.change(ctx, mine) })
	if err == nil {
		result, err = result.checked()
	}
	if err != nil {
		return nil, changeFailure(name, err)
	}
	return result, nil
}

// prepare finds the operation, resolves its session and checks its arguments, in this order. The call that it returns
// is a copy with the capabilities of the kind.
func (o *operations) prepare(kind protocol.OperationKind, name string, call *OperationCall, to Target) (operation, *OperationCall, error) {
	op := o.byName[name]
	if op.info.Kind != kind {
		return op, nil, &OperationError{Code: UnknownOperation, Name: name}
	}
	mine := *call
	mine.SessionID = to.resolve(o.plugins.session)
	if code := sessionRuleError(op.info.Session, mine.SessionID); code != "" {
		return op, nil, &OperationError{Code: code, Name: name}
	}
	mine.Args, mine.Host = arguments(call.Args), call.Host.limit(Hook(kind))
	if err := op.input(mine.Args); err != nil {
		return op, nil, failed(name, fmt.Errorf("arguments: %w", err))
	}
	return op, &mine, nil
}

func (t Target) resolve(current protocol.SessionID) protocol.SessionID {
	switch {
	case t.Explicit != nil:
		return *t.Explicit
	case t.Current:
		return current
	default:
		return ""
	}
}

// sessionRuleError returns why an operation with the rule cannot be called for the session id, or "".
func sessionRuleError(rule protocol.SessionRule, id protocol.SessionID) OperationCode {
	switch {
	case rule == protocol.SessionRequired && id == "":
		return MissingSession
	case rule == protocol.SessionForbidden && id != "":
		return UnexpectedSession
	default:
		return ""
	}
}
