package protocol

// MCPServers are MCP servers that a client adds to a session, by name. The model sees their tools as mcp__name__tool. They are
// removed when the client disconnects.
type MCPServers map[string]MCPServer

// MCPServer configures an MCP server, with the names of .mcp.json. Set either command or url. lashd does not expand variables in
// it and does not store it. Values of env and headers never appear in output of lashd.
type MCPServer struct {
	Type      MCPTransport      `json:"type,omitempty"`      // absent: stdio with a command, http with a url
	Command   string            `json:"command,omitempty"`   // a program name to look up in PATH, or an absolute path; never run through a shell
	Args      []string          `json:"args,omitempty"`      // arguments of the program
	Env       map[string]string `json:"env,omitempty"`       // environment of the program, in addition to a few standard variables such as PATH
	URL       string            `json:"url,omitempty"`       // address of a streamable HTTP server
	Headers   map[string]string `json:"headers,omitempty"`   // HTTP headers of every request
	TimeoutMs int64             `json:"timeoutMs,omitempty"` // time limit of a call; absent: ten minutes
}

// MCPTransport says how lashd connects to an MCP server.
type MCPTransport string

const (
	MCPStdio MCPTransport = "stdio" // a program, over its stdin and stdout
	MCPHTTP  MCPTransport = "http"  // a URL, over streamable HTTP
)
