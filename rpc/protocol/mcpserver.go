package protocol

// MCPServers are MCP servers that a client brings to a session, by name: the model knows their tools as mcp__name__tool. They are there
// as long as the client is.
type MCPServers map[string]MCPServer

// MCPServer is an MCP server, in the words of .mcp.json: it has a command or a url. What stands in it is meant as it stands. Nothing of
// it is stored, and values of env and headers are in nothing that lashd says.
type MCPServer struct {
	Type      MCPTransport      `json:"type,omitempty"`      // how it is spoken to; absent: as its other fields say
	Command   string            `json:"command,omitempty"`   // a program: a name that is looked up, or an absolute path; never through a shell
	Args      []string          `json:"args,omitempty"`      // of the program
	Env       map[string]string `json:"env,omitempty"`       // of the program; of lashd's environment it gets the usual few
	URL       string            `json:"url,omitempty"`       // where it is, if it is spoken to by streamable HTTP
	Headers   map[string]string `json:"headers,omitempty"`   // of each request
	TimeoutMs int64             `json:"timeoutMs,omitempty"` // how long a call may take; absent: ten minutes
}

// MCPTransport says how an MCP server is spoken to.
type MCPTransport string

const (
	MCPStdio MCPTransport = "stdio" // a program, on its stdin and stdout
	MCPHTTP  MCPTransport = "http"  // at a URL, by streamable HTTP
)
