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
	t.Run("runtime/K05 a server that refuses a greeting, and is gone by the time that this is looked at, has refused it", func(t *testing.T) {
		if err := because(ctx, refusal); !refused(err) {
			t.Errorf("%v", err)
		}
	})
	t.Run("runtime/K05 what fails because the context is done tells why", func(t *testing.T) {
		if err := because(ctx, ctx.Err()); !errors.Is(err, ended) {
			t.Errorf("%v", err)
		}
	})
}
