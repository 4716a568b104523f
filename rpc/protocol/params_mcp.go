package protocol

// ServerLogin says whether an MCP server has an OAuth login.
type ServerLogin string

const (
	LoginNeeded ServerLogin = "needed"   // a person has to log in before the server works
	LoggedIn    ServerLogin = "loggedIn" // lashd has tokens of a person, and renews them
)

// MCPServerParams names an MCP server of a plugin.
type MCPServerParams struct {
	Server string `json:"server"`           // as in plugin/list
	Plugin string `json:"plugin,omitempty"` // required if several plugins have a server of that name
	Cwd    string `json:"cwd,omitempty"`    // also search the plugins of this workspace
}

// MCPLoginParams starts a login to an MCP server.
type MCPLoginParams struct {
	MCPServerParams
	// Redirect is the address of a listener of the client on this machine, such as http://127.0.0.1:4711/callback. The browser opens it after
	// the login. Absent: the person copies the address of the page that the browser cannot load.
	Redirect string `json:"redirect,omitempty"`
}

// MCPLoginResult is a login in progress. It ends after ten minutes, or when another one for the server begins.
type MCPLoginResult struct {
	LoginID  string `json:"loginId"`
	URL      string `json:"url"`      // show it to the person, or open it in the browser
	Redirect string `json:"redirect"` // beginning of the address that the browser opens after the login

	Parties LoginParties `json:"parties"` // show them to the person before the browser opens
}

// LoginParties are the servers that take part in an OAuth login. The MCP server names the authorization server, which names the hosts. lashd
// sends the code of the login only to the host in token.
type LoginParties struct {
	Server        string `json:"server"`            // host of the MCP server
	Issuer        string `json:"issuer"`            // address of the authorization server
	Authorization string `json:"authorization"`     // host of the login page
	Token         string `json:"token"`             // host that gets the result of the login and issues the tokens
	Warning       string `json:"warning,omitempty"` // sentences for the person, if not all of them have the host of the MCP server
}

// String returns the parties for people, a line each, and then the warning.
func (p LoginParties) String() string {
	text := "MCP server:            " + p.Server + "\nAuthorization server:  " + p.Issuer + "\nLogin page:            " + p.Authorization + "\nTokens from:           " + p.Token
	if p.Warning != "" {
		text += "\n\nWarning: " + p.Warning
	}
	return text
}

// MCPFinishLoginParams finishes a login.
type MCPFinishLoginParams struct {
	LoginID string `json:"loginId"`
	Address string `json:"address"` // the whole address that the browser opened, with its code
}

// MCPCancelLoginParams ends a login in progress.
type MCPCancelLoginParams struct {
	LoginID string `json:"loginId"`
}

// MCPLogoutResult says whether there was a login.
type MCPLogoutResult struct {
	Had bool `json:"had"`
}

// MCPRestartResult is the server after its restart: ready, or failed with its error.
type MCPRestartResult struct {
	Server PluginServer `json:"server"`
}

// The plugin for prompts and resources of MCP servers, and its queries.
const (
	ServersID     = "lashd-mcp"             // the plugin, and its query that lists prompts
	ResourcesID   = "lashd-mcp-resources"   // its query that lists resources
	CompletionsID = "lashd-mcp-completions" // its query that completes arguments
)

// ServersInput is the turn input of the plugin for MCP servers.
type ServersInput struct {
	Prompt    *CommandCall      `json:"prompt,omitempty"`
	Resources []ResourceMention `json:"resources,omitempty"`
}

// ResourceMention is a resource of an MCP server that a person names in an input, usually as @server:uri.
type ResourceMention struct {
	Server string `json:"server"`
	URI    string `json:"uri"`
}

// MCPResourcesParams selects the servers of a session.
type MCPResourcesParams struct {
	SessionID SessionID `json:"sessionId"`
}

// MCPResourcesResult lists resources by server.
type MCPResourcesResult struct {
	Data   []ResourceInfo  `json:"data"`
	Failed []ServerFailure `json:"failed"` // servers that did not answer
}

// ResourceInfo is a resource of an MCP server, or a template of resources.
type ResourceInfo struct {
	Server      string `json:"server"`
	URI         string `json:"uri"` // of a template: with variables in braces, after RFC 6570
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Type        string `json:"type,omitempty"` // media type
	Size        int64  `json:"size,omitempty"` // bytes; absent: unknown
	Template    bool   `json:"template,omitempty"`
}

// ServerFailure says why a server did not answer.
type ServerFailure struct {
	Server string `json:"server"`
	Reason string `json:"reason"`
}

// MCPCompleteParams asks for values of an argument of a prompt, or of a variable of a template.
type MCPCompleteParams struct {
	SessionID SessionID         `json:"sessionId"`
	Server    string            `json:"server"`
	Prompt    string            `json:"prompt,omitempty"`   // name of a prompt at the server
	Template  string            `json:"template,omitempty"` // uri of a template; absent with prompt
	Argument  string            `json:"argument"`
	Value     string            `json:"value"`               // what the person has typed
	Arguments map[string]string `json:"arguments,omitempty"` // values of the other arguments
}

// MCPCompleteResult has values, best first.
type MCPCompleteResult struct {
	Values []string `json:"values"`
	More   bool     `json:"more,omitempty"` // the server has more
}
