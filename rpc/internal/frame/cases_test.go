package frame

import (
	"fmt"
	"strings"
	"testing"
	"testing/iotest"
)

const (
	ping   = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	note   = `{"jsonrpc":"2.0","method":"note"}`
	parse0 = "-32700/parseError(null)"
	inv0   = "-32600/invalidRequest(null)"
	inv1   = "-32600/invalidRequest(1)"
	bad    = "-32700/badFrame(null) closed:badFrame"
	large  = "-32600/frameTooLarge(null) closed:frameTooLarge"
	other  = "-32600/foreignProtocol(null) closed:foreignProtocol"
)

// cl puts a header before body.
func cl(body string) string {
	return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

func req(members string) string { return `{"jsonrpc":"2.0",` + members + "}\n" }

func id(raw string) string { return req(`"method":"m","id":` + raw) }

func holds(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(req(fmt.Sprintf(`"id":"h%d","method":"hold"`, i)))
	}
	return b.String()
}

func oks(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `ok("h%d") `, i)
	}
	return b.String()
}

func list(n int, entry string) string {
	return "[" + strings.Repeat(entry+",", n-1) + entry + "]\n"
}

type scene struct{ in, want string }

var framingCases = []scene{
	{"", "open"},
	{"\n", "open"},
	{" \r\n\t\n", "open"},
	{ping + "\n", "ok(1) open"},
	{ping + "\r\n", "ok(1) open"},
	{ping, "ok(1) open"},
	{"\n\n" + ping + "\n\n\r\n" + note + "\n \n", "[note] ok(1) open"},
	{"  " + ping + "  \n" + ping + "\n", "ok(1) ok(1) open"},
	{ping[:10], "cut"},
	{ping[:len(ping)-1], "cut"},
	{"5", "cut"},
	{cl(ping), "ok(1) open"},
	{cl(ping) + cl(note) + cl(ping), "[note] ok(1) ok(1) open"},
	{"\r\n\n" + cl(ping), "ok(1) open"},
	{"Content-Length: 40\n\n" + ping, "ok(1) open"},
	{"content-length:40\r\n\r\n" + ping, "ok(1) open"},
	{"CONTENT-LENGTH: \t40 \r\n\r\n" + ping, "ok(1) open"},
	{"Content-Length: 0040\r\n\r\n" + ping, "ok(1) open"},
	{"Content-Type: application/vscode-jsonrpc; charset=utf-8\r\n" + cl(ping), "ok(1) open"},
	{"X-Trace: 1\r\n" + cl(ping), "ok(1) open"},
	{strings.Repeat("X: 1\r\n", 15) + cl(ping), "ok(1) open"},
	{cl("\n" + ping + "\n"), "ok(1) open"},
	{cl(ping[:5] + "\n" + ping[5:]), parse0 + " open"},
	{cl(ping) + ping + "\n", "ok(1) " + bad},
	{cl(ping) + "\r\n" + cl(ping), "ok(1) " + bad},
	{cl(ping) + "GET / HTTP/1.1\r\n\r\n", "ok(1) " + bad},
	{"Content-Length: 0\r\n\r\n" + cl(ping), parse0 + " ok(1) open"},
	{cl("{") + cl(ping), parse0 + " ok(1) open"},
	{"Content-Length: 39\r\n\r\n" + ping, parse0 + " cut"},
	{"Content-Length: 41\r\n\r\n" + ping, "cut"},
	{"Content-Length: 40\r\n\r\n", "cut"},
	{"Content-Length: 40\r\n", "cut"},
	{"Content-Length: 40", "cut"},
	{"Content-Length:", "cut"},
	{"Content-Len", "cut"},
	{cl(ping) + "C", "ok(1) cut"},
	{"Content-Length: -1\r\n\r\n" + ping, bad},
	{"Content-Length: +40\r\n\r\n" + ping, bad},
	{"Content-Length: 0x28\r\n\r\n" + ping, bad},
	{"Content-Length: 4 0\r\n\r\n" + ping, bad},
	{"Content-Length: 40.0\r\n\r\n" + ping, bad},
	{"Content-Length: 4e1\r\n\r\n" + ping, bad},
	{"Content-Length: 40, 40\r\n\r\n" + ping, bad},
	{"Content-Length: \r\n\r\n" + ping, bad},
	{"Content-Length: \u0664\u0660\r\n\r\n" + ping, bad},
	{"Content-Length: 40\x00\r\n\r\n" + ping, bad},
	{"Content-Length: 40\r\nContent-Length: 40\r\n\r\n" + ping, bad},
	{"Content-Length: 40\r\ncontent-length: 41\r\n\r\n" + ping, bad},
	{"Content-Type: x\r\n\r\n" + ping, bad},
	{"Content-Length: 40\r\nrubbish\r\n\r\n" + ping, bad},
	{"Content-Length: 40\r\n: x\r\n\r\n" + ping, bad},
	{"Content-Length: 40\r\nX Y: x\r\n\r\n" + ping, bad},
	{"Content-Length: 40\r\n X: folded\r\n\r\n" + ping, bad},
	{"Content-Length: 40\r\nX\u00e9: x\r\n\r\n" + ping, bad},
	{"Content-Length: 40\rX: y\r\n\r\n" + ping, bad},
	{"Content-Length: 8388609\r\n\r\n", large},
	{"Content-Length: 99999999999999999999999\r\n\r\n", large},
	{"Content-Length: 9223372036854775807\r\n\r\n", large},
	{"Content-Length: 8388608\r\n\r\n" + ping, "cut"},
	{"X: " + strings.Repeat("y", 2000) + "\r\n" + cl(ping), bad},
	{strings.Repeat("x", 5000), bad},
	{strings.Repeat("X: 1\r\n", 16) + cl(ping), bad},
	{"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n", other},
	{"POST /rpc HTTP/1.1\r\nContent-Length: 40\r\n\r\n" + ping, other},
	{"PUT / HTTP/1.1\r\n", other},
	{"HEAD / HTTP/1.0\r\n", other},
	{"DELETE /x HTTP/1.1\r\n", other},
	{"OPTIONS * HTTP/1.1\r\n", other},
	{"CONNECT a:1 HTTP/1.1\r\n", other},
	{"PATCH / HTTP/1.1\r\n", other},
	{"TRACE / HTTP/1.1\r\n", other},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", other},
	{"HTTP/1.1 400 Bad Request\r\n", other},
	{"\r\nGET / HTTP/1.1\r\n", other},
	{"SSH-2.0-OpenSSH_9.6\r\n", other},
	{"\x16\x03\x01\x02\x00\x01\x00", other},
	{"GET\n" + ping + "\n", parse0 + " ok(1) open"},
	{"get / http\n" + ping + "\n", parse0 + " ok(1) open"},
	{"\x16\x02\n" + ping + "\n", parse0 + " ok(1) open"},
	{"hello world\n" + ping + "\n", parse0 + " ok(1) open"},
	{"<xml/>\n" + ping + "\n", parse0 + " ok(1) open"},
}

