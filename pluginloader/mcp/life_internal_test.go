package mcp

import (
	"context"
	"errors"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

func TestBecause(t *testing.T) {
	ended := errors.New("the server has ended")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	refusal := &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "there is no initialize"}
	t.Run("runtime/K05 a server that rejects the handshake and exits counts as rejecting it", func(t *testing.T) {
		if err := because(ctx, refusal); !refused(err) {
			t.Errorf("%v", err)
		}
	})
	t.Run("runtime/K05 a failure at the end of the context has its cause", func(t *testing.T) {
		if err := because(ctx, ctx.Err()); !errors.Is(err, ended) {
			t.Errorf("%v", err)
		}
	})
}
