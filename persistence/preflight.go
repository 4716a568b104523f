package persistence

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// preview is what is known of a database file before SQLite opens it for writing.
type preview struct {
	version int   // schema version; 0: the database does not exist yet
	unclean bool  // the last process did not close it
	size    int64 // of the file, in bytes
}

// The header of a database file: https://www.sqlite.org/fileformat.html#the_database_header.
const (
	headerSize       = 100
	userVersionAt    = 60
	applicationIDAt  = 68
	headerMagic      = "SQLite format 3\x00"
	emptyApplication = 0
)

// preflight examines a database without changing it or its log, and rejects one that lashd must not
// open. It reads the header itself, because a writing connection folds the log when it closes. No
// other connection of this process may be open: closing the file here would release its locks.
func preflight(ctx context.Context, path string, newest int) (preview, error) {
	f, err := os.Open(path)
	if err != nil {
		return preview{}, err
	}
	defer f.Close()
	_, err = os.Stat(path + "-wal")
	found := preview{unclean: err == nil, size: fileSize(path)}
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(f, header); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return preview{}, err
	}
	app := binary.BigEndian.Uint32(header[applicationIDAt:])
	found.version = int(binary.BigEndian.Uint32(header[userVersionAt:]))
	if fileSize(path+"-wal") > 0 { // pages in the log are newer than the header
		if app, found.version, err = peek(ctx, path); err != nil {
			return preview{}, err
		}
	} else if found.size > 0 && !bytes.HasPrefix(header, []byte(headerMagic)) {
		return preview{}, fmt.Errorf("this is not a database: %w", ErrCorrupt)
	}
	switch {
	case app == emptyApplication && found.version == 0:
		return found, nil
	case app != applicationID:
		return preview{}, fmt.Errorf("application id %#x: this is not a lashd database", app)
	case found.version > newest:
		return preview{}, fmt.Errorf("it has schema %d, but this version of lashd supports up to %d: %w", found.version, newest, ErrNewerSchema)
	}
	return found, nil
}

// peek reads the application id and the schema version through SQLite. Its read-only connection
// does not fold the log when it closes.
func peek(ctx context.Context, path string) (app uint32, version int, err error) {
	db, err := openCopy(path, "ro")
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	err = errors.Join(
		db.QueryRowContext(ctx, "PRAGMA application_id").Scan(&app),
		db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version))
	return app, version, classify(err)
}
