package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// Dial connects to the daemon of this user. It fails before it writes anything if another user could have created the socket
// or is listening on it. It fails with ErrNotListening if no process listens.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	conn, err := dial(ctx, path)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, connectionRefused):
		return nil, fmt.Errorf("dial %s: %w", path, ErrNotListening)
	default:
		return nil, fmt.Errorf("dial %s: %w", path, err)
	}
}

// dial connects after checking the directory, and checks the listening process before any byte is
// sent.
func dial(ctx context.Context, path string) (net.Conn, error) {
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	if err := checkPrivate(filepath.Dir(path)); err != nil {
		return nil, err
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := checkServer(conn.(*net.UnixConn)); err != nil {
		conn.Close() // the reason for closing it is the news
		return nil, err
	}
	return conn, nil
}

// checkServer fails if the process that listens runs as another user.
func checkServer(conn *net.UnixConn) error {
	peer, err := PeerOf(conn)
	if err != nil {
		return err
	}
	if peer.UID != os.Geteuid() {
		return fmt.Errorf("the daemon on this socket runs as user %d, but you are user %d", peer.UID, os.Geteuid())
	}
	return nil
}
