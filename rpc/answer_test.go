package rpc

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/internal/frame"
	"lashd/rpc/protocol"
)

// A value that encoding/json accepts alone may be nested too deeply inside a response. The client still gets a response.
func TestResponseThatCannotBeEncoded(t *testing.T) {
	ours, theirs := net.Pipe()
	c := &conn{Server: &Server{log: slog.New(slog.DiscardHandler)}, stream: frame.New(theirs, frame.Config{})}
	c.seat = new(admission).addFixed(c.stream)
	var wg sync.WaitGroup
	wg.Go(func() { c.stream.Run(t.Context()) })
	wg.Go(func() {
		req := new(jsonrpc2.Request)
		if err := c.stream.ReadObject(req); err != nil {
			t.Error(err)
		}
		deep := json.RawMessage(strings.Repeat("[", 10000) + strings.Repeat("]", 10000))
		c.answer(job{context.Background(), req}, deep, nil)
		c.stream.Close()
	})
	if _, err := ours.Write([]byte(`{"jsonrpc":"2.0","id":7,"method":"graph/read"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(ours).ReadString('\n')
	if !strings.Contains(line, `"id":7,"error"`) || !strings.Contains(line, string(protocol.KindInternal)) {
		t.Errorf("answered %q, %v, want an internal error", line, err)
	}
	ours.Close()
	wg.Wait()
}
