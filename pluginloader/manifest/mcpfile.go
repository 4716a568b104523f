package manifest

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"lashd/internal/strictjson"
)

// serverFile is a file in the format of .mcp.json. Some agents list the servers at the top level.
type serverFile struct {
	Schema  string                   `json:"$schema,omitempty" max:"1024"`
	Servers map[string]foreignServer `json:"mcpServers" max:"64" form:"server"`
}

// foreignServer is a server with the fields of all known agents. lashd warns about fields with the
// tag slot:"none".
type foreignServer struct {
	Type     string            `json:"type,omitempty" max:"64"`
	Command  string            `json:"command,omitempty" max:"8192"`
	Args     []string          `json:"args,omitempty" max:"256" each:"8192"`
	Env      map[string]string `json:"env,omitempty" max:"64" form:"env" each:"8192"`
	URL      string            `json:"url,omitempty" max:"4096"`
	HTTPURL  string            `json:"httpUrl,omitempty" max:"4096"`
	Headers  map[string]string `json:"headers,omitempty" max:"64" form:"header" each:"8192"`
	Timeout  int64             `json:"timeout,omitempty" min:"1" max:"3600000"` // milliseconds
	Disabled bool              `json:"disabled,omitempty"`
	About    string            `json:"description,omitempty" max:"4096"`
	ServerSandbox

	AlwaysAllow   json.RawMessage `json:"alwaysAllow,omitempty" slot:"none"`
	AlwaysLoad    json.RawMessage `json:"alwaysLoad,omitempty" slot:"none"`
	AutoApprove   json.RawMessage `json:"autoApprove,omitempty" slot:"none"`
	Cwd           json.RawMessage `json:"cwd,omitempty" slot:"none"`
	ExcludeTools  json.RawMessage `json:"excludeTools,omitempty" slot:"none"`
	HeadersHelper json.RawMessage `json:"headersHelper,omitempty" slot:"none"`
	IncludeTools  json.RawMessage `json:"includeTools,omitempty" slot:"none"`
	OAuth         json.RawMessage `json:"oauth,omitempty" max:"16384"`
	Trust         json.RawMessage `json:"trust,omitempty" slot:"none"`
}

// transports maps server types of other agents to lashd's; "": not supported.
var transports = map[string]Transport{
	"stdio": TransportStdio, "http": TransportHTTP, "streamable-http": TransportHTTP, "streamableHttp": TransportHTTP, "sse": "", "ws": "", "sdk": "",
}

// ParseServers reads a file in the format of .mcp.json: servers by name, at the top level or in
// mcpServers. Any string may contain ${NAME} for a variable of lashd's environment; PassEnv lists
// the names. With mistakes, the servers are incomplete.
func ParseServers(file string, data []byte) (map[string]Server, Problems) {
	s := &source{file: file, data: data, foreign: true}
	if !s.fits() {
		return nil, s.problems()
	}
	return s.parseServers(), s.problems()
}

// parseServers reads the whole source as a file of servers.
func (s *source) parseServers() map[string]Server {
	at, f := "/mcpServers", serverFile{}
	if !bytes.Contains(s.data, []byte(`"mcpServers"`)) {
		at = ""
		if !s.decode(&f.Servers) {
			return nil
		}
		s.value("", reflect.ValueOf(f.Servers), limits{max: 64, hasMax: true, form: "server"})
	} else if s.decode(&f) {
		s.rules("", reflect.ValueOf(f))
	}
	servers := map[string]Server{}
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		if server, ok := s.server(at+"/"+escape(name), f.Servers[name]); ok {
			servers[name] = server
		}
	}
	s.servers(at, servers)
	return servers
}

// server converts a server. ok is false for one that is disabled or not supported.
func (s *source) server(here string, f foreignServer) (Server, bool) {
	transport, known := transports[f.Type]
	switch {
	case f.Disabled:
		s.warn(here+"/disabled", "the server is disabled")
		return Server{}, false
	case f.Type != "" && !known:
		s.word(here+"/type", f.Type, slices.Sorted(maps.Keys(transports)))
		return Server{}, false
	case f.Type != "" && transport == "":
		s.warn(here+"/type", "lashd does not support servers of the type %q", f.Type)
		return Server{}, false
	case f.URL != "" && f.HTTPURL != "":
		s.atKey(here+"/httpUrl", `a server has a "url" or an "httpUrl", not both`)
	}
	out := s.translate(f, transport)
	out.OAuth = s.client(here+"/oauth", f.OAuth, &out)
	return out, true
}

// client reads the OAuth client of a server. Agents have many other fields there, which lashd finds out at the login.
func (s *source) client(here string, raw json.RawMessage, out *Server) *ServerClient {
	if len(raw) == 0 {
		return nil
	}
	var c ServerClient
	if err := json.Unmarshal(raw, &c); err != nil {
		s.at(here, `must be an object with "clientId" and "clientSecret"`)
		return nil
	}
	for name := range strictjson.Members(raw) {
		if name != "clientId" && name != "clientSecret" {
			s.warn(here+"/"+escape(name), "%q is for other agents and has no effect in lashd", name)
		}
	}
	if c.ID == "" {
		return nil
	}
	c.ID, out.PassEnv = s.put(c.ID, out.PassEnv)
	c.Secret, out.PassEnv = s.put(c.Secret, out.PassEnv)
	return &c
}

// translate copies the fields of a server and rewrites the variables in them.
func (s *source) translate(f foreignServer, transport Transport) Server {
	out := Server{Type: transport, TimeoutMs: f.Timeout, ServerSandbox: f.ServerSandbox}
	put := func(text string) string {
		text, out.PassEnv = s.put(text, out.PassEnv)
		return text
	}
	out.Command, out.URL = put(f.Command), put(f.URL+f.HTTPURL)
	for _, a := range f.Args {
		out.Args = append(out.Args, put(a))
	}
	out.Env, out.Headers = translated(f.Env, put), translated(f.Headers, put)
	return out
}

// translated applies put to the values of a map in the order of its keys, so PassEnv is
// deterministic.
func translated(in map[string]string, put func(string) string) map[string]string {
	if len(in) == 0 {
		return nil
	}
	out := make(map[string]string, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		out[key] = put(in[key])
	}
	return out
}
