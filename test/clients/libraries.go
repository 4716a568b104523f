package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/creachadair/jrpc2"
	"github.com/creachadair/jrpc2/channel"
	"golang.org/x/exp/jsonrpc2"
)

// jrpc2Client is a client on github.com/creachadair/jrpc2.
type jrpc2Client struct {
	*jrpc2.Client
	stopped chan struct{}
}

func jrpc2Lines(s stream, heard func(json.RawMessage)) (client, error) {
	return newJRPC2(channel.Line(s, s), heard), nil
}

func jrpc2Headers(s stream, heard func(json.RawMessage)) (client, error) {
	return newJRPC2(channel.LSP(s, s), heard), nil
}

func newJRPC2(c channel.Channel, heard func(json.RawMessage)) jrpc2Client {
	stopped := make(chan struct{})
	return jrpc2Client{stopped: stopped, Client: jrpc2.NewClient(c, &jrpc2.ClientOptions{
		OnNotify: func(r *jrpc2.Request) {
			var params json.RawMessage
			if r.Method() == "session/event" && r.UnmarshalParams(&params) == nil {
				heard(params)
			}
		},
		OnStop: func(*jrpc2.Client, error) { close(stopped) },
	})}
}

func (c jrpc2Client) call(method string, params json.RawMessage) (result json.RawMessage, err error) {
	err = c.CallResult(context.Background(), method, params, &result)
	return result, err
}

func (c jrpc2Client) notify(method string) error { return c.Notify(context.Background(), method, nil) }

// wait waits for the end of the connection and for the delivery of earlier messages, which the library
// hands over in any order.
func (c jrpc2Client) wait() {
	<-c.stopped
	c.Close() // reports that the other end has closed
}

// xClient is a client on golang.org/x/exp/jsonrpc2 with that library's default framing, which uses
// headers.
type xClient struct{ *jsonrpc2.Connection }

// dialled is an existing connection as a dialer.
type dialled struct{ stream }

// Dial implements jsonrpc2.Dialer.
func (d dialled) Dial(context.Context) (io.ReadWriteCloser, error) { return d.stream, nil }

func xJSONRPC2(s stream, heard func(json.RawMessage)) (client, error) {
	handler := jsonrpc2.HandlerFunc(func(_ context.Context, r *jsonrpc2.Request) (any, error) {
		if r.Method == "session/event" {
			heard(r.Params)
		}
		return nil, nil
	})
	c, err := jsonrpc2.Dial(context.Background(), dialled{s}, jsonrpc2.ConnectionOptions{Handler: handler})
	return xClient{c}, err
}

func (c xClient) call(method string, params json.RawMessage) (result json.RawMessage, err error) {
	err = c.Call(context.Background(), method, params).Await(context.Background(), &result)
	return result, err
}

func (c xClient) notify(method string) error { return c.Notify(context.Background(), method, nil) }

func (c xClient) wait() { c.Wait() } // reports that the other end has closed
