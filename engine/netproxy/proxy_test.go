package netproxy_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"lashd/engine/netproxy"
	"lashd/rpc/protocol"
)

// The server of net/http waits for half a second before it closes a connection with unread data.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("net/http.(*conn).closeWriteAndWait"))
}

// running is a proxy that serves, with servers behind it.
type running struct {
	t     *testing.T
	proxy *netproxy.Proxy
	at    string // of the proxy
	stop  func()
}

// serve starts a proxy. Names are answered by a DNS server with these addresses.
func serve(t *testing.T, access protocol.NetworkAccess, names map[string]string) *running {
	t.Helper()
	p, err := netproxy.New(netproxy.Config{Access: &access, Resolver: resolver(t, names)})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() { p.Serve(ctx, l) })
	r := &running{t: t, proxy: p, at: l.Addr().String(), stop: func() {
		cancel()
		serving.Wait()
	}}
	t.Cleanup(r.stop)
	return r
}

// resolver returns a resolver that asks a DNS server of this test over UDP.
func resolver(t *testing.T, names map[string]string) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		conn.Close()
		serving.Wait()
	})
	serving.Go(func() {
		query := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(reply(query[:n], names), from)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// reply answers a DNS query with one question: the address of its name, or that the name does not exist.
func reply(query []byte, names map[string]string) []byte {
	name, at := "", 12
	for query[at] != 0 {
		n := int(query[at])
		name += string(query[at+1:at+1+n]) + "."
		at += n + 1
	}
	kind := binary.BigEndian.Uint16(query[at+1:])
	out := append(slices.Clone(query[:2]), 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0)
	out = append(out, query[12:at+5]...)
	found, is := names[strings.TrimSuffix(strings.ToLower(name), ".")]
	if !is {
		out[3] = 0x83
		return out
	}
	ip := netip.MustParseAddr(found)
	if ip.Is4() != (kind == 1) || ip.Is6() != (kind == 28) {
		return out
	}
	out[7] = 1
	out = append(out, 0xc0, 12, byte(kind>>8), byte(kind), 0, 1, 0, 0, 0, 0, 0, byte(len(ip.AsSlice())))
	return append(out, ip.AsSlice()...)
}

// send sends a raw request and returns the status line and the body of the answer.
func (r *running) send(request string) (status, body string) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.at)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		r.t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		r.t.Fatalf("%q: %v", request, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK && method == http.MethodConnect {
		return answer.Status, ""
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer.Status, string(text)
}

// client returns a client that uses the proxy.
func (r *running) client() *http.Client {
	tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: r.at})}
	r.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: 30 * time.Second}
}

// hello starts a server that answers with its name and the host of the request, and returns its port.
func hello(t *testing.T, name string) (port string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s %s", name, r.Host, r.URL) }))
	t.Cleanup(s.Close)
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return port
}

