package persistence

import (
	"context"
	"database/sql"
	"errors"
)

// The numbers of new rows. SQLite would give the same, but only after the sum of the row is known, which covers it.
const (
	nextSession    = `(SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'sessions')`
	nextBranch     = `(SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'branches')`
	nextTask       = `(SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'tasks')`
	nextOccurrence = `(SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'occurrences')`
	nextWorkspace  = `(SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'workspaces')`
	nextPoint      = `(SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'file_points')`
	nextTurn       = `(SELECT coalesce(max(turn), 0) + 1 FROM turns)`
	nextInput      = `(SELECT coalesce(max(input), 0) + 1 FROM inputs)`
)

// statements are the prepared statements of the writer's one connection. Their texts are constants of this package.
type statements struct {
	conn  *sql.Conn
	cache map[string]*sql.Stmt
}

func prepare(ctx context.Context, db *sql.DB) (*statements, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, classify(err)
	}
	return &statements{conn: conn, cache: map[string]*sql.Stmt{}}, nil
}

func (st *statements) get(ctx context.Context, query string) (*sql.Stmt, error) {
	if p, ok := st.cache[query]; ok {
		return p, nil
	}
	keeping, err := summed(query)
	if err != nil {
		return nil, err
	}
	p, err := st.conn.PrepareContext(ctx, keeping)
	if err == nil {
		st.cache[query] = p
	}
	return p, err
}

func (st *statements) close() error {
	var errs []error
	for _, p := range st.cache {
		errs = append(errs, p.Close())
	}
	return errors.Join(append(errs, st.conn.Close())...)
}

// inTransaction runs steps that belong together on the connection.
func (st *statements) inTransaction(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := st.conn.BeginTx(ctx, nil)
	if err != nil {
		return classify(err)
	}
	if err := do(tx); err != nil {
		return errors.Join(classify(err), tx.Rollback())
	}
	return classify(tx.Commit())
}
