package tool

import "context"

// Execute makes a call of a tool by its id: of one that is known, a member and no orphan, and whose source is there. If it
// is not, the error is a CallError with ErrUnknown, ErrNotMember, ErrOrphan or ErrNoSource, the first that holds.
func (r *Registry) Execute(ctx context.Context, id string, call Invocation) (Result, error) {
	e, err := r.now.Load().callable(id)
	if err != nil {
		return Result{}, err
	}
	if call, err = e.prepare(ctx, call); err != nil {
		return Result{}, err
	}
	return e.from.provider.Execute(ctx, call)
}

func (c *contents) callable(id string) (*Entry, error) {
	it, ok := c.entries[id]
	var reason error
	switch {
	case !ok:
		reason = ErrUnknown
	case !it.member:
		reason = ErrNotMember
	case it.orphan():
		reason = ErrOrphan
	case c.sources[it.source] == nil:
		reason = ErrNoSource
	default:
		return it.Entry, nil
	}
	return nil, &CallError{CodeUnavailable, id, reason}
}