var jsonCases = []scene{
	{"{\n", parse0 + " open"},
	{"{}}\n", parse0 + " open"},
	{ping + ping + "\n", parse0 + " open"},
	{ping + " x\n", parse0 + " open"},
	{"\xef\xbb\xbf" + ping + "\n", parse0 + " open"},
	{"\x00\n", parse0 + " open"},
	{"{'jsonrpc':'2.0'}\n", parse0 + " open"},
	{req(`"id":1,"id":2,"method":"m"`), parse0 + " open"},
	{req(`"id":1,"method":"a","\u006dethod":"b"`), parse0 + " open"},
	{req(`"id":1,"method":"m","params":{"a":1,"a":2}`), parse0 + " open"},
	{req(`"id":1,"method":"m","params":["\ud800"]`), parse0 + " open"},
	{req("\"id\":1,\"method\":\"m\",\"params\":[\"\xff\"]"), parse0 + " open"},
	{req("\"id\":1,\"method\":\"m\",\"params\":[\"\xc0\x80\"]"), parse0 + " open"},
	{req("\"id\":1,\"method\":\"m\x00\""), parse0 + " open"},
	{req(`"id":1,"method":"m","params":[NaN]`), parse0 + " open"},
	{req(`"id":1,"method":"m","params":[01]`), parse0 + " open"},
	{req(`"id":1,"method":"m","params":[1,]`), parse0 + " open"},
	{req(`"id":1,"method":"m","params":` + strings.Repeat("[", 64) + strings.Repeat("]", 64)), parse0 + " open"},
	{req(`"id":1,"method":"m","params":` + strings.Repeat("[", 63) + strings.Repeat("]", 63)), "ok(1) open"},
	{req(`"id":1,"method":"m","params":[` + strings.Repeat("{},", 1<<18) + `{}]`), parse0 + " open"},
	{req(`"id":1,"method":"m","params":[1e400,-0,9007199254740993]`), "ok(1) open"},
	{"{\n" + ping + "\n", parse0 + " ok(1) open"},
}

