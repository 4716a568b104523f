package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/internal/strictjson"
)

// handler answers a method. It admits the next message as soon as that may take effect.
type handler func(ctx context.Context, a *agent, r *request, params json.RawMessage) (any, error)

// methods are what editors may call.
var methods = map[string]handler{
	sdk.AgentMethodInitialize:             bind((*agent).initialize),
	sdk.AgentMethodAuthenticate:           bind((*agent).authenticate),
	sdk.AgentMethodSessionNew:             bind((*agent).newSession),
	sdk.AgentMethodSessionLoad:            bind((*agent).loadSession),
	sdk.AgentMethodSessionResume:          bind((*agent).resumeSession),
	sdk.AgentMethodSessionList:            bind((*agent).listSessions),
	sdk.AgentMethodSessionClose:           bind((*agent).closeSession),
	sdk.AgentMethodSessionFork:            bind((*agent).forkSession),
	methodSessionDelete:                   bind((*agent).deleteSession),
	sdk.AgentMethodSessionPrompt:          bind((*agent).prompt),
	sdk.AgentMethodSessionCancel:          bind((*agent).cancel),
	sdk.AgentMethodSessionSetMode:         bind((*agent).setMode),
	sdk.AgentMethodSessionSetModel:        bind((*agent).setModel),
	sdk.AgentMethodSessionSetConfigOption: bind((*agent).setConfigOption),
}

// methodSessionDelete is not in the SDK yet.
const methodSessionDelete = "session/delete"

// none is the result of a method that has none.
type none struct{}

// checked is what the SDK knows of params beyond their shape.
type checked interface{ Validate() error }

func bind[P, R any](do func(*agent, context.Context, *request, *P) (R, error)) handler {
	return func(ctx context.Context, a *agent, r *request, params json.RawMessage) (any, error) {
		p := new(P)
		if len(params) > 0 && !strictjson.IsEmptyArray(params) {
			if err := json.Unmarshal(params, p); err != nil {
				return nil, bad(pointerIn(err), reason(err))
			}
		}
		if c, ok := any(p).(checked); ok {
			if err := c.Validate(); err != nil {
				return nil, bad(pointerIn(err), reason(err))
			}
		}
		return do(a, ctx, r, p)
	}
}

// reason is what an error of the SDK says of params. The SDK speaks of variants where a value may be one of several objects.
func reason(err error) string {
	text := strictjson.Reason(err)
	if strings.Contains(text, "variant") {
		return "the params contain an invalid object: its type is unknown, or a member is missing or has the wrong type"
	}
	return text
}

// pointerIn leads to what is wrong, as far as the error tells.
func pointerIn(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return "/" + strings.ReplaceAll(wrong.Field, ".", "/")
	}
	if name, ok := strings.CutSuffix(err.Error(), " is required"); ok {
		return "/" + name
	}
	return ""
}

// handle is called by the SDK, for each request on a goroutine of its own.
func (a *agent) handle(ctx context.Context, method string, params json.RawMessage) (result any, problem *sdk.RequestError) {
	r := a.wire.take()
	defer r.admit()
	defer func() {
		if p := recover(); p != nil {
			a.Log.Error("panic in a request of the editor", "method", method, "panic", p, "stack", string(debug.Stack()))
			result, problem = nil, internalError()
		}
	}()
	result, err := a.do(ctx, r, method, params)
	if err == nil {
		return result, nil
	}
	problem = requestError(err)
	if r.id == "" && !strings.HasPrefix(method, "_") {
		a.Log.Warn("could not handle a notification of the editor", "method", method, "error", problem.Message)
	}
	return nil, problem
}

func (a *agent) do(ctx context.Context, r *request, method string, params json.RawMessage) (any, error) {
	do, known := methods[method]
	switch {
	case !known:
		return nil, unknownMethod(method)
	case r.id == "" && method != sdk.AgentMethodSessionCancel:
		return nil, invalidRequest("this method is a request and needs an id")
	case method != sdk.AgentMethodInitialize && !a.initialized():
		return nil, notInitialized()
	}
	return do(ctx, a, r, params)
}

func (a *agent) initialized() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ready
}

// authenticate has nothing to do: who may start lashd is who it works for, and keys of models are the daemon's.
func (a *agent) authenticate(_ context.Context, _ *request, p *sdk.AuthenticateRequest) (*none, error) {
	return nil, bad("/methodId", fmt.Sprintf("unknown authentication method %q; lashd needs no authentication", p.MethodId))
}
