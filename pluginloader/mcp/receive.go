package mcp

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/pluginloader/child"
)

// served lists the requests of servers that lashd answers: those that MCP requires, and those of
// capabilities that lashd declares.
var served = map[string]bool{"ping": true, "elicitation/create": true}

// received is middleware for every message of a server. It rejects requests for capabilities that
// lashd did not declare, ends the connection after too many messages, and turns a panic in a
// handler into an error.
func (l *life) received(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (_ sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
				l.abort(child.Protocol, fmt.Errorf("sent %q, which caused a panic: %v", method, p))
			}
		}()
		l.mu.Lock()
		allowed := l.notices.Allow(maxNotices)
		l.mu.Unlock()
		if !allowed {
			l.abort(child.Protocol, errors.New("sent too many notifications"))
		}
		if method == "roots/list" && l.server.end.URL == "" {
			return l.roots(ctx), nil
		}
		if !served[method] && !(l.samples && method == "sampling/createMessage") && !strings.HasPrefix(method, "notifications/") {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q; lashd did not declare it", method)}
		}
		return next(ctx, method, r)
	}
}
