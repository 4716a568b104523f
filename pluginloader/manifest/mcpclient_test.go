package manifest_test

import (
	"strings"
	"testing"

	"lashd/pluginloader/manifest"
)

func TestClientsOfServers(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		client     manifest.ServerClient
		pass       string
	}{
		"an id":             {`{"url":"https://x","oauth":{"clientId":"a","callbackPort":8080}}`, `.mcp.json:1:63: warning: "callbackPort" is for other agents and has no effect in lashd`, manifest.ServerClient{ID: "a"}, ""},
		"a secret":          {`{"url":"https://x","oauth":{"clientId":"a","clientSecret":"${S}"}}`, "", manifest.ServerClient{ID: "a", Secret: "${S}"}, "S"},
		"no id":             {`{"url":"https://x","oauth":{"scopes":["a"]}}`, `.mcp.json:1:48: warning: "scopes" is for other agents and has no effect in lashd`, manifest.ServerClient{}, ""},
		"an id of no text":  {`{"url":"https://x","oauth":{"clientId":5}}`, `.mcp.json:1:47: must be an object with "clientId" and "clientSecret"`, manifest.ServerClient{}, ""},
		"a server by stdio": {`{"command":"x","oauth":{"clientId":"a"}}`, `.mcp.json:1:35: "oauth" is only for a server with a "url"`, manifest.ServerClient{ID: "a"}, ""},
		"something else":    {`{"url":"https://x","oauth":true}`, `.mcp.json:1:47: must be an object with "clientId" and "clientSecret"`, manifest.ServerClient{}, ""},
	} {
		t.Run("part13/6 the client of a server: "+name, func(t *testing.T) {
			servers, problems := manifest.ParseServers(".mcp.json", []byte(`{"mcpServers":{"a":`+c.text+`}}`))
			var got []string
			for _, p := range problems {
				got = append(got, p.String())
			}
			if strings.Join(got, "\n") != c.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, "\n"), c.want)
			}
			client := manifest.ServerClient{}
			if s := servers["a"]; s.OAuth != nil {
				client = *s.OAuth
			}
			if client != c.client || strings.Join(servers["a"].PassEnv, " ") != c.pass {
				t.Errorf("the client is %+v, and these variables are passed: %q", client, servers["a"].PassEnv)
			}
		})
	}
}
