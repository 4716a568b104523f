package rpc_test

import (
	"fmt"
	"strings"
	"testing"
)

func members(m string) string { return `{"jsonrpc":"2.0",` + m + "}\n" }

func missing(name, near string) string {
	words := fmt.Sprintf("%s -32601 methodNotFound never none", name)
	if near != "" {
		words += "  ~" + near
	}
	return words
}

func batch(n int, entry string) string {
	return "[" + strings.Repeat(entry+",", n-1) + entry + "]\n"
}

const note = `{"jsonrpc":"2.0","method":"initialized"}`

// envelopes are JSON, but no request; some only look so.
var envelopes = []badCase{
	{in: "null\n", want: []string{"null " + invalid}},
	{in: "5\n", want: []string{"null " + invalid}},
	{in: `"ping"` + "\n", want: []string{"null " + invalid}},
	{in: "true\n", want: []string{"null " + invalid}},
	{in: "{}\n", want: []string{"null " + invalid}},
	{in: `{"id":1,"method":"ping"}` + "\n", want: []string{"1 " + invalid}},
	{in: `{"jsonrpc":"1.0","id":1,"method":"ping"}` + "\n", want: []string{"1 " + invalid}},
	{in: `{"jsonrpc":2.0,"id":1,"method":"ping"}` + "\n", want: []string{"1 " + invalid}},
	{in: `{"jsonrpc":null,"id":1,"method":"ping"}` + "\n", want: []string{"1 " + invalid}},
	{in: `{"jsonrpc":["2.0"],"id":1,"method":"ping"}` + "\n", want: []string{"1 " + invalid}},
	{in: `{"JSONRPC":"2.0","id":1,"method":"ping"}` + "\n", want: []string{"1 " + invalid}},
	{in: `{"jsonrpc":"\u0032.0","id":1,"method":"ping"}` + "\n", want: []string{"1 ok"}},
	{in: members(`"id":1`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":null`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":5`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":["ping"]`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":{"name":"ping"}`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":""`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":"ping\n"`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":"ping\u0000"`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":"` + strings.Repeat("m", 257) + `"`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":"` + strings.Repeat("m", 66560) + `"`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"METHOD":"ping"`), want: []string{"1 " + invalid}},
	{in: members(`"id":null,"method":"ping"`), want: []string{"null " + invalid}},
	{in: members(`"id":true,"method":"ping"`), want: []string{"null " + invalid}},
	{in: members(`"id":{},"method":"ping"`), want: []string{"null " + invalid}},
	{in: members(`"id":[1],"method":"ping"`), want: []string{"null " + invalid}},
	{in: members(`"id":1.50,"method":"ping"`), want: []string{"1.50 ok"}},
	{in: members(`"id":-0,"method":"ping"`), want: []string{"-0 ok"}},
	{in: members(`"id":1e400,"method":"ping"`), want: []string{"1e400 ok"}},
	{in: members(`"id":9007199254740993,"method":"ping"`), want: []string{"9007199254740993 ok"}},
	{in: members(`"id":"","method":"ping"`), want: []string{`"" ok`}},
	{in: members(`"id":"\u0061\u0000","method":"ping"`), want: []string{`"\u0061\u0000" ok`}},
	{in: members(`"id":1,"method":"turn/read","params":null`), want: []string{param("/turnId")}},
	{in: members(`"id":1,"method":"ping","params":5`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":"ping","params":"{}"`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":"ping","params":false`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":"ping","paramſ":{}`), want: []string{"1 " + invalid + "  ~params"}},
	{in: members(`"id":1,"method":"ping","meta":{}`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":"ping","_meta":{}`), want: []string{"1 ok"}},
	{in: members(`"id":1,"method":"ping","result":1`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"method":"ping","error":{}`), want: []string{"1 " + invalid}},
	{in: members(`"id":1,"result":{}`)},
	{in: members(`"id":"ses","error":{"code":-32603,"message":"x"}`)},
	{in: `{"id":7,"result":null}` + "\n"},
	{in: members(`"method":"session/new","params":{"cwd":"$dir"}`)},
	{in: members(`"method":"turn/start","params":{"sessionId":"$idle","input":[{"type":"text","text":"x"}]}`)},
	{in: members(`"method":"session/delete","params":{"sessionId":"$idle"}`)},
	{in: members(`"method":"shutdown","params":{"daemon":true}`)},
	{in: members(`"method":"no/such"`)},
	{in: members(`"method":"$/cancelRequest","params":[1]`)},
	{in: members(`"method":"$/cancelRequest","params":{"id":"none"}`)},
	{in: members(`"method":"$/cancelRequest","params":{"id":{"a":[]}}`)},
	{in: members(`"method":"notifications/cancelled"`)},
	{in: members(`"method":"ping","params":5`), want: []string{"null " + invalid}},
	{in: members(`"id":1,"method":"turn/strat"`), want: []string{missing("1", "turn/start")}},
	{in: members(`"id":1,"method":"Turn/Start"`), want: []string{missing("1", "turn/start")}},
	{in: members(`"id":1,"method":"session/lst"`), want: []string{missing("1", "session/list")}},
	{in: members(`"id":1,"method":"pin"`), want: []string{missing("1", "ping")}},
	{in: members(`"id":1,"method":"no/such/method"`), want: []string{missing("1", "")}},
	{in: members(`"id":1,"method":"exit"`), want: []string{missing("1", "")}},
	{in: members(`"id":1,"method":"$/cancelRequest","params":{"id":1}`), want: []string{missing("1", "")}},
	{in: members(`"id":1,"method":"рing"`), want: []string{missing("1", "ping")}},
	{in: "[]\n", want: []string{"null " + invalid}},
	{in: "[1]\n", want: []string{"[null " + invalid + "]"}},
	{in: "[[]]\n", want: []string{"[null " + invalid + "]"}},
	{in: "[null,{}]\n", want: []string{"[null " + invalid + "; null " + invalid + "]"}},
	{in: "[" + ping + ",\n", want: []string{parse}},
	{in: "[" + ping + "," + ping + "]\n", want: []string{"[1 ok; 1 " + invalid + "]"}},
	{in: "[" + ping + `,{"foo":1},` + note + `,{"jsonrpc":"2.0","id":"x","method":"pong"}]` + "\n",
		want: []string{"[1 ok; null " + invalid + `; "x" -32601 methodNotFound never none  ~ping]`}},
	{in: `[{"jsonrpc":"2.0","id":5,"result":1}]` + "\n"},
	{in: `[{"jsonrpc":"2.0","id":5,"result":1},` + ping + "]\n", want: []string{"[1 ok]"}},
	{in: batch(32, note)},
	{in: batch(33, note), want: []string{"null " + invalid}},
	{in: batch(1000, "1"), want: []string{"null " + invalid}},
}

// testConduct sends requests that are wrong only because of their timing.
func testConduct(t *testing.T, f *fixture) {
	const wait = `"method":"turn/wait","params":{"turnId":"$running"}`
	w := f.dialSocket(t)
	for _, c := range []badCase{
		{in: members(`"id":7,`+wait) + members(`"id":7,"method":"ping"`), want: []string{"7 " + invalid}},
		{in: members(`"id":"a",`+wait) + members(`"id":"\u0061","method":"ping"`), want: []string{`"\u0061" ` + invalid}},
		{in: members(`"id":"7","method":"ping"`) + members(`"id":7.0,"method":"ping"`), want: []string{`"7" ok`, "7.0 ok"}},
		{in: members(`"method":"$/cancelRequest","params":{"id":7}`), want: []string{"7 -32800 cancelled now none"}},
		{in: members(`"method":"$/cancelRequest","params":{"id":7}`)},
	} {
		f.check(t, w, c)
	}
	for i := range 63 { // with "a", as many as may be in flight
		w.send(f.words.Replace(members(fmt.Sprintf(`"id":"w%d",%s`, i, wait))))
	}
	w.send(ping + "\n")
	if got, want := told(t, w.frame(t)), "1 -32001 overloaded now none"; got != want {
		t.Errorf("the 65th request was answered %s, want %s", got, want)
	}
	f.check(t, w, badCase{in: members(`"method":"notifications/cancelled","params":{"requestId":"w5"}`), want: []string{`"w5" -32800 cancelled now none`}})
}

// testStrict uses a connection that requires initialize.
func testStrict(t *testing.T, f *fixture) {
	p := f.dial(t, true)
	w := &wire{Conn: p.Conn, in: p.in}
	for _, c := range []badCase{
		{in: call("session/list", `{}`), want: []string{"1 -32600 notInitialized never none"}},
		{in: call("turn/start", `{"sessionId":5}`), want: []string{"1 -32600 notInitialized never none"}},
		{in: call("no/such", `{}`), want: []string{missing("1", "")}},
		{in: call("initialize", `{}`), want: []string{param("/clientInfo")}},
		{in: call("initialize", `{"clientInfo":{}}`), want: []string{param("/clientInfo/name")}},
		{in: call("session/list", `{}`), want: []string{"1 -32600 notInitialized never none"}},
		{in: "[" + ping + `,{"jsonrpc":"2.0","id":2,"method":"session/list"}]` + "\n", want: []string{"[1 ok; 2 -32600 notInitialized never none]"}},
		{in: call("initialize", `{"clientInfo":{"name":"t"}}`), want: []string{"1 ok"}},
		{in: call("session/list", `{}`), want: []string{"1 ok"}},
		{in: call("initialize", `{"clientInfo":{"name":"again"}}`), want: []string{"1 " + invalid}},
	} {
		f.check(t, w, c)
	}
}
