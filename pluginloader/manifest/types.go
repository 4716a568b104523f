package manifest

import "encoding/json"

// Field tags set limits, which are also in the schema. min and max limit the characters of a string, the bytes of any JSON, the
// length of a list or an object, or the value of a number. each limits the characters of an element. form names the syntax of a
// string, an element or a key. subst controls ${...}: yes replaces ${PLUGIN_ROOT} and ${PLUGIN_DATA}; none rejects all; own leaves the
// decision to other code; without the tag, these two are rejected. An optional field that is zero or empty counts as absent.

// File is a plugin.json of lashd, or of another agent, which has the same fields except lashd.
type File struct {
	Schema      string         `json:"$schema,omitempty" max:"1024"`     // URL of this schema for editors; lashd ignores it
	Name        string         `json:"name" form:"id"`                   // name of the plugin; unique among all loaded plugins
	Version     string         `json:"version,omitempty" max:"64"`       // version, for people
	Description string         `json:"description,omitempty" max:"4096"` // description, for people
	Lashd       *Contributions `json:"lashd,omitempty"`                  // contributions to lashd
	Others
}

// Others are fields of plugin.json that other agents define. lashd accepts them so that their plugins load, and ignores most.
type Others struct {
	Author     json.RawMessage `json:"author,omitempty"`      // author, for people
	Homepage   json.RawMessage `json:"homepage,omitempty"`    // web page, for people
	Repository json.RawMessage `json:"repository,omitempty"`  // source repository, for people
	License    json.RawMessage `json:"license,omitempty"`     // license, for people
	Keywords   json.RawMessage `json:"keywords,omitempty"`    // search terms, for people
	Display    json.RawMessage `json:"displayName,omitempty"` // display name
	Interface  json.RawMessage `json:"interface,omitempty"`   // how catalogs show it, for people
	Hooks      json.RawMessage `json:"hooks,omitempty"`       // path of a file in the format of hooks/hooks.json, a list of paths, or the contents of such a file
	MCPServers json.RawMessage `json:"mcpServers,omitempty"`  // path of a file in the format of .mcp.json, a list of paths, or servers by name
	Skills     json.RawMessage `json:"skills,omitempty"`      // path of a directory with skills, or a list of paths, in addition to skills/
	Commands   json.RawMessage `json:"commands,omitempty"`    // path of a command or of a directory with commands, or a list of paths, in addition to commands/
	Agents     json.RawMessage `json:"agents,omitempty"`      // path of an agent or of a directory with agents, or a list of paths, in addition to agents/

	Apps         json.RawMessage `json:"apps,omitempty" slot:"none"`         // field of other agents; ignored
	Channels     json.RawMessage `json:"channels,omitempty" slot:"none"`     // field of other agents; ignored
	Dependencies json.RawMessage `json:"dependencies,omitempty" slot:"none"` // field of other agents; ignored
	Experimental json.RawMessage `json:"experimental,omitempty" slot:"none"` // field of other agents; ignored
	LSPServers   json.RawMessage `json:"lspServers,omitempty" slot:"none"`   // field of other agents; ignored
	Monitors     json.RawMessage `json:"monitors,omitempty" slot:"none"`     // field of other agents; ignored
	OutputStyles json.RawMessage `json:"outputStyles,omitempty" slot:"none"` // field of other agents; ignored
	Settings     json.RawMessage `json:"settings,omitempty" slot:"none"`     // field of other agents; ignored
	Themes       json.RawMessage `json:"themes,omitempty" slot:"none"`       // field of other agents; ignored
	UserConfig   json.RawMessage `json:"userConfig,omitempty" slot:"none"`   // field of other agents; ignored
}

