package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

const number = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`

// called records the session id that an operation was called with, or "-" without one.
func called(id protocol.SessionID) json.RawMessage {
	if id == "" {
		return raw(`"-"`)
	}
	return raw(`"` + string(id) + `"`)
}

func echo(_ context.Context, call *plugin.OperationCall) (json.RawMessage, error) {
	return called(call.SessionID), nil
}

func info(name string, rule protocol.SessionRule) protocol.OperationInfo {
	return protocol.OperationInfo{Name: name, Session: rule}
}

func queries(register func(plugin.OperationGroup)) plugin.Factory {
	return with("p", func(r *plugin.Registrar) { register(r.Operations()) })
}

func code(err error) plugin.OperationCode {
	e, _ := errors.AsType[*plugin.OperationError](err)
	if e == nil {
		return ""
	}
	return e.Code
}

func TestOperations(t *testing.T) {
	t.Run("plugin/OP-02 operations are listed by name, with owner, kind and schemas", func(t *testing.T) {
		s := open(t, with("b", func(r *plugin.Registrar) {
			r.Operations().Task(protocol.OperationInfo{Name: "c", Input: raw(number), Session: protocol.SessionOptional}, command)
		}), with("a", func(r *plugin.Registrar) {
			r.Operations().Query(protocol.OperationInfo{Name: "d", Description: "reads", Output: raw(number), Plugin: "?", Kind: "?"}, query)
			r.Operations().Command(protocol.OperationInfo{Name: "b"}, command)
		}))
		want := []protocol.OperationInfo{
			{Name: "b", Plugin: "a", Kind: "command", Session: "required"},
			{Name: "c", Plugin: "b", Kind: "task", Session: "optional", Input: raw(number)},
			{Name: "d", Plugin: "a", Kind: "query", Session: "required", Description: "reads", Output: raw(number)},
		}
		if diff := cmp.Diff(want, s.Operations()); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("plugin/OP-03 plugin/S-10 the session rule, for every way to name a session", sessionRules)
	t.Run("plugin/OP-10 an operation of another kind is unknown", func(t *testing.T) {
		s := open(t, queries(func(g plugin.OperationGroup) {
			g.Query(info("q", "forbidden"), echo)
			g.Command(info("c", "forbidden"), command)
			g.Task(info("t", "forbidden"), command)
		}))
		kinds := map[string]func(string) error{
			"q": func(name string) error {
				_, err := s.Query(t.Context(), name, &plugin.OperationCall{}, plugin.Target{})
				return err
			},
			"c": func(name string) error {
				_, err := s.Command(t.Context(), name, &plugin.OperationCall{}, plugin.Target{})
				return err
			},
			"t": func(name string) error {
				_, err := s.Task(t.Context(), name, &plugin.OperationCall{}, plugin.Target{})
				return err
			},
		}
		for kind, call := range kinds {
			for _, name := range []string{"q", "c", "t", "none"} {
				want := plugin.UnknownOperation
				if name == kind {
					want = ""
				}
				if err := call(name); code(err) != want {
					t.Errorf("%s called as %s: %v", name, kind, err)
				}
			}
		}
	})
	t.Run("plugin/OP-10 errors come in the order name, session, arguments, handler", func(t *testing.T) {
		s := open(t, queries(func(g plugin.OperationGroup) {
			g.Query(protocol.OperationInfo{Name: "q", Input: raw(number)}, func(context.Context, *plugin.OperationCall) (json.RawMessage, error) { return nil, errBoom })
			g.Query(protocol.OperationInfo{Name: "loop", Input: raw(`{"$ref":"#"}`)}, echo)
		}))
		for _, c := range []struct{ name, args, session, want string }{
			{"none", `x`, "", `no operation "none" of this kind; operation/list lists all`},
			{"q", `x`, "", `operation "q" requires a session`},
			{"q", `{`, "s", `operation "q": arguments: unexpected end of JSON input`},
			{"q", `{"n":1}`, "s", `operation "q": plugin p: query: boom`},
			{"q", `{"n":"x"}`, "s", `operation "q": arguments: validating root: validating /properties/n: type: x has type "string", want "integer"`},
		} {
			_, err := s.Query(t.Context(), c.name, &plugin.OperationCall{Args: raw(c.args)}, plugin.Target{Explicit: new(protocol.SessionID(c.session))})
			if err == nil || err.Error() != c.want {
				t.Errorf("%+v: %v", c, err)
			}
		}
		for _, c := range [][2]string{{"q", `{}`}, {"q", ``}, {"q", `[]`}, {"loop", `{}`}} {
			name, args := c[0], c[1]
			_, err := s.Query(t.Context(), name, &plugin.OperationCall{Args: raw(args)}, plugin.Target{Current: true})
			if code(err) != plugin.OperationFailed || errors.Is(err, errBoom) {
				t.Errorf("arguments %s: %v", args, err)
			}
		}
		if _, err := newHost(t).Session("x"); code(err) != plugin.UnknownSession || err.Error() != `session "x" is not open` {
			t.Errorf("%v", err)
		}
	})
	t.Run("plugin/OP-07 plugin/OP-10 an invalid result fails the operation", badResults)
}
