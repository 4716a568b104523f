package rpc_test

import (
	"io"
	"testing"
	"time"

	"lashd/rpc"
)

// emptyParams are the ways in which clients write that a method has no params: Emacs' jsonrpc.el sends null, many Lua encoders [].
var emptyParams = []string{"null", "[]", "[ ]"}

func TestEmptyParams(t *testing.T) {
	daemon := newFixture(t)
	for name, frame := range map[string]func(string) string{"lines": func(s string) string { return s + "\n" }, "headers": cl} {
		for _, params := range emptyParams {
			t.Run("outside/18 "+name+" params "+params, func(t *testing.T) {
				w := daemon.dialSocket(t)
				w.headers = name == "headers"
				ask := func(method, want string) {
					t.Helper()
					w.send(frame(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`))
					if got := told(t, w.frame(t)); got != want {
						t.Errorf("%s was answered %s, want %s", method, got, want)
					}
				}
				ask("turn/read", map[bool]string{true: "1 -32600 notInitialized never none", false: param("/turnId")}[w.headers])
				w.send(frame(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"clientInfo":{"name":"t"}}}`))
				w.frame(t)
				w.send(frame(`{"jsonrpc":"2.0","method":"initialized","params":` + params + `}`))
				ask("initialize", param("/clientInfo"))
				ask("turn/read", param("/turnId"))
				for _, method := range []string{"ping", "rpc/discover", "server/status", "session/list", "model/list", "shutdown"} {
					ask(method, "1 ok")
				}
				w.send(frame(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":` + params + `}`))
				w.usable(t)
				w.send(frame(`{"jsonrpc":"2.0","method":"exit","params":` + params + `}`))
				if frame, err := w.next(); err != io.EOF {
					t.Errorf("after exit came %q and %v, want the end", frame, err)
				}
			})
		}
	}
	t.Run("outside/18 every method accepts null for missing params", func(t *testing.T) {
		w := daemon.dialSocket(t)
		for method, m := range rpc.Methods() {
			if m.Waits {
				continue // some of them wait forever
			}
			var got [2]string
			for i, params := range []string{`,"params":null`, ""} {
				w.send(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"` + params + "}\n")
				got[i] = told(t, w.frame(t))
			}
			if got[0] != got[1] {
				t.Errorf("%s with null was answered %s, without params %s", method, got[0], got[1])
			}
		}
	})
	t.Run("outside/18 null on a connection that must be initialized", func(t *testing.T) {
		p := daemon.dial(t, true)
		w := &wire{Conn: p.Conn, in: p.in}
		w.SetDeadline(time.Now().Add(time.Minute))
		w.send(call("ping", "null"))
		if got := told(t, w.frame(t)); got != "1 ok" {
			t.Errorf("ping was answered %s", got)
		}
		w.send(`{"jsonrpc":"2.0","method":"exit","params":null}` + "\n")
		if frame, err := w.next(); err != io.EOF {
			t.Errorf("after exit came %q and %v, want the end", frame, err)
		}
	})
}