// Contributions are everything that a plugin adds. lashd rejects a process that offers anything else.
type Contributions struct {
	Process      *Process          `json:"process,omitempty"`                           // program that speaks the plugin protocol; required for hooks, operations, and tools without a command
	Hooks        []Hook            `json:"hooks,omitempty" max:"64"`                    // hooks of the process; each at most once
	Tools        []Tool            `json:"tools,omitempty" max:"256"`                   // tools for the model
	Operations   []Operation       `json:"operations,omitempty" max:"256"`              // operations of the process, for clients
	Tasks        []string          `json:"tasks,omitempty" max:"64" each:"128"`         // names of task handlers of the process
	CodeExecutor *CodeExecutor     `json:"codeExecutor,omitempty"`                      // set if the process runs code cells
	State        string            `json:"state,omitempty" max:"64"`                    // version of the state that the process keeps for each session; absent: no state
	MoreTools    bool              `json:"moreTools,omitempty"`                         // whether the process lists its tools at run time; tools has the initial list
	Prepares     bool              `json:"prepares,omitempty"`                          // whether the process completes the arguments of its tools before a call
	Input        *Input            `json:"input,omitempty"`                             // JSON that clients send to the process with each turn
	Triggers     []Trigger         `json:"triggers,omitempty" max:"64"`                 // outside events that can wake sessions
	Extensions   []Extension       `json:"extensions,omitempty" max:"64"`               // data for other plugins
	MCPServers   map[string]Server `json:"mcpServers,omitempty" max:"64" form:"server"` // MCP servers by name; their tools are called mcp__server__tool
	Prompt       []Prompt          `json:"prompt,omitempty" max:"64"`                   // texts for the system prompt
	Monitors     []Monitor         `json:"monitors,omitempty" max:"32"`                 // commands whose output lines wake sessions; not together with sandbox or limits, which would not apply to them
	ToolSwitches *Switches         `json:"toolSwitches,omitempty"`                      // tools of any plugin that new sessions have or do not have
	Limits       *Limits           `json:"limits,omitempty"`                            // limits of all programs: the process, MCP servers and commands
	Sandbox      *Sandbox          `json:"sandbox,omitempty"`                           // sandbox of all programs, where the system supports it; absent: none, except for MCP servers
	Config       json.RawMessage   `json:"config,omitempty" max:"65536"`                // JSON Schema of the plugin's options; absent: no options
	Capabilities []Capability      `json:"capabilities,omitempty" max:"16"`             // requests that the process may send to lashd, in calls that allow them; absent: only emitTrace
}

// CodeExecutor says how the process runs code cells.
type CodeExecutor struct {
	Replay bool `json:"replay,omitempty"` // a cell depends on nothing but its source, the state before it and its requests to lashd; then lashd runs a cell that a crash interrupted again
}

// Process is a program that speaks the plugin protocol on stdin and stdout. It serves all sessions and runs in the plugin's
// directory.
type Process struct {
	Command   []string          `json:"command" min:"1" max:"256" each:"8192" subst:"yes"`         // program and arguments; never runs in a shell
	Startup   Startup           `json:"startup,omitempty"`                                         // when lashd starts it; absent: lazy
	Env       map[string]string `json:"env,omitempty" max:"64" form:"env" each:"8192" subst:"yes"` // environment variables
	PassEnv   []string          `json:"passEnv,omitempty" max:"64" form:"env"`                     // names of variables to pass from lashd's environment; the program gets only these and a few standard ones
	Deadlines *Deadlines        `json:"deadlines,omitempty"`                                       // timeouts
}

// Limits are the limits of a program and the processes it starts. Defaults come from lashd's configuration.
type Limits struct {
	MemoryMiB int64 `json:"memoryMiB,omitempty" min:"16" max:"65536"` // address space of each process, in MiB
	Processes int64 `json:"processes,omitempty" min:"1" max:"4096"`   // processes and threads, in addition to those of the user at the start; does not apply to root
	OpenFiles int64 `json:"openFiles,omitempty" min:"16" max:"65536"` // open files of each process
	FileMiB   int64 `json:"fileMiB,omitempty" min:"1" max:"1048576"`  // size of a written file, in MiB
}