var envelopeCases = []scene{
	{"null\n", inv0 + " open"},
	{"5\n" + ping + "\n", inv0 + " ok(1) open"},
	{`"ping"` + "\n", inv0 + " open"},
	{"true\n", inv0 + " open"},
	{"{}\n", inv0 + " open"},
	{`{"id":1,"method":"m"}` + "\n", inv1 + " open"},
	{`{"jsonrpc":"1.0","id":1,"method":"m"}` + "\n", inv1 + " open"},
	{`{"jsonrpc":2.0,"id":1,"method":"m"}` + "\n", inv1 + " open"},
	{`{"jsonrpc":null,"id":1,"method":"m"}` + "\n", inv1 + " open"},
	{`{"jsonrpc":"\u0032.0","id":1,"method":"m"}` + "\n", "ok(1) open"},
	{`{"JSONRPC":"2.0","id":1,"method":"m"}` + "\n", inv1 + " open"},
	{req(`"id":1`), inv1 + " open"},
	{req(`"id":1,"method":null`), inv1 + " open"},
	{req(`"id":1,"method":5`), inv1 + " open"},
	{req(`"id":1,"method":["m"]`), inv1 + " open"},
	{req(`"id":1,"method":""`), inv1 + " open"},
	{req(`"id":1,"method":"a\nb"`), inv1 + " open"},
	{req(`"id":1,"method":"a\u0000"`), inv1 + " open"},
	{req(`"id":1,"method":"a\u0085"`), inv1 + " open"},
	{req(`"id":1,"method":"` + strings.Repeat("m", 256) + `"`), "ok(1) open"},
	{req(`"id":1,"method":"` + strings.Repeat("m", 257) + `"`), inv1 + " open"},
	{req(`"id":1,"method":"` + strings.Repeat("m", 66560) + `"`), inv1 + " open"},
	{req(`"id":1,"METHOD":"m"`), inv1 + " open"},
	{req(`"id":1,"method":"m","paramſ":[]`), inv1 + " open"},
	{req(`"id":1,"method":"m","params":null`), "ok(1) open"},
	{req(`"id":1,"method":"m","params":5`), inv1 + " open"},
	{req(`"id":1,"method":"m","params":"x"`), inv1 + " open"},
	{req(`"id":1,"method":"m","params":false`), inv1 + " open"},
	{req(`"id":1,"method":"m","params":{}`), "ok(1) open"},
	{req(`"id":1,"method":"m","params":[]`), "ok(1) open"},
	{req(`"method":"note","params":5`), inv0 + " open"},
	{req(`"id":1,"method":"m","extra":1`), inv1 + " open"},
	{req(`"id":1,"method":"m","meta":{}`), inv1 + " open"},
	{req(`"id":1,"method":"m","_meta":{"trace":1}`), "ok(1) open"},
	{req(`"id":1,"method":"m","result":1`), inv1 + " open"},
	{req(`"id":1,"method":"m","error":{}`), inv1 + " open"},
	{req(`"id":1,"result":{}`) + ping + "\n", "ok(1) open"},
	{req(`"id":1,"error":{"code":1,"message":"x"}`), "open"},
	{`{"id":7,"result":null}` + "\n", "open"},
	{id(`null`), inv0 + " open"},
	{id(`true`), inv0 + " open"},
	{id(`{}`), inv0 + " open"},
	{id(`[1]`), inv0 + " open"},
	{id(`0`), "ok(0) open"},
	{id(`-1`), "ok(-1) open"},
	{id(`1.0`), "ok(1.0) open"},
	{id(`1.50`), "ok(1.50) open"},
	{id(`1e3`), "ok(1e3) open"},
	{id(`-0`), "ok(-0) open"},
	{id(`1e400`), "ok(1e400) open"},
	{id(`9007199254740993`), "ok(9007199254740993) open"},
	{id(`123456789012345678901234567890`), "ok(123456789012345678901234567890) open"},
	{id(`""`), `ok("") open`},
	{id(`"1"`), `ok("1") open`},
	{id(`"\u0061\/<é>"`), `ok("\u0061\/<é>") open`},
	{id(`1`) + id(`1`), "ok(1) ok(1) open"},
	{req(`"id":1,"method":"hold"`) + id(`1`), inv1 + " ok(1) open"},
	{req(`"id":"a","method":"hold"`) + id(`"\u0061"`), `-32600/invalidRequest("\u0061") ok("a") open`},
	{req(`"id":1,"method":"hold"`) + id(`"1"`) + id(`1.0`), `ok("1") ok(1.0) ok(1) open`},
	{holds(64), oks(64) + "open"},
	{holds(64) + ping + "\n" + note + "\n", "[note] -32001/overloaded(1) " + oks(64) + "open"},
}

