package persistence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"modernc.org/sqlite"
)

// applicationID marks the file as lashd's: "lash" in ASCII.
const applicationID = 0x6c617368

// busyTimeout is how long a connection waits for a lock, in milliseconds.
const busyTimeout = 5000

// commonOptions returns the settings of every connection. The driver validates those with a
// shorthand key; connector reads all of them back.
func commonOptions(durability string) url.Values {
	v := url.Values{}
	v.Set("_busy_timeout", strconv.Itoa(busyTimeout))
	v.Set("_foreign_keys", "1")
	v.Set("_synchronous", durability)
	v.Set("_defensive", "1")
	v.Set("_dqs", "0")
	v.Set("_error_rc", "1")
	for _, pragma := range []string{
		"trusted_schema(0)", "cell_size_check(1)", "temp_store(2)", "secure_delete(1)",
		"journal_size_limit(" + strconv.Itoa(walSoftLimit) + ")", "wal_autocheckpoint(0)",
	} {
		v.Add("_pragma", pragma)
	}
	if runtime.GOOS == "darwin" { // on macOS, fsync alone does not reach the medium
		v.Add("_pragma", "fullfsync(1)")
		v.Add("_pragma", "checkpoint_fullfsync(1)")
	}
	return v
}

// writerOptions returns the settings of the writer's connection.
func writerOptions(durability string) url.Values {
	v := commonOptions(durability)
	v.Set("_journal_mode", "WAL")
	v.Set("_txlock", "immediate")
	v.Add("_pragma", "cache_size(-8000)") // KiB; a tenth more commits a second than with 2000, the default
	return v
}

// readerOptions returns the settings of read connections, which cannot write (query_only).
func readerOptions(durability string) url.Values {
	v := commonOptions(durability)
	v.Set("_query_only", "1")
	return v
}

// expected returns the value that each PRAGMA must have on a connection with these options. SQLite
// silently ignores values that it does not know, so reading them back is the only way to be sure.
func expected(options url.Values) map[string]string {
	synchronous := map[string]string{"OFF": "0", "NORMAL": "1", "FULL": "2"}[options.Get("_synchronous")]
	want := map[string]string{
		"busy_timeout": strconv.Itoa(busyTimeout), "foreign_keys": "1", "synchronous": synchronous, "trusted_schema": "0",
		"cell_size_check": "1", "temp_store": "2", "secure_delete": "1", "journal_size_limit": strconv.Itoa(walSoftLimit),
		"wal_autocheckpoint": "0", "journal_mode": "wal", "auto_vacuum": "2", "cache_size": "-2000", "mmap_size": "0",
	}
	if runtime.GOOS == "darwin" {
		want["fullfsync"], want["checkpoint_fullfsync"] = "1", "1"
	}
	if options.Has("_query_only") {
		want["query_only"] = "1"
	}
	if options.Has("_txlock") {
		want["cache_size"] = "-8000"
	}
	return want
}

// strict makes the driver reject PRAGMAs that fail. It is global to the process, so it is set once.
var strict = sync.OnceFunc(func() { sqlite.StrictPragmas(true) })

// openPool returns a pool of up to n connections to the database at path. Each connection is
// checked when it is opened.
func openPool(path string, options url.Values, n int) (*sql.DB, error) {
	strict()
	path, err := filepath.Abs(path) // a relative path in a URL would lose its first element
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(&connector{dsn: fileURL(path, options), want: expected(options)})
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

// fileURL returns a file: URL. It escapes characters such as ? and #, which would otherwise end the
// path.
func fileURL(path string, options url.Values) string {
	return (&url.URL{Scheme: "file", Path: path, OmitHost: true, RawQuery: options.Encode()}).String()
}

// openCopy opens a database that no other connection uses, such as a finished backup. mode is ro or
// rw. The caller closes the result.
func openCopy(path, mode string) (*sql.DB, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(&connector{dsn: fileURL(path, url.Values{"mode": {mode}})}), nil
}

// layOut initializes an empty file with the two settings that no later connection can change: the
// page size, and incremental vacuum. Pages of half the usual size halve the bytes that a turn
// writes, because most of its pages have one changed row.
func layOut(ctx context.Context, path string) error {
	db, err := openCopy(path, "rw")
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	for _, pragma := range []string{"page_size = 2048", "auto_vacuum = INCREMENTAL"} { // the second writes the first page
		if _, err := db.ExecContext(ctx, "PRAGMA "+pragma); err != nil {
			return classify(err)
		}
	}
	var size int
	if err := db.QueryRowContext(ctx, "PRAGMA page_size").Scan(&size); err != nil || size != 2048 {
		return fmt.Errorf("pages of the new database have %d bytes: %w", size, err)
	}
	return nil
}

// connector opens connections and rejects one whose settings differ from want.
type connector struct {
	dsn  string
	want map[string]string
}

func (c *connector) Driver() driver.Driver { return sqliteDriver() }

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := sqliteDriver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	for pragma, want := range c.want {
		got, err := readPragma(ctx, conn, pragma)
		if err == nil && got != want {
			err = fmt.Errorf("PRAGMA %s is %s, want %s", pragma, got, want)
		}
		if err != nil {
			conn.Close()
			return nil, err
		}
	}
	return conn, nil
}

// readPragma returns the value of a PRAGMA in lower case.
func readPragma(ctx context.Context, conn driver.Conn, name string) (string, error) {
	rows, err := conn.(driver.QueryerContext).QueryContext(ctx, "PRAGMA "+name, nil)
	if err != nil {
		return "", fmt.Errorf("read PRAGMA %s: %w", name, err)
	}
	defer rows.Close()
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); err != nil {
		return "", fmt.Errorf("read PRAGMA %s: %w", name, err)
	}
	return strings.ToLower(fmt.Sprint(row[0])), nil
}