// Deadlines are the timeouts of a process. Defaults come from lashd's configuration.
type Deadlines struct {
	StartMs int64 `json:"startMs,omitempty" min:"1" max:"600000"` // for the handshake, in ms
	CallMs  int64 `json:"callMs,omitempty" min:"1" max:"3600000"` // for a call without its own timeout, in ms
	StopMs  int64 `json:"stopMs,omitempty" min:"1" max:"60000"`   // to exit when asked, in ms
}

// Sandbox confines a program. The program can read the plugin's directory and basic system files, and write the plugin's data
// directory. The fields allow more. If the system has no sandbox, lashd reports that.
type Sandbox struct {
	Workspace Access   `json:"workspace,omitempty"`                                  // access to the workspace; absent: none. Not allowed for a process that serves all workspaces
	Read      []string `json:"read,omitempty" max:"64" each:"4096" form:"absolute"`  // absolute paths to read; must not contain links
	Write     []string `json:"write,omitempty" max:"64" each:"4096" form:"absolute"` // absolute paths to read and write; must not contain links
	Network   bool     `json:"network,omitempty"`                                    // whether it may open network connections; local sockets stay closed
}

// Hook is a hook of the process. It may be written as its name alone.
type Hook struct {
	On        Slot    `json:"on"`                                        // name of the hook
	TimeoutMs int64   `json:"timeoutMs,omitempty" min:"1" max:"3600000"` // timeout in ms; absent: callMs of the process
	OnError   OnError `json:"onError,omitempty"`                         // effect of a failure; absent: deny for beforeToolCall, else fail
	Priority  int     `json:"priority,omitempty" min:"-1000" max:"1000"` // for transformContext and compact: higher runs first
	Messages  bool    `json:"messages,omitempty"`                        // whether the call includes the conversation; compact always does
	Events    []News  `json:"events,omitempty" max:"8"`                  // for event: the kinds of events; absent: all
}

// Operation is an operation of the process. Clients call it by name.
type Operation struct {
	Name        string          `json:"name" form:"operation"`              // name; unique among all plugins
	Kind        OperationKind   `json:"kind"`                               // query, command or task
	Session     SessionRule     `json:"session,omitempty"`                  // whether calls need a session; absent: required
	Description string          `json:"description,omitempty" max:"4096"`   // description
	Input       json.RawMessage `json:"inputSchema,omitempty" max:"65536"`  // JSON Schema of the arguments
	Output      json.RawMessage `json:"outputSchema,omitempty" max:"65536"` // JSON Schema of the output
}

// Input is JSON that a client sends to the plugin with a turn. The model does not see it.
type Input struct {
	Schema   json.RawMessage `json:"schema,omitempty" max:"65536"` // JSON Schema of the input; absent: any JSON
	Required bool            `json:"required,omitempty"`           // whether lashd rejects turns without it
}

// Trigger is an outside event that can wake sessions. Alias and event together are unique among all plugins.
type Trigger struct {
	ResourceType string          `json:"resourceType" form:"operation"`    // kind of the resource, such as mailbox
	Alias        string          `json:"alias" form:"operation"`           // name of the resource
	Event        string          `json:"event" form:"operation"`           // name of the event
	Description  string          `json:"description,omitempty" max:"4096"` // description, for people
	Payload      json.RawMessage `json:"payload,omitempty" max:"65536"`    // JSON Schema of the payload
}

// Extension is data that the plugin offers to other plugins, under a common ID.
type Extension struct {
	ID      string          `json:"id" form:"operation"` // ID
	Payload json.RawMessage `json:"payload" max:"65536"` // any JSON
}

// Prompt is a text for the system prompt.
type Prompt struct {
	Slot     PromptSlot `json:"slot"`                                      // slot of the system prompt
	Title    string     `json:"title,omitempty" max:"256"`                 // heading
	Priority int        `json:"priority,omitempty" min:"-1000" max:"1000"` // order within the slot; lower comes first
	Tools    []string   `json:"tools,omitempty" max:"256" form:"tool"`     // include the text only if the catalog has one of these tools; absent: always
	Content  string     `json:"content" min:"1" max:"65536"`               // text
}

