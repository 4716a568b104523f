package persistence

import (
	"context"
	"database/sql"
	"errors"
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
	p, err := st.conn.PrepareContext(ctx, query)
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
