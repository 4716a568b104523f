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

// served are the requests of servers that lashd answers: those that the protocol demands, and those that it declares a capability for.
var served = map[string]bool{"ping": true, "elicitation/create": true}

// received guards what comes from a server: requests that were not declared are refused, too many messages end the connection, and a
// panic about one is an error.
func (l *life) received(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (_ sdk.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				err = fmt.Errorf("panic: %v", p)
				l.abort(child.Protocol, fmt.Errorf("sends %q, which led to a panic: %v", method, p))
			}
		}()
		l.mu.Lock()
		allowed := l.notices.Allow(maxNotices)
		l.mu.Unlock()
		if !allowed {
			l.abort(child.Protocol, errors.New("sends too many notifications"))
		}
		if !served[method] && !strings.HasPrefix(method, "notifications/") {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("method not found: %q; lashd did not declare it", method)}
		}
		return next(ctx, method, r)
	}
}