// Monitor is a command whose output lines wake sessions. Its ID in a session is the plugin's name, a colon and this ID.
type Monitor struct {
	ID         string            `json:"monitorId" form:"server"`                       // ID
	Command    string            `json:"command" min:"1" max:"8192"`                    // command line for sh; PLUGIN_ROOT is the plugin's directory
	Cwd        string            `json:"cwd,omitempty" max:"4096"`                      // directory, relative to the workspace; absent: the workspace
	Env        map[string]string `json:"env,omitempty" max:"64" form:"env" each:"4096"` // environment variables
	Persistent bool              `json:"persistent,omitempty"`                          // whether it runs without a time limit
	TimeoutMs  int64             `json:"timeoutMs,omitempty" min:"1" max:"3600000"`     // time limit in ms; absent: 300000
	ArmOn      MonitorArm        `json:"armOn,omitempty"`                               // when it starts; absent: manual
	Wake       MonitorWake       `json:"wake,omitempty"`                                // effect of its output lines; absent: queueTurn
	Restart    bool              `json:"restartOnRestore,omitempty"`                    // whether it starts again after an interrupted run
}

// Switches are the tools of any plugin that a new session has or does not have. Settings of a session override them.
type Switches struct {
	On  []string `json:"on,omitempty" max:"256" form:"tool"`  // tools to switch on
	Off []string `json:"off,omitempty" max:"256" form:"tool"` // tools to hide from the model
}

// Server is an MCP server, in the format of .mcp.json. It has a command or a url.
type Server struct {
	Type      Transport         `json:"type,omitempty"`                                                    // stdio or http; absent: derived from the other fields
	Command   string            `json:"command,omitempty" max:"8192" subst:"yes"`                          // program; never runs in a shell
	Args      []string          `json:"args,omitempty" max:"256" each:"8192" subst:"yes"`                  // arguments
	Env       map[string]string `json:"env,omitempty" max:"64" form:"env" each:"8192" subst:"yes"`         // environment variables
	PassEnv   []string          `json:"passEnv,omitempty" max:"64" form:"env"`                             // names of variables to pass from lashd's environment
	URL       string            `json:"url,omitempty" max:"4096" subst:"none"`                             // URL of an HTTP server
	Headers   map[string]string `json:"headers,omitempty" max:"64" form:"header" each:"8192" subst:"none"` // HTTP headers of each request
	OAuth     *ServerClient     `json:"oauth,omitempty"`                                                   // client with which a person logs in; absent: lashd registers one at each login
	TimeoutMs int64             `json:"timeoutMs,omitempty" min:"1" max:"3600000"`                         // how long a call may take
	ServerSandbox
}

// ServerClient is an OAuth client that was registered with the authorization server of an MCP server beforehand.
type ServerClient struct {
	ID     string `json:"clientId" min:"1" max:"1024" subst:"none"`       // its id
	Secret string `json:"clientSecret,omitempty" max:"8192" subst:"none"` // its secret; absent: a public client
}

// ServerSandbox changes the sandbox of an MCP server that lashd starts. Without these fields, the server reaches what the commands of the
// session reach.
type ServerSandbox struct {
	Sandbox ServerMode `json:"sandbox,omitempty"`                                    // fullAccess: outside of a sandbox; readOnly: it never writes to the workspace; absent: as the session's commands
	Network bool       `json:"network,omitempty"`                                    // whether it may use the network of the machine
	Hosts   []string   `json:"hosts,omitempty" max:"32" each:"300" form:"host"`      // hosts that it reaches by HTTP and HTTPS, such as registry.npmjs.org, *.example.com or example.com:8080
	Write   []string   `json:"write,omitempty" max:"64" each:"4096" form:"absolute"` // absolute paths of more files and directories to read and write
}
