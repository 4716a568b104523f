package rpc

import (
	"context"
	"encoding/json"
	"reflect"

	"lashd/engine"
	"lashd/engine/trigger"
	"lashd/engine/undo"
	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// Method is an entry of the method table: what a request does, and what the schema and the documents say of it.
type Method struct {
	Group  string
	Doc    string
	Params reflect.Type
	Result reflect.Type
	Waits  bool // answers when something has happened, which may be long after; later requests do not wait for it
	Reads  bool // changes nothing, so that a request that fails has done nothing

	before bool // may come before initialize
	call   func(context.Context, *conn, json.RawMessage) (any, waiting, error)
}

// waiting is the part of a method that takes time; nil if there is none.
type waiting func(context.Context) (any, error)

// handler is what a request does, of the connection that it came by.
type handler[P, R any] = func(*conn, context.Context, *P) (*R, error)

// toEngine hands a request to the engine.
func toEngine[P, R any](f func(*engine.Engine, context.Context, *P) (*R, error)) handler[P, R] {
	return func(c *conn, ctx context.Context, p *P) (*R, error) { return f(c.eng, ctx, p) }
}

// to hands a request to a part of the engine.
func to[N, P, R any](noun func(*engine.Engine) N, f func(N, context.Context, *P) (*R, error)) handler[P, R] {
	return func(c *conn, ctx context.Context, p *P) (*R, error) { return f(noun(c.eng), ctx, p) }
}

func sessions(e *engine.Engine) *engine.Sessions       { return e.Sessions }
func turns(e *engine.Engine) *engine.Turns             { return e.Turns }
func inputs(e *engine.Engine) *engine.Queue            { return e.Queue }
func decisions(e *engine.Engine) *engine.Decisions     { return e.Decisions }
func tools(e *engine.Engine) *engine.Tools             { return e.Tools }
func operations(e *engine.Engine) *engine.Operations   { return e.Operations }
func tasks(e *engine.Engine) *engine.Tasks             { return e.Tasks }
func monitors(e *engine.Engine) *engine.Monitors       { return e.Monitors }
func completions(e *engine.Engine) *engine.Completions { return e.Completions }
func artifacts(e *engine.Engine) *engine.Artifacts     { return e.Artifacts }
func models(e *engine.Engine) *engine.Models           { return e.Models }
func triggers(e *engine.Engine) *trigger.Registry      { return e.Triggers }
func history(e *engine.Engine) *engine.History         { return e.History }
func snapshots(e *engine.Engine) *engine.Snapshots     { return e.Snapshots }
func files(e *engine.Engine) *undo.Files               { return e.Files }

// toAs hands a request to a part of the engine, and says which client makes it.
func toAs[N, P, R any](noun func(*engine.Engine) N, f func(N, context.Context, protocol.ClientID, *P) (*R, error)) handler[P, R] {
	return func(c *conn, ctx context.Context, p *P) (*R, error) { return f(noun(c.eng), ctx, c.client, p) }
}

// bind makes a method of a handler that answers at once.
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

// wait makes a method of a handler that takes time. Its params are checked in the order of arrival.
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

// then makes a method that first does something, in the order of arrival, and then waits.
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

func describe[P, R any](doc string) Method {
	return Method{Doc: doc, Params: reflect.TypeFor[P](), Result: reflect.TypeFor[R]()}
}

// early marks a method that may come before initialize.
func early(m Method) Method {
	m.before = true
	return m
}

// decode reads params. An empty array has no params in it, as many a Lua encoder writes an empty table.
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