var batchCases = []scene{
	{"[]\n", inv0 + " open"},
	{"[ ]\n" + ping + "\n", inv0 + " ok(1) open"},
	{"[" + ping + "]\n", "[ok(1)] open"},
	{cl("[" + ping + "," + note + "]"), "[note] [ok(1)] open"},
	{"[" + note + "," + note + "]\n", "[note] [note] open"},
	{"[1]\n", "[" + inv0 + "] open"},
	{"[1,2,3]\n", "[" + inv0 + " " + inv0 + " " + inv0 + "] open"},
	{"[[]]\n", "[" + inv0 + "] open"},
	{"[[" + ping + "]," + ping + "]\n", "[" + inv0 + " ok(1)] open"},
	{"[" + ping + ",\n", parse0 + " open"},
	{"[" + ping + "," + ping + "]\n", "[ok(1) " + inv1 + "] open"},
	{list(32, note), strings.Repeat("[note] ", 32) + "open"},
	{list(33, note), inv0 + " open"},
	{list(1000, "1"), inv0 + " open"},
	{"[" + ping + `,{"foo":1},` + note + `,{"jsonrpc":"2.0","id":"x","method":"m"}]` + "\n", `[note] [ok(1) ` + inv0 + ` ok("x")] open`},
	{`[{"jsonrpc":"2.0","id":5,"method":"hold"},` + ping + "]\n" + id("6"), "ok(6) [ok(5) ok(1)] open"},
	{`[{"jsonrpc":"2.0","id":5,"result":1}]` + "\n", "open"},
	{`[{"jsonrpc":"2.0","id":5,"result":1},` + ping + "]\n", "[ok(1)] open"},
	{holds(63) + "[" + ping + `,{"jsonrpc":"2.0","id":2,"method":"m"}]` + "\n", "[ok(1) -32001/overloaded(2)] " + oks(63) + "open"},
	{"[" + ping + "]", "[ok(1)] open"},
	{"[" + ping, "cut"},
}

func TestPeers(t *testing.T) {
	n := 0
	for name, cases := range map[string][]scene{
		"framing": framingCases, "json": jsonCases, "envelope": envelopeCases, "batch": batchCases,
	} {
		n += len(cases)
		t.Run(name, func(t *testing.T) {
			for _, c := range cases {
				for _, got := range []string{
					replay(t, strings.NewReader(c.in), Config{}),
					replay(t, iotest.OneByteReader(strings.NewReader(c.in)), Config{}),
					replay(t, iotest.DataErrReader(strings.NewReader(c.in)), Config{}),
				} {
					if got != c.want {
						t.Errorf("%.200q:\n got %s\nwant %s", c.in, got, c.want)
					}
				}
			}
		})
	}
	t.Logf("%d cases", n)
}

// Both framings give the same result.
func TestFramingsAgree(t *testing.T) {
	for _, c := range append(append(jsonCases, envelopeCases...), batchCases...) {
		if !strings.HasSuffix(c.in, "\n") {
			continue
		}
		var framed strings.Builder
		for line := range strings.Lines(c.in) {
			framed.WriteString(cl(strings.TrimSuffix(line, "\n")))
		}
		if got := replay(t, strings.NewReader(framed.String()), Config{}); got != c.want {
			t.Errorf("%.200q:\n got %s\nwant %s", framed.String(), got, c.want)
		}
	}
}

func TestEveryCutIsClean(t *testing.T) {
	whole := cl(ping) + cl(note)
	first := len(cl(ping))
	for n := range whole {
		want := "cut"
		if n == 0 {
			want = "open"
		} else if n >= first {
			want = "ok(1) cut"
		}
		if n == first {
			want = "ok(1) open"
		}
		if got := replay(t, strings.NewReader(whole[:n]), Config{}); got != want {
			t.Errorf("%d bytes: got %s, want %s", n, got, want)
		}
	}
}

func TestOversizedFrames(t *testing.T) {
	cfg := Config{MaxFrame: 100, MaxInFlightBytes: 110}
	pad := func(n int) string { return ping + strings.Repeat(" ", n-len(ping)) }
	big := strings.Repeat(" ", 20<<20)
	for _, c := range []scene{
		{pad(100) + "\n", "ok(1) open"},
		{pad(100) + "\r\n", "ok(1) open"},
		{pad(101) + "\n", large},
		{pad(101) + "\r\n", large},
		{pad(101), large},
		{cl(pad(100)), "ok(1) open"},
		{cl(pad(101)), large},
		{"{" + big, large},
		{"{" + big + "\n" + ping + "\n", large},
		{cl(big) + cl(ping), large},
		{req(`"id":5,"method":"hold"`+strings.Repeat(" ", 50)) + pad(90) + "\n", "-32001/overloaded(1) ok(5) open"},
	} {
		if got := replay(t, strings.NewReader(c.in), cfg); got != c.want {
			t.Errorf("%.60q (%d bytes): got %s, want %s", c.in, len(c.in), got, c.want)
		}
	}
}
