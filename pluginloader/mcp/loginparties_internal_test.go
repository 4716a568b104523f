package mcp

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/rpc/protocol"
)

// answering serves a text, and counts POST requests.
func answering(t *testing.T, text func() string) (address string, posts *int) {
	posts = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			*posts++
		}
		fmt.Fprint(w, text())
	}))
	t.Cleanup(s.Close)
	return s.URL, posts
}

func parsed(t *testing.T, address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestWitness(t *testing.T) {
	var issuer, token string
	issuer, _ = answering(t, func() string { return `{"issuer":"` + issuer + `","token_endpoint":"` + token + `/t"}` })
	liar, _ := answering(t, func() string { return `{"issuer":"http://good.test","token_endpoint":"http://good.test/t"}` })
	var own string
	own, _ = answering(t, func() string { return `{"resource":"r","issuer":"` + own + `","token_endpoint":"http://good.test/t"}` })
	token, tokens := answering(t, func() string { return "{}" })
	other, others := answering(t, func() string { return "{}" })

	client := &http.Client{Transport: &witness{base: http.DefaultTransport}}
	watch := client.Transport.(*witness)
	for _, at := range []string{issuer, liar, own} {
		resp, err := client.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	got := watch.parties(parsed(t, "https://MCP.test/mcp"), parsed(t, "https://user@login.test:8443/a"))
	want := protocol.LoginParties{Server: "mcp.test", Issuer: issuer, Authorization: "login.test:8443", Token: strings.TrimPrefix(token, "http://")}
	got.Warning = ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("part13/6 the parties are those of the metadata that its own host sent: %s", diff)
	}
	if _, err := client.PostForm(other, url.Values{"code": {"c"}}); !errors.Is(err, errUnseen) || *others > 0 {
		t.Errorf("part13/6 a code for another host than was shown: %v, and %d requests", err, *others)
	}
	if resp, err := client.PostForm(token, url.Values{"code": {"c"}}); err != nil || *tokens != 1 {
		t.Errorf("part13/6 a code for the host that was shown: %v", err)
	} else {
		resp.Body.Close()
	}
}

func TestPartiesWithoutMetadata(t *testing.T) {
	got := (&witness{}).parties(parsed(t, "https://mcp.test"), parsed(t, "https://login.t\u0435st/authorize?x"))
	host := `login.t\u0435st`
	want := protocol.LoginParties{
		Server: "mcp.test", Issuer: "https://" + host, Authorization: host, Token: host,
		Warning: "The MCP server at mcp.test does not issue its own tokens: it names the authorization server at " + host + ". Log in only if you expect that.",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("part13/6 without metadata all is at the login page, and letters that look like others are shown by number: %s", diff)
	}
}

func TestRedirectedLogin(t *testing.T) {
	for _, c := range []struct {
		method, from, to string
		want             bool
	}{
		{"GET", "https://a.test/x", "https://a.test/y", true},
		{"GET", "https://a.test/x", "https://b.test/x", false},
		{"POST", "https://a.test/x", "https://a.test/y", false},
		{"POST", "https://a.test/x", "https://b.test/x", false},
	} {
		first := &http.Request{Method: c.method, URL: parsed(t, c.from)}
		if err := redirected(&http.Request{Method: c.method, URL: parsed(t, c.to)}, []*http.Request{first}); (err == nil) != c.want {
			t.Errorf("part13/6 %s %s is redirected to %s: %v, want it to be followed: %v", c.method, c.from, c.to, err, c.want)
		}
	}
}
