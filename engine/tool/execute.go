package tool

import "context"

// Execute runs a tool by id. The tool must be known, a member, provided by a source, and the source registered.
// Otherwise the error is a CallError with the first of ErrUnknown, ErrNotMember, ErrOrphan and ErrNoSource that
// applies. It does not validate the arguments; calls of the model go through Catalog.Admit.
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

// callable returns the tool with this id if it can be called.
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
