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
