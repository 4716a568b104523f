package persistence

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
)

// Reader reads what is stored, by connections that cannot write. Its methods are safe for concurrent use.
type Reader struct {
	Files FileReader
	pool  *readPool
	blobs *blobFiles
}

func newReader(pool *readPool, blobs *blobFiles) *Reader {
	return &Reader{Files: FileReader{pool: pool}, pool: pool, blobs: blobs}
}

// readPool runs queries on a pool of connections that cannot write. It keeps their statements prepared, as each text is a
// constant of this package: a short query then costs half (BenchmarkSession).
type readPool struct {
	db      *sql.DB
	damaged func(error) // told when SQLite finds the file corrupt; may be nil

	mu    sync.Mutex
	stmts map[string]*sql.Stmt
}

// openReadPool makes a pool whose connections are opened when they are first needed.
func openReadPool(path, durability string, damaged func(error)) (*readPool, error) {
	db, err := openPool(path, readerOptions(durability), min(4, runtime.NumCPU()))
	return &readPool{db: db, damaged: damaged, stmts: map[string]*sql.Stmt{}}, err
}

func (p *readPool) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	stmt := p.stmts[query]
	p.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := p.db.PrepareContext(ctx, expanded(query)) // not under the lock: it may wait for a connection
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.stmts[query]; first != nil {
		return first, stmt.Close()
	}
	if p.stmts == nil {
		p.stmts = map[string]*sql.Stmt{}
	}
	p.stmts[query] = stmt
	return stmt, nil
}

// row reads one row, or fails with ErrNotFound.
func (p *readPool) row(ctx context.Context, query string, args []any, into ...any) error {
	ctx, cancel := interruptible(ctx)
	defer cancel()
	stmt, err := p.prepare(ctx, query)
	if err == nil {
		err = stmt.QueryRowContext(ctx, args...).Scan(into...)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return ErrNotFound
	}
	return p.failed(err)
}

// list reads all rows of a query that bounds their number.
func list[T any](ctx context.Context, p *readPool, scan func(*sql.Rows, *T) error, query string, args ...any) ([]T, error) {
	ctx, cancel := interruptible(ctx)
	defer cancel()
	stmt, err := p.prepare(ctx, query)
	if err != nil {
		return nil, p.failed(err)
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return nil, p.failed(err)
	}
	all, err := collect(rows, scan)
	return all, p.failed(err)
}

// failed names an error, and has the store stop writing to a file that is corrupt. An I/O error of a read stops
// nothing: a reader that could not open its files for want of descriptors says nothing of what was committed.
func (p *readPool) failed(err error) error {
	err = classify(err)
	if errors.Is(err, errDamaged) && p.damaged != nil {
		p.damaged(err)
	}
	return err
}

func (p *readPool) close() error {
	var errs []error
	for _, stmt := range p.stmts {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}

// interruptible sees to it that a context can be cancelled: with one that can't, a wait for a lock sleeps inside SQLite.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() != nil {
		return ctx, func() {}
	}
	return context.WithCancel(ctx)
}

// errEnough is what a scan says that wants neither this row nor those after it.
var errEnough = errors.New("enough was read")

// collect reads all rows and closes them: an open read would keep the log from being folded into the database.
func collect[T any](rows *sql.Rows, scan func(*sql.Rows, *T) error) ([]T, error) {
	defer rows.Close()
	var all []T
	for rows.Next() {
		var one T
		switch err := scan(rows, &one); {
		case errors.Is(err, errEnough):
			return all, nil
		case err != nil:
			return nil, classify(err)
		}
		all = append(all, one)
	}
	return all, classify(rows.Err())
}

func decode(data []byte, into any, what string) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrCorrupt, err)
	}
	return nil
}
