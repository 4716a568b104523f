package rpc_test

import (
	"io"
	"slices"
	"strings"
	"testing"
)

const (
	parse   = "null -32700 parseError never none"
	invalid = "-32600 invalidRequest never none"
	frame   = "null -32700 badFrame never none"
	large   = "null -32600 frameTooLarge never none"
	foreign = "null -32600 foreignProtocol never none"
	ping    = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
)

// ending is the state of a connection after a test case.
type ending int

const (
	usable ending = iota
	closed        // from the other end
	cut           // from this end, in the middle of a message
)

// pad makes a ping n bytes long.
func pad(n int) string { return ping + strings.Repeat(" ", n-len(ping)) }

var framings = []struct {
	in   string
	end  ending
	want []string
}{
	{"\n \r\n\t\n", usable, nil},
	{ping + "\r\n", usable, []string{"1 ok"}},
	{"\r\n\n" + cl(ping), usable, []string{"1 ok"}},
	{"X-Trace: 1\r\ncontent-length:40\r\n\r\n" + ping, usable, []string{"1 ok"}},
	{pad(8<<20) + "\n", usable, []string{"1 ok"}},
	{cl(pad(8 << 20)), usable, []string{"1 ok"}},
	{cl("{"), usable, []string{parse}},
	{"Content-Length: 0\r\n\r\n", usable, []string{parse}},
	{cl(ping[:9] + "\n" + ping[9:]), usable, []string{parse}},
	{"hello world\n", usable, []string{parse}},
	{"<xml/>\n", usable, []string{parse}},
	{"get / http\n", usable, []string{parse}},
	{"\x16\x02\n", usable, []string{parse}},
	{ping[:10], cut, nil},
	{"7", cut, nil},
	{"Content-Len", cut, nil},
	{"Content-Length:", cut, nil},
	{"Content-Length: 40\r\n", cut, nil},
	{"Content-Length: 40\r\n\r\n", cut, nil},
	{"Content-Length: 41\r\n\r\n" + ping, cut, nil},
	{cl(ping) + "C", cut, []string{"1 ok"}},
	{cl(ping) + ping + "\n", closed, []string{"1 ok", frame}},
	{cl(ping) + "GET / HTTP/1.1\r\n\r\n", closed, []string{"1 ok", frame}},
	{"Content-Length: -1\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: +40\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 0x28\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 4 0\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 40.0\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 40, 40\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: \r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: \u0664\u0660\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 40\x00\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 40\r\ncontent-length: 40\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Type: x\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 40\r\nrubbish\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 40\r\n: x\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 40\r\n X: folded\r\n\r\n" + ping, closed, []string{frame}},
	{"Content-Length: 40\rX: y\r\n\r\n" + ping, closed, []string{frame}},
	{"X: " + strings.Repeat("y", 2000) + "\r\n" + cl(ping), closed, []string{frame}},
	{strings.Repeat("x", 5000), closed, []string{frame}},
	{strings.Repeat("X: 1\r\n", 16) + cl(ping), closed, []string{frame}},
	{"Content-Length: 8388609\r\n\r\n", closed, []string{large}},
	{"Content-Length: 99999999999999999999999\r\n\r\n", closed, []string{large}},
	{"Content-Length: 9223372036854775808\r\n\r\n", closed, []string{large}},
	{pad(8<<20+1) + "\n", closed, []string{large}},
	{"{" + strings.Repeat(" ", 9<<20), closed, []string{large}},
	{"GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n", closed, []string{foreign}},
	{"POST /rpc HTTP/1.1\r\nContent-Length: 40\r\n\r\n" + ping, closed, []string{foreign}},
	{"PUT / HTTP/1.1\r\n", closed, []string{foreign}},
	{"HEAD / HTTP/1.0\r\n", closed, []string{foreign}},
	{"DELETE /x HTTP/1.1\r\n", closed, []string{foreign}},
	{"OPTIONS * HTTP/1.1\r\n", closed, []string{foreign}},
	{"CONNECT a:1 HTTP/1.1\r\n", closed, []string{foreign}},
	{"PATCH / HTTP/1.1\r\n", closed, []string{foreign}},
	{"TRACE / HTTP/1.1\r\n", closed, []string{foreign}},
	{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", closed, []string{foreign}},
	{"HTTP/1.1 400 Bad Request\r\n", closed, []string{foreign}},
	{"\r\nGET / HTTP/1.1\r\n", closed, []string{foreign}},
	{"SSH-2.0-OpenSSH_9.6\r\n", closed, []string{foreign}},
	{"\x16\x03\x01\x02\x00\x01\x00", closed, []string{foreign}},
}

// testFraming gives each case a connection of its own, and sends everything before it reads: a rejected peer has time to
// read why.
func testFraming(t *testing.T, f *fixture) {
	var wires []*wire
	for _, c := range framings {
		w := f.dialSocket(t)
		w.headers = strings.Contains(strings.ToLower(c.in), "content-length:")
		w.send(c.in)
		wires = append(wires, w)
	}
	for i, c := range framings {
		var got []string // in any order: the reader reports a broken frame beside the answers of earlier requests
		for range c.want {
			got = append(got, told(t, wires[i].frame(t)))
		}
		if want := slices.Sorted(slices.Values(c.want)); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Fatalf("%.100q: got %q, want %q", c.in, got, want)
		}
		f.cases++
		wires[i].ended(t, c.in, c.end)
		f.unchanged(t)
	}
}

