package search

import "context"

// reader reads a list that is ordered by a key, page by page.
type reader[T any] struct {
	next func(ctx context.Context, after int64, limit int) ([]T, error)
	key  func(T) int64
	page []T
	last int64
	done bool
}

// peek returns the next element without taking it; nil: there is none.
func (r *reader[T]) peek(ctx context.Context) (*T, error) {
	if len(r.page) == 0 && !r.done {
		var err error
		if r.page, err = r.next(ctx, r.last, scanPage); err != nil {
			return nil, err
		}
		r.done = len(r.page) < scanPage
	}
	if len(r.page) == 0 {
		return nil, nil
	}
	return &r.page[0], nil
}

// take takes the element that peek returned.
func (r *reader[T]) take() {
	r.last, r.page = r.key(r.page[0]), r.page[1:]
}

// merge calls visit for each key that one of two lists has, in order, with the elements of that key.
func merge[A, B any](ctx context.Context, as *reader[A], bs *reader[B], visit func(key int64, a *A, b *B)) error {
	for {
		a, err := as.peek(ctx)
		if err != nil {
			return err
		}
		b, err := bs.peek(ctx)
		if err != nil {
			return err
		}
		switch {
		case a == nil && b == nil:
			return nil
		case b == nil || a != nil && as.key(*a) < bs.key(*b):
			visit(as.key(*a), a, nil)
			as.take()
		case a == nil || bs.key(*b) < as.key(*a):
			visit(bs.key(*b), nil, b)
			bs.take()
		default:
			visit(as.key(*a), a, b)
			as.take()
			bs.take()
		}
	}
}
