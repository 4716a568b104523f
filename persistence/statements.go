package persistence

import (
	"context"
	"database/sql"
	"errors"
)

// Expressions for the row number of a new row. SQLite would assign the same number, but only after
// the row's checksum has been computed, and the checksum covers the number.
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

// statements holds the prepared statements of the writer's connection, by query text. The texts are
// constants of this package. Only the writer uses it.
type statements struct {
	conn  *sql.Conn
	cache map[string]*sql.Stmt
}

// prepare takes the pool's only connection. close returns it.
func prepare(ctx context.Context, db *sql.DB) (*statements, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, classify(err)
	}
	return &statements{conn: conn, cache: map[string]*sql.Stmt{}}, nil
}

// get returns the prepared statement of a query, extended by the checksum of each row that it
// writes.
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

// close closes the statements and the connection.
func (st *statements) close() error {
	var errs []error
	for _, p := range st.cache {
		errs = append(errs, p.Close())
	}
	return errors.Join(append(errs, st.conn.Close())...)
}

// inTransaction runs do in a transaction and commits it, or rolls back if do fails. Open uses it
// for changes outside of commits: creating the schema, migrations and epochs.
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
