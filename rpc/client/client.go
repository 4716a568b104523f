// Package client calls the methods of a daemon. A Client is safe for concurrent use.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"

	"github.com/sourcegraph/jsonrpc2"

	"lashd/rpc/protocol"
)

// Client is a connection to a daemon. It is safe for concurrent use.
type Client struct{ conn *jsonrpc2.Conn }

// New returns a client that owns rwc. It calls onEvent with the params of each session/event in
// order, and onNews with those of each server/event. Both run on the reading goroutine, so they
// must not wait for a call to the daemon. Either may be nil.
//
// After session/gap the connection ends, because the client has to attach again with its cursor.
// The caller closes the client.
func New(ctx context.Context, rwc io.ReadWriteCloser, onEvent, onNews func(json.RawMessage)) *Client {
	handle := func(_ context.Context, c *jsonrpc2.Conn, req *jsonrpc2.Request) {
		switch {
		case req.Method == "session/event" && req.Params != nil && onEvent != nil:
			onEvent(*req.Params)
		case req.Method == "server/event" && req.Params != nil && onNews != nil:
			onNews(*req.Params)
		case req.Method == "session/gap":
			c.Close() // the subscriber connects again and attaches with its cursor
		}
	}
	quiet := jsonrpc2.SetLogger(log.New(io.Discard, "", 0)) // a lost connection is reported by Gone and by failing calls
	return &Client{conn: jsonrpc2.NewConn(ctx, jsonrpc2.NewPlainObjectStream(rwc), handler(handle), quiet)}
}

// handler adapts a function to jsonrpc2.Handler without a goroutine per message, which keeps the
// order of events.
type handler func(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request)

// Handle implements jsonrpc2.Handler.
func (h handler) Handle(ctx context.Context, c *jsonrpc2.Conn, r *jsonrpc2.Request) { h(ctx, c, r) }

// Call calls a method. An error from the daemon is a *jsonrpc2.Error whose Data encodes a protocol.ErrorData. Call does not send
// params that exceed the daemon's limit and returns a *TooLargeError instead.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	if params == nil {
		return c.conn.Call(ctx, method, nil, result)
	}
	body, err := encoded(method, params)
	if err != nil {
		return err
	}
	return c.conn.Call(ctx, method, body, result)
}

// CallOrCancel is Call for a request that must not go on without its caller: when ctx ends, it asks the daemon to cancel the
// request. It returns once the daemon has answered. The context of New must outlive ctx: its end closes the connection.
func (c *Client) CallOrCancel(ctx context.Context, method string, params, result any) error {
	body, err := encoded(method, params)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	id := jsonrpc2.ID{Str: string(protocol.NewInputID()), IsString: true}
	answer, err := c.conn.DispatchCall(ctx, method, body, jsonrpc2.PickID(id))
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() {
		// If it fails the connection is lost, and so is the call.
		_ = c.conn.Notify(context.WithoutCancel(ctx), "$/cancelRequest", struct {
			ID jsonrpc2.ID `json:"id"`
		}{id})
	})()
	return answer.Wait(context.WithoutCancel(ctx), result)
}

// encoded returns the params of a request as JSON, unless they are too large to send.
func encoded(method string, params any) (json.RawMessage, error) {
	body, err := json.Marshal(params)
	if err == nil && len(body) > protocol.MaxFrame-envelope {
		err = &TooLargeError{Method: method, Size: len(body)}
	}
	return body, err
}

// TooLargeError means that a request was not sent because it exceeds protocol.MaxFrame.
type TooLargeError struct {
	Method string
	Size   int // of the params
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the params of %s have %d bytes, but a message has at most %d; send them in parts, or store them in a file and send its path",
		e.Method, e.Size, protocol.MaxFrame)
}

// envelope is an upper bound for the size of a request without its params, in bytes.
const envelope = 256

// Initialize sends initialize with a client name and returns the daemon's version and features.
func (c *Client) Initialize(ctx context.Context, name string) (*protocol.InitializeResult, error) {
	r := new(protocol.InitializeResult)
	return r, c.Call(ctx, "initialize", protocol.InitializeParams{ClientInfo: protocol.ClientInfo{Name: name}}, r)
}

// HandKeys sends the daemon the wanted API keys that getenv returns. A key that was exported after
// the start of the daemon then works too. The daemon keeps the keys in memory only.
func (c *Client) HandKeys(ctx context.Context, wanted []string, getenv func(string) string) error {
	for _, name := range wanted {
		key := getenv(name)
		if key == "" {
			continue
		}
		if err := c.Call(ctx, "model/setKey", protocol.ModelSetKeyParams{Name: name, Key: key}, nil); err != nil {
			return err
		}
	}
	return nil
}

// Gone returns a channel that is closed when the connection has ended.
func (c *Client) Gone() <-chan struct{} { return c.conn.DisconnectNotify() }

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Lost reports whether err means that the connection ended, rather than an error from the daemon.
func Lost(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, jsonrpc2.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
