package netproxy

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// tunnel connects the client of a CONNECT request with a server until both have ended, ctx ends, or no data flow. It does not close
// server.
func tunnel(ctx context.Context, w http.ResponseWriter, server net.Conn) {
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "lashd: "+err.Error(), http.StatusInternalServerError)
		return
	}
	defer client.Close()
	stop := context.AfterFunc(ctx, func() {
		client.Close()
		server.Close()
	})
	defer stop()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { forward(server, buffered.Reader, client, server) }) // the client may have sent data with the request
	both.Go(func() { forward(client, server, server, client) })
	both.Wait()
}

// forward copies from one side to the other until the end of its data, which it passes on. from reads from source. On an error, or if
// no data come for idleTunnel, it closes both sides.
func forward(to io.Writer, from io.Reader, source, other net.Conn) {
	part := make([]byte, 32<<10)
	for {
		source.SetReadDeadline(time.Now().Add(idleTunnel)) // fails only on a closed connection, as the read does
		n, err := from.Read(part)
		if n > 0 {
			other.SetDeadline(time.Now().Add(idleTunnel)) // the other direction may wait for an answer to this
			if _, failed := to.Write(part[:n]); failed != nil {
				err = failed
			}
		}
		if err == io.EOF {
			if half, ok := other.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
				return
			}
		}
		if err != nil {
			source.Close()
			other.Close()
			return
		}
	}
}

// limited is a listener with a limit of open connections. Accept waits for a free one.
type limited struct {
	net.Listener
	slots chan struct{}   // one value for each open connection
	done  <-chan struct{} // closed when no more connections are wanted
}

// Accept implements net.Listener.
func (l *limited) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		c.Close()
		return nil, net.ErrClosed
	}
	return &slot{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

// await waits until all connections are closed. Call it after the last Accept.
func (l *limited) await() {
	for range cap(l.slots) {
		l.slots <- struct{}{}
	}
}

// slot is a connection that counts until it is closed.
type slot struct {
	net.Conn
	free func()
}

// Close implements net.Conn.
func (s *slot) Close() error {
	s.free()
	return s.Conn.Close()
}

// CloseWrite ends the data to the client, and leaves its own open.
func (s *slot) CloseWrite() error { return s.Conn.(*net.TCPConn).CloseWrite() }
