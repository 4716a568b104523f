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
	"lashd/rpc/protocol"
)

// handler answers one method. It must call r.admit as soon as a later message may
// take effect before it finishes; until then the next message is not read. handle
// admits after the handler returns, in any case.
type handler func(ctx context.Context, a *agent, r *request, params json.RawMessage) (any, error)

// methods maps the name of each method that editors may call to its handler.
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
	methodSessionSetTitle:                 bind((*agent).setTitle),
	methodSessionArchive:                  bind((*agent).archiveSession),
	methodSessionUnarchive:                bind((*agent).unarchiveSession),
	sdk.AgentMethodSessionPrompt:          bind((*agent).prompt),
	sdk.AgentMethodSessionCancel:          bind((*agent).cancel),
	sdk.AgentMethodSessionSetMode:         bind((*agent).setMode),
	sdk.AgentMethodSessionSetModel:        bind((*agent).setModel),
	sdk.AgentMethodSessionSetConfigOption: bind((*agent).setConfigOption),
}

// methodSessionDelete is in the protocol but not in this version of the SDK.
const methodSessionDelete = "session/delete"

// none is an empty JSON object: the result of methods that return nothing.
type none struct{}

// checked is implemented by the SDK's params that have rules beyond their JSON
// types.
type checked interface{ Validate() error }

// bind makes a handler from a method of agent: it decodes and validates the
// params. Missing params and an empty array count as an empty object.
func bind[P, R any](do func(*agent, context.Context, *request, *P) (R, error)) handler {
	return func(ctx context.Context, a *agent, r *request, params json.RawMessage) (any, error) {
		p := new(P)
		if len(params) > 0 && !strictjson.IsEmptyArray(params) {
			if err := json.Unmarshal(params, p); err != nil {
				return nil, invalidParams(pointerIn(err), reason(err))
			}
		}
		if c, ok := any(p).(checked); ok {
			if err := c.Validate(); err != nil {
				return nil, invalidParams(pointerIn(err), reason(err))
			}
		}
		return do(a, ctx, r, p)
	}
}

// reason returns the text of a decoding error. The SDK's text about union types
// speaks of variants, which means nothing to a caller, so it is replaced.
func reason(err error) string {
	text := strictjson.Reason(err)
	if strings.Contains(text, "variant") {
		return "the params contain an invalid object: its type is unknown, or a member is missing or has the wrong type"
	}
	return text
}

// pointerIn returns the JSON pointer of the invalid value, if the error names it;
// otherwise an empty string.
func pointerIn(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return "/" + strings.ReplaceAll(wrong.Field, ".", "/")
	}
	if name, ok := strings.CutSuffix(err.Error(), " is required"); ok {
		return "/" + name
	}
	return ""
}

// handle is the SDK's entry point. The SDK calls it on a goroutine per message. It
// answers a panic with an internal error and logs the stack. Failed notifications
// have no answer, so they are logged; unknown ones that begin with an underscore
// are ignored, as the protocol asks.
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

// do checks that the method is known and allowed at this point, then calls its
// handler.
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

// Ids of the authentication methods: a person stores an API key of a model provider
// with lash login. No key goes through the editor.
const (
	loginMethod    = "lashd-login"    // the person runs it
	terminalMethod = "lashd-terminal" // the editor runs it in a terminal
)

// LoginFlag makes lashd acp log in on its terminal instead of serving an editor. The
// editor appends it to its command for terminalMethod.
const LoginFlag = "--login"

// authMethods announces loginMethod and, to an editor that has terminals for it,
// terminalMethod.
func authMethods(c sdk.ClientCapabilities) []sdk.AuthMethod {
	how := "Run lash login in a terminal and enter an API key of a model provider, or choose a local model server with lash model use. Then try again."
	manual := sdk.AuthMethod{Agent: &sdk.AuthMethodAgent{Id: loginMethod, Name: "Run lash login in a terminal", Description: &how}}
	if !c.Auth.Terminal {
		return []sdk.AuthMethod{manual}
	}
	about := "Asks for a model provider and its API key in a terminal of the editor."
	return []sdk.AuthMethod{{Terminal: &sdk.AuthMethodTerminalInline{Id: terminalMethod, Name: "Log in", Description: &about, Args: []string{LoginFlag}, Type: "terminal"}}, manual}
}

// authenticate succeeds once there is a model for new sessions. Otherwise it says
// what to do in a terminal.
func (a *agent) authenticate(ctx context.Context, r *request, p *sdk.AuthenticateRequest) (*none, error) {
	r.admit()
	if p.MethodId != loginMethod {
		return nil, invalidParams("/methodId", fmt.Sprintf("unknown authentication method %q; the only one that takes this request is %s", p.MethodId, loginMethod))
	}
	var models protocol.ModelListResult
	if err := a.daemon.call(ctx, "model/list", protocol.ModelListParams{}, &models); err != nil {
		return nil, err
	}
	if len(models.Data) == 0 {
		return nil, authRequired("no provider has an API key. Run lash login in a terminal, then try again", protocol.KindModelNotFound, protocol.EffectNone)
	}
	return &none{}, nil
}