func TestRequests(t *testing.T) {
	port, other := hello(t, "one"), hello(t, "two")
	names := map[string]string{"good.test": "127.0.0.1", "evil.test": "127.0.0.1", "sub.good.test": "127.0.0.1", "metadata.test": "169.254.169.254", "six.test": "::1"}
	r := serve(t, protocol.NetworkAccess{
		Granted: []string{"good.test:" + port, "127.0.0.1:" + port, "private.test", "metadata.test", "*.wide.test:" + port},
		Denied:  []string{"denied.wide.test"},
	}, names)
	get := func(target, host string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"
	}
	connect := func(target string) string { return "CONNECT " + target + " HTTP/1.1\r\nHost: x\r\n\r\n" }
	for name, c := range map[string]struct{ request, status, body string }{
		"an allowed host":                           {get("http://good.test:"+port+"/x?a=1;b", "good.test"), "200 OK", "one good.test:" + port + " /x?a=1;b"},
		"case and a dot at the end do not matter":   {get("http://GOOD.test.:"+port+"/", "x"), "200 OK", "one GOOD.test.:" + port + " /"},
		"an address that is allowed":                {get("http://127.0.0.1:"+port+"/", "x"), "200 OK", "one 127.0.0.1:" + port + " /"},
		"the header Host does not count":            {get("http://good.test:"+port+"/", "evil.test"), "200 OK", "one good.test:" + port + " /"},
		"a host that is not allowed":                {get("http://evil.test/", "good.test:"+port), "403 Forbidden", "lashd: the sandbox refuses evil.test: no rule allows it, and the call did not name it\n"},
		"an allowed host as user name":              {get("http://good.test:"+port+"@evil.test/", "good.test"), "403 Forbidden", "lashd: the sandbox refuses evil.test: no rule allows it, and the call did not name it\n"},
		"another port":                              {get("http://good.test:"+other+"/", "x"), "403 Forbidden", "lashd: the sandbox refuses good.test:" + other + ": no rule allows it, and the call did not name it\n"},
		"a name below an allowed one":               {get("http://sub.good.test:"+port+"/", "x"), "403 Forbidden", "lashd: the sandbox refuses sub.good.test:" + port + ": no rule allows it, and the call did not name it\n"},
		"a denied name below an allowed one":        {get("http://denied.wide.test:"+port+"/", "x"), "403 Forbidden", "lashd: the sandbox refuses denied.wide.test:" + port + ": a rule denies it\n"},
		"another form of an address":                {get("http://0x7f000001:"+port+"/", "x"), "400 Bad Request", "lashd: host \"0x7f000001:" + port + "\": this is neither a name nor an address in its usual form\n"},
		"an IPv6 form of an IPv4 address":           {get("http://[::ffff:127.0.0.1]:"+port+"/", "x"), "200 OK", "one [::ffff:127.0.0.1]:" + port + " /"},
		"another IPv6 address":                      {get("http://[::1]:"+port+"/", "x"), "403 Forbidden", "lashd: the sandbox refuses [::1]:" + port + ": no rule allows it, and the call did not name it\n"},
		"a name with letters that are not ASCII":    {get("http://b\u00fccher.test/", "x"), "400 Bad Request", "lashd: host \"b\u00fccher.test\": write the name in its ASCII form, which begins with xn--\n"},
		"a name that leads to metadata of a cloud":  {get("http://metadata.test/", "x"), "403 Forbidden", "lashd: the sandbox refuses metadata.test: its address 169.254.169.254 is an address of the local network, where clouds have their metadata; a person can allow that address\n"},
		"a name that does not exist":                {get("http://private.test/", "x"), "502 Bad Gateway", "lashd: the name private.test was not found: no such host\n"},
		"a request to the proxy itself":             {get("/", "good.test:"+port), "400 Bad Request", "lashd: this is a proxy: ask it for the whole address, such as http://example.com/\n"},
		"another scheme":                            {get("ftp://good.test/", "x"), "400 Bad Request", "lashd: the proxy does not speak ftp; use http, or https by CONNECT\n"},
		"a tunnel to an allowed host":               {connect("good.test:" + port), "200 Connection established", ""},
		"a tunnel to another port":                  {connect("good.test:" + other), "403 Forbidden", "lashd: the sandbox refuses good.test:" + other + ": no rule allows it, and the call did not name it\n"},
		"a tunnel without a port":                   {connect("good.test"), "400 Bad Request", "lashd: host \"good.test\": the port is missing\n"},
		"a tunnel with a user name":                 {connect("good.test:443@evil.test:443"), "400 Bad Request", "lashd: host \"good.test:443@evil.test:443\": write only the host, and a port if needed, such as example.com:8080\n"},
		"a tunnel to a name with a private address": {connect("metadata.test:443"), "403 Forbidden", "lashd: the sandbox refuses metadata.test: its address 169.254.169.254 is an address of the local network, where clouds have their metadata; a person can allow that address\n"},
		"a header that is too long":                 {"GET http://good.test:" + port + "/ HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 80<<10) + "\r\n\r\n", "431 Request Header Fields Too Large", "431 Request Header Fields Too Large"},
	} {
		t.Run("part11/network "+name, func(t *testing.T) {
			r := *r
			r.t = t
			if status, body := r.send(c.request); status != c.status || body != c.body {
				t.Errorf("%q\n got %s %q\nwant %s %q", c.request, status, body, c.status, c.body)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	t.Run("part11/network refused hosts are remembered once, up to a limit", func(t *testing.T) {
		r := serve(t, protocol.NetworkAccess{Granted: []string{"meta.test"}, Denied: []string{"b.test"}}, map[string]string{"meta.test": "10.1.2.3"})
		for _, target := range []string{"http://a.test/", "http://b.test:8080/", "http://a.test/again", "http://meta.test/", "http://gone.meta.test/"} {
			r.send("GET " + target + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		}
		r.send("CONNECT a.test:443 HTTP/1.1\r\nHost: x\r\n\r\n")
		want := []protocol.RefusedHost{
			{Host: "a.test", Reason: "no rule allows it, and the call did not name it", Hosts: []string{"a.test"}}, {Host: "b.test:8080", Reason: "a rule denies it"},
			{Host: "meta.test", Reason: "its address 10.1.2.3 is an address of a private network; a person can allow that address", Hosts: []string{"meta.test", "10.1.2.3"}},
			{Host: "gone.meta.test", Reason: "no rule allows it, and the call did not name it", Hosts: []string{"gone.meta.test"}},
		}
		got := r.proxy.Refused()
		for i := range got {
			if age := time.Now().UnixMilli() - got[i].AtMs; age < 0 || age > time.Minute.Milliseconds() {
				t.Errorf("%s was refused %d ms ago", got[i].Host, age)
			}
			got[i].AtMs = 0
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for i := range 150 {
			r.send(fmt.Sprintf("CONNECT n%d.test:443 HTTP/1.1\r\nHost: x\r\n\r\n", i))
		}
		if n := len(r.proxy.Refused()); n != 100 {
			t.Errorf("%d hosts are remembered, want 100", n)
		}
	})
}

func TestPolicies(t *testing.T) {
	port := hello(t, "one")
	at := "127.0.0.1:" + port
	for name, c := range map[string]struct {
		access protocol.NetworkAccess
		want   string
	}{
		"nothing is allowed":                  {protocol.NetworkAccess{}, "403"},
		"the call named it":                   {protocol.NetworkAccess{Granted: []string{at}}, "200"},
		"the only policy allows it":           {protocol.NetworkAccess{Rules: []protocol.HostRules{{Allow: []string{at}}}}, "200"},
		"both policies allow it":              {protocol.NetworkAccess{Rules: []protocol.HostRules{{Allow: []string{at}}, {Allow: []string{"127.0.0.1:1", at}}}}, "200"},
		"one of two policies allows it":       {protocol.NetworkAccess{Rules: []protocol.HostRules{{Allow: []string{at}}, {}}}, "403"},
		"a rule of the policy asks":           {protocol.NetworkAccess{Rules: []protocol.HostRules{{Allow: []string{at}, Ask: []string{"127.0.0.1"}}}}, "403"},
		"a rule asks, and the call named it":  {protocol.NetworkAccess{Granted: []string{at}, Rules: []protocol.HostRules{{Ask: []string{"127.0.0.1"}}}}, "200"},
		"a rule denies it":                    {protocol.NetworkAccess{Granted: []string{at}, Denied: []string{"*"}}, "403"},
		"a rule denies its address":           {protocol.NetworkAccess{Granted: []string{at, "good.test:" + port}, Denied: []string{"127.0.0.1"}}, "403"},
		"only its name is allowed":            {protocol.NetworkAccess{Granted: []string{"good.test:" + port}}, "403"},
		"its name and its address, as a rule": {protocol.NetworkAccess{Granted: []string{"good.test:" + port}, Rules: []protocol.HostRules{{Allow: []string{at}}}}, "200"},
		"everything is allowed":               {protocol.NetworkAccess{Granted: []string{"*:" + port}}, "403"},
	} {
		t.Run("part11/network "+name, func(t *testing.T) {
			r := serve(t, c.access, map[string]string{"good.test": "127.0.0.1"})
			host := at
			if strings.Contains(strings.Join(c.access.Granted, " "), "good.test") {
				host = "good.test:" + port
			}
			if status, body := r.send("GET http://" + host + "/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); !strings.HasPrefix(status, c.want) {
				t.Errorf("%s: %s", status, body)
			}
		})
	}
	t.Run("part11/network a wrong pattern is an error", func(t *testing.T) {
		for _, a := range []protocol.NetworkAccess{{Granted: []string{"a b"}}, {Denied: []string{"a b"}}, {Rules: []protocol.HostRules{{Allow: []string{"a b"}}}}, {Rules: []protocol.HostRules{{Ask: []string{"a b"}}}}} {
			if _, err := netproxy.New(netproxy.Config{Access: &a}); err == nil {
				t.Errorf("%+v is accepted", a)
			}
		}
	})
}

func TestManyConnections(t *testing.T) {
	t.Run("part11/network 1,000 connections at once are all served", func(t *testing.T) {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
		defer s.Close()
		r := serve(t, protocol.NetworkAccess{Granted: []string{s.Listener.Addr().String()}}, nil)
		var all sync.WaitGroup
		failed := make(chan error, 1000)
		for range 1000 {
			all.Go(func() { failed <- r.once(s) })
		}
		all.Wait()
		for range 1000 {
			if err := <-failed; err != nil {
				t.Fatal(err)
			}
		}
	})
}

// once makes one HTTPS request over a connection of its own.
func (r *running) once(s *httptest.Server) error {
	tr := s.Client().Transport.(*http.Transport).Clone()
	tr.Proxy, tr.DisableKeepAlives = http.ProxyURL(&url.URL{Scheme: "http", Host: r.at}), true
	answer, err := (&http.Client{Transport: tr, Timeout: time.Minute}).Get(s.URL)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && string(text) != "hello" {
		err = fmt.Errorf("answer %q", text)
	}
	return err
}

func TestEnd(t *testing.T) {
	t.Run("part11/network all connections end with the proxy, also when more wait than are served", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		r := serve(t, protocol.NetworkAccess{Granted: []string{l.Addr().String()}}, nil)
		var open []net.Conn
		for range 300 {
			c, err := net.Dial("tcp", r.at)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			open = append(open, c)
		}
		fmt.Fprintf(open[0], "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", l.Addr())
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		r.stop()
		for i, c := range append(open[:200], server) {
			c.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Fatalf("connection %d is still open", i)
			}
		}
	})
	t.Run("part11/network the end of one direction of a tunnel leaves the other open", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		r := serve(t, protocol.NetworkAccess{Granted: []string{l.Addr().String()}}, nil)
		c, err := net.Dial("tcp", r.at)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\nearly", l.Addr())
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		server.SetDeadline(time.Now().Add(20 * time.Second))
		if err := c.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(server); string(text) != "early" || err != nil {
			t.Errorf("the server reads %q, %v", text, err)
		}
		if _, err := io.WriteString(server, "late"); err != nil {
			t.Fatal(err)
		}
		server.Close()
		if text, err := io.ReadAll(c); string(text) != "HTTP/1.1 200 Connection established\r\n\r\nlate" || err != nil {
			t.Errorf("the client reads %q, %v", text, err)
		}
	})
	t.Run("part11/network streams, uploads and trailers pass", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n, _ := io.Copy(io.Discard, r.Body)
			w.Header().Set("Trailer", "Sum")
			fmt.Fprintf(w, "%d %s", n, r.Header.Get("X-Forwarded-For"))
			w.Header().Set("Sum", "7")
		}))
		defer s.Close()
		r := serve(t, protocol.NetworkAccess{Granted: []string{s.Listener.Addr().String()}}, nil)
		request, err := http.NewRequest(http.MethodPost, s.URL, io.LimitReader(zeros{}, 3<<20))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("X-Forwarded-For", "mine")
		answer, err := r.client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if text, err := io.ReadAll(answer.Body); string(text) != "3145728 mine" || err != nil || answer.Trailer.Get("Sum") != "7" {
			t.Errorf("%q, %v, %v", text, err, answer.Trailer)
		}
	})
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
