package rulebook_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"pgregory.net/rapid"

	"lashd/engine/netproxy"
	"lashd/rpc/protocol"
)

// connect asks a proxy for each target. No name has an address, so the proxy either refuses or finds nothing.
func (w *world) connect(t *rapid.T, n *protocol.NetworkAccess, all []cause, c call) {
	key, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range ask(t, string(key), n) {
		if want := w.reaches(all, c, targets[i]); got != want {
			t.Fatalf("%+v reaches %s: %t, want %t: %s of %+v with %+v", c, targets[i], got, want, key, all, w.model)
		}
	}
}

// asked keeps the answers of proxies by their access, so that each access is asked once.
var asked = map[string][]bool{}

// ask returns for each target whether a proxy would connect to it.
func ask(t *rapid.T, key string, n *protocol.NetworkAccess) (reached []bool) {
	if known, ok := asked[key]; ok {
		return known
	}
	p, err := netproxy.New(netproxy.Config{Access: n, Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, errors.ErrUnsupported }}})
	if err != nil {
		t.Fatal(err)
	}
	l := &pipes{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { p.Serve(ctx, l) })
	defer serving.Wait()
	defer cancel()
	client, server := net.Pipe()
	defer client.Close()
	l.conns <- server
	answers := bufio.NewReader(client)
	for _, target := range targets {
		if _, err := fmt.Fprintf(client, "GET http://%s/ HTTP/1.1\r\nHost: %s\r\n\r\n", target, target); err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode != http.StatusForbidden && r.StatusCode != http.StatusBadGateway {
			t.Fatalf("the proxy answers %s for %s", r.Status, target)
		}
		if _, err := answers.Discard(int(r.ContentLength)); err != nil {
			t.Fatal(err)
		}
		reached = append(reached, r.StatusCode == http.StatusBadGateway)
	}
	asked[key] = reached
	return reached
}

// pipes is a listener for connections in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipes) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "proxy", Net: "unix"} }
