//go:build unix

package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
)

func TestLimitsOfResources(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "long", Version: "1"}, nil)
	long := strings.Repeat("é", 5000)
	server.AddResource(&sdk.Resource{URI: "doc://a", Name: long, Title: long, Description: long, MIMEType: long}, nil)
	server.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "doc://{a}", Name: long, Title: long, Description: long, MIMEType: long}, nil)
	at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() {
		for s := range server.Sessions() {
			_ = s.Close()
		}
		at.Close()
	})
	p := one(t, manifest.Server{Type: manifest.TransportHTTP, URL: at.URL})
	all, err := p.Resources(t.Context(), mcp.Session{ID: "ses_1"}, "x")
	if err != nil || len(all) != 2 {
		t.Fatalf("%d resources, %v", len(all), err)
	}
	for _, r := range all {
		for field, is := range map[string]struct{ got, most int }{
			"name": {len(r.Name), 1024}, "title": {len(r.Title), 1024}, "description": {len(r.Description), 1024}, "type": {len(r.Type), 256},
		} {
			if is.got == 0 || is.got > is.most+len("…") {
				t.Errorf("part13/6 the %s of %s has %d bytes, want at most %d", field, r.URI, is.got, is.most)
			}
		}
	}
}