func (w *wire) ended(t *testing.T, in string, how ending) {
	t.Helper()
	switch how {
	case usable:
		w.usable(t)
		return
	case cut:
		if err := w.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
			t.Fatal(err)
		}
	}
	if frame, err := w.next(); err != io.EOF {
		t.Errorf("%.100q: got %q and %v, want the end", in, frame, err)
	}
}

func inJSON(value string) string {
	return `{"jsonrpc":"2.0","id":1,"method":"usage/read","params":{"_x":` + value + `}}` + "\n"
}

// documents are lines that are not JSON or exceed a limit; some only look so.
var documents = []badCase{
	{in: "{\n", want: []string{parse}},
	{in: "{}}\n", want: []string{parse}},
	{in: ping + ping + "\n", want: []string{parse}},
	{in: ping + " x\n", want: []string{parse}},
	{in: ping + ",\n", want: []string{parse}},
	{in: ping + "\x00\n", want: []string{parse}},
	{in: "\xef\xbb\xbf" + ping + "\n", want: []string{parse}},
	{in: "\xff\xfe{\x00}\x00\n", want: []string{parse}},
	{in: "{'jsonrpc':'2.0'}\n", want: []string{parse}},
	{in: `{jsonrpc:"2.0"}` + "\n", want: []string{parse}},
	{in: `{"jsonrpc":"2.0","id":1,"method":"ping",}` + "\n", want: []string{parse}},
	{in: `{"jsonrpc":"2.0","id":1 "method":"ping"}` + "\n", want: []string{parse}},
	{in: `{"jsonrpc":"2.0","id":1,"method":"ping"/* */}` + "\n", want: []string{parse}},
	{in: `{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}` + "\n", want: []string{parse}},
	{in: `{"jsonrpc":"2.0","id":1,"method":"ping","\u006dethod":"shutdown"}` + "\n", want: []string{parse}},
	{in: `{"jsonrpc":"2.0","id":01,"method":"ping"}` + "\n", want: []string{parse}},
	{in: `{"jsonrpc":"2.0","id":.5,"method":"ping"}` + "\n", want: []string{parse}},
	{in: `{"jsonrpc":"2.0","id":1.,"method":"ping"}` + "\n", want: []string{parse}},
	{in: inJSON(`{"a":1,"a":1}`), want: []string{parse}},
	{in: inJSON(`{"a":1,"b":{"c":[{"d":1,"\u0064":1}]}}`), want: []string{parse}},
	{in: inJSON(`NaN`), want: []string{parse}},
	{in: inJSON(`-Infinity`), want: []string{parse}},
	{in: inJSON(`+1`), want: []string{parse}},
	{in: inJSON(`0x10`), want: []string{parse}},
	{in: inJSON(`1e`), want: []string{parse}},
	{in: inJSON(`-`), want: []string{parse}},
	{in: inJSON(`-012`), want: []string{parse}},
	{in: inJSON(`nul`), want: []string{parse}},
	{in: inJSON(`True`), want: []string{parse}},
	{in: inJSON(`undefined`), want: []string{parse}},
	{in: inJSON(`[1,]`), want: []string{parse}},
	{in: inJSON(`[,1]`), want: []string{parse}},
	{in: inJSON(`[1 2]`), want: []string{parse}},
	{in: inJSON(`[1}`), want: []string{parse}},
	{in: inJSON(`"\x41"`), want: []string{parse}},
	{in: inJSON(`"\u12g4"`), want: []string{parse}},
	{in: inJSON(`"\ud800"`), want: []string{parse}},
	{in: inJSON(`"\ude00"`), want: []string{parse}},
	{in: inJSON(`"\ud800\ud800"`), want: []string{parse}},
	{in: inJSON(`{"\ud800":1}`), want: []string{parse}},
	{in: inJSON("\"\t\""), want: []string{parse}},
	{in: inJSON("\"\x00\""), want: []string{parse}},
	{in: inJSON("\"\xff\""), want: []string{parse}},
	{in: inJSON("\"\xc0\x80\""), want: []string{parse}},
	{in: inJSON("\"\xed\xa0\x80\""), want: []string{parse}},
	{in: inJSON("\"\xf4\x90\x80\x80\""), want: []string{parse}},
	{in: inJSON("{\"\xe2\x82\":1}"), want: []string{parse}},
	{in: inJSON(strings.Repeat("[", 63) + strings.Repeat("]", 63)), want: []string{parse}},
	{in: inJSON(strings.Repeat(`{"a":`, 63) + "1" + strings.Repeat("}", 63)), want: []string{parse}},
	{in: inJSON(strings.Repeat("[", 1_000_000)), want: []string{parse}},
	{in: inJSON("[" + strings.Repeat("{},", 1<<18) + "{}]"), want: []string{parse}},
	{in: inJSON(strings.Repeat("[", 62) + strings.Repeat("]", 62)), want: []string{"1 ok"}},
	{in: inJSON("[1e400,-0,1E+5,9007199254740993,123456789012345678901234567890]"), want: []string{"1 ok"}},
	{in: inJSON(`"\u0000\ud83d\ude00\/"`), want: []string{"1 ok"}},
	{in: inJSON("\"" + strings.Repeat("x", 7<<20) + "\""), want: []string{"1 ok"}},
}
