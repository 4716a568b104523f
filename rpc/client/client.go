// Package client calls a daemon of lashd. A Client may be used by several goroutines at once.
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

// Client is a connection to a daemon.
type Client struct{ conn *jsonrpc2.Conn }

// New takes over a connection. onEvent is given the params of each session/event in order, and onNews those of each server/event,
// on the goroutine that reads: they must not call the daemon and wait. Either may be nil. When a session's events end, the connection does. The caller closes the client.
func New(ctx context.Context, rwc io.ReadWriteCloser, onEvent, onNews func(json.RawMessage)) *Client {
	handle := func(_ context.Context, c *jsonrpc2.Conn, req *jsonrpc2.Request) {
		switch {
		case req.Method == "session/event" && req.Params != nil && onEvent != nil:
			onEvent(*req.Params)
		case req.Method == "server/event" && req.Params != nil && onNews != nil:
			onNews(*req.Params)
		case req.Method == "session/gap":
			c.Close() // whoever follows the session connects again and asks by cursor
		}
	}
	quiet := jsonrpc2.SetLogger(log.New(io.Discard, "", 0)) // a lost connection is told by Gone and by the calls that fail
	return &Client{conn: jsonrpc2.NewConn(ctx, jsonrpc2.NewPlainObjectStream(rwc), handler(handle), quiet)}
}

type handler func(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request)

// Handle implements jsonrpc2.Handler.
func (h handler) Handle(ctx context.Context, c *jsonrpc2.Conn, r *jsonrpc2.Request) { h(ctx, c, r) }

// Call calls a method. An error of the daemon is a *jsonrpc2.Error; Data of it is a protocol.ErrorData.
// What is larger than a daemon takes is not sent, as the connection would end with it.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	if params == nil {
		return c.conn.Call(ctx, method, nil, result)
	}
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if len(body) > protocol.MaxFrame-envelope {
		return &TooLargeError{Method: method, Size: len(body)}
	}
	return c.conn.Call(ctx, method, json.RawMessage(body), result)
}

// TooLargeError means that a request was not sent, because it is larger than a daemon takes.
type TooLargeError struct {
	Method string
	Size   int // of the params
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the params of %s have %d bytes, but a message has at most %d; send them in parts, or store them in a file and send its path",
		e.Method, e.Size, protocol.MaxFrame)
}

// envelope is more than what a request has beside its params.
const envelope = 256

// Initialize opens the connection under a name.
func (c *Client) Initialize(ctx context.Context, name string) (*protocol.InitializeResult, error) {
	r := new(protocol.InitializeResult)
	return r, c.Call(ctx, "initialize", protocol.InitializeParams{ClientInfo: protocol.ClientInfo{Name: name}}, r)
}

// HandKeys hands the daemon the API keys that it wants and that getenv has: a key that was exported after the daemon had
// started works at once. They stay in the daemon's memory.
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

// Gone is closed when the connection has ended.
func (c *Client) Gone() <-chan struct{} { return c.conn.DisconnectNotify() }

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// Lost tells whether an error is the loss of the connection, and no answer of the daemon.
func Lost(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, jsonrpc2.ErrClosed) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
