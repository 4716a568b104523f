package rpc

import (
	"context"
	"encoding/json"
	"reflect"

	"lashd/engine"
	"lashd/engine/artifact"
	"lashd/engine/export"
	"lashd/engine/imports"
	"lashd/engine/models"
	"lashd/engine/rulebook"
	"lashd/engine/search"
	"lashd/engine/trigger"
	"lashd/engine/undo"
	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// Method is an entry of the method table: its handler, its types, and its one-line documentation.
// The protocol's documents and schemas are generated from the exported fields.
type Method struct {
	Group  string
	Doc    string
	Params reflect.Type
	Result reflect.Type
	Waits  bool // may respond much later, without blocking later requests
	Reads  bool // changes nothing, so a failed request has no effect

	before bool // allowed before initialize
	call   func(context.Context, *conn, json.RawMessage) (any, waiting, error)
}

// waiting is the part of a method that may take long; nil if there is none.
type waiting func(context.Context) (any, error)

// handler runs a request of a connection. P is the type of its params, R that of its result.
type handler[P, R any] = func(*conn, context.Context, *P) (*R, error)

// toEngine adapts a method of the engine as a handler.
func toEngine[P, R any](f func(*engine.Engine, context.Context, *P) (*R, error)) handler[P, R] {
	return func(c *conn, ctx context.Context, p *P) (*R, error) { return f(c.eng, ctx, p) }
}

// to adapts a method of a part of the engine, which noun selects.
func to[N, P, R any](noun func(*engine.Engine) N, f func(N, context.Context, *P) (*R, error)) handler[P, R] {
	return func(c *conn, ctx context.Context, p *P) (*R, error) { return f(noun(c.eng), ctx, p) }
}

// The parts of the engine, for to and toAs.
func sessions(e *engine.Engine) *engine.Sessions       { return e.Sessions }
func turns(e *engine.Engine) *engine.Turns             { return e.Turns }
func inputs(e *engine.Engine) *engine.Queue            { return e.Queue }
func decisions(e *engine.Engine) *engine.Decisions     { return e.Decisions }
func rules(e *engine.Engine) *rulebook.Methods         { return e.Rules }
func tools(e *engine.Engine) *engine.Tools             { return e.Tools }
func code(e *engine.Engine) *engine.Code               { return e.Code }
func operations(e *engine.Engine) *engine.Operations   { return e.Operations }
func tasks(e *engine.Engine) *engine.Tasks             { return e.Tasks }
func monitors(e *engine.Engine) *engine.Monitors       { return e.Monitors }
func completions(e *engine.Engine) *engine.Completions { return e.Completions }
func artifacts(e *engine.Engine) *artifact.Artifacts   { return e.Artifacts }
func modelsOf(e *engine.Engine) *models.Catalog        { return e.Models }
func triggers(e *engine.Engine) *trigger.Registry      { return e.Triggers }
func history(e *engine.Engine) *engine.History         { return e.History }
func snapshots(e *engine.Engine) *engine.Snapshots     { return e.Snapshots }
func files(e *engine.Engine) *undo.Files               { return e.Files }
func imported(e *engine.Engine) *imports.Imports       { return e.Imports }
func exports(e *engine.Engine) *export.Exports         { return &export.Exports{Store: e.Store} }
func searches(e *engine.Engine) *search.Searches       { return e.Searches }

// toAs is to for methods that need the id of the client, because a call, a decision or an overlay
// belongs to one client.
func toAs[N, P, R any](noun func(*engine.Engine) N, f func(N, context.Context, protocol.ClientID, *P) (*R, error)) handler[P, R] {
	return func(c *conn, ctx context.Context, p *P) (*R, error) { return f(noun(c.eng), ctx, c.client, p) }
}

// bind returns a method whose handler responds immediately. It runs on the worker's goroutine, so
// later requests see its effects.
func bind[P, R any](doc string, f handler[P, R]) Method {
	m := describe[P, R](doc)
	m.call = func(ctx context.Context, c *conn, raw json.RawMessage) (any, waiting, error) {
		p, err := decode[P](raw)
		if err != nil {
			return nil, nil, err
		}
		r, err := f(c, ctx, p)
		return r, nil, err
	}
	return m
}

// wait returns a method whose handler may take long and runs on a goroutine of its own. Its params
// are still checked in order of arrival.
func wait[P, R any](doc string, f handler[P, R]) Method {
	m := describe[P, R](doc)
	m.Waits = true
	m.call = func(_ context.Context, c *conn, raw json.RawMessage) (any, waiting, error) {
		p, err := decode[P](raw)
		if err != nil {
			return nil, nil, err
		}
		return nil, func(ctx context.Context) (any, error) { return f(c, ctx, p) }, nil
	}
	return m
}

// then returns a method that acts in order of arrival, on the worker's goroutine, and then waits on
// a goroutine of its own.
func then[P, R any](doc string, f func(*conn, context.Context, *P) (func(context.Context) (*R, error), error)) Method {
	m := describe[P, R](doc)
	m.Waits = true
	m.call = func(ctx context.Context, c *conn, raw json.RawMessage) (any, waiting, error) {
		p, err := decode[P](raw)
		if err != nil {
			return nil, nil, err
		}
		rest, err := f(c, ctx, p)
		if err != nil {
			return nil, nil, err
		}
		return nil, func(ctx context.Context) (any, error) { return rest(ctx) }, nil
	}
	return m
}

// describe fills in the types of a method.
func describe[P, R any](doc string) Method {
	return Method{Doc: doc, Params: reflect.TypeFor[P](), Result: reflect.TypeFor[R]()}
}

// early marks a method that a client may call before initialize.
func early(m Method) Method {
	m.before = true
	return m
}

// decode decodes params strictly. It accepts an empty array as no params, because Lua encoders
// write empty tables that way. Wrong params are a *strictjson.Error, which becomes invalidParams.
func decode[P any](raw json.RawMessage) (*P, error) {
	p := new(P)
	if len(raw) == 0 || strictjson.IsEmptyArray(raw) {
		raw = json.RawMessage(`{}`)
	}
	if err := strictjson.Decode(raw, p); err != nil {
		return nil, err
	}
	return p, nil
}
