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

// Reader reads stored data through connections that cannot write. Its methods are safe for
// concurrent use and see all commits that succeeded before the call. Sessions are named by their
// row number (Session.Key) unless the parameter is a protocol.SessionID.
//
// Most methods read one page: a long read keeps SQLite from reusing the log. A damaged row is a
// *DamagedRowError.
type Reader struct {
	Files  FileReader
	Search SearchReader
	pool   *readPool
	blobs  *blobFiles
}

// newReader returns a Reader that owns pool.
func newReader(pool *readPool, blobs *blobFiles) *Reader {
	return &Reader{Files: FileReader{pool: pool}, Search: SearchReader{pool: pool}, pool: pool, blobs: blobs}
}

// readPool runs queries on a pool of read-only connections. It keeps statements prepared, which
// halves the cost of a short query (BenchmarkSession). Their texts are constants of this package,
// so their number is bounded.
type readPool struct {
	db      *sql.DB
	damaged func(error) // called when SQLite reports a corrupt file; may be nil

	mu    sync.Mutex
	stmts map[string]*sql.Stmt // by query text; guarded by mu
}

// openReadPool returns a pool of up to four connections, which are opened when first needed.
// damaged may run on any goroutine.
func openReadPool(path, durability string, damaged func(error)) (*readPool, error) {
	db, err := openPool(path, readerOptions(durability), min(4, runtime.NumCPU()))
	return &readPool{db: db, damaged: damaged, stmts: map[string]*sql.Stmt{}}, err
}

// prepare returns the prepared statement of a query.
func (p *readPool) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	stmt := p.stmts[query]
	p.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := p.db.PrepareContext(ctx, expanded(query)) // without the mutex, because it may wait for a connection
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

// row scans the first row of a query into the given pointers, or fails with ErrNotFound.
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

// list returns all rows of a query, each read by scan. The query must limit their number.
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

// failed classifies an error, and reports a corrupt file to damaged. An I/O error of a read does
// not stop the store: a reader that runs out of file descriptors says nothing about committed data.
func (p *readPool) failed(err error) error {
	err = classify(err)
	if errors.Is(err, errDamaged) && p.damaged != nil {
		p.damaged(err)
	}
	return err
}

// close closes the statements and connections. No read may be running.
func (p *readPool) close() error {
	var errs []error
	for _, stmt := range p.stmts {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, p.db.Close())...)
}

// interruptible returns a context that can be cancelled. With one that cannot, SQLite waits for a
// lock without being interruptible.
func interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() != nil {
		return ctx, func() {}
	}
	return context.WithCancel(ctx)
}

// errEnough ends collect early: the scan function wants neither this row nor later ones.
var errEnough = errors.New("enough was read")

// collect reads all rows and closes them. An open read would keep the log from being folded into
// the database.
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

// decode parses stored JSON. what names it in the error, which is ErrCorrupt.
func decode(data []byte, into any, what string) error {
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w: %w", what, ErrCorrupt, err)
	}
	return nil
}
