package manifest

import "encoding/json"

// The tags of fields are their limits, and are in the schema, too: min and max are characters of a string, bytes of any
// JSON, the count of a list or an object, or the value of a number; each is the most characters of an element; form names
// how a string, an element or a key is written; subst says of ${...} in it: yes, ${PLUGIN_ROOT} and ${PLUGIN_DATA} are put
// in; none may be there; own, something else decides; else only these two may not be there. An optional field that is zero
// or empty is as one that is absent.

// File is a plugin.json: lashd's own, or that of another agent, which has the same fields but lashd.
type File struct {
	Schema      string         `json:"$schema,omitempty" max:"1024"`     // where an editor finds this schema; lashd does not look at it
	Name        string         `json:"name" form:"id"`                   // what the plugin is known by; unique among all that are loaded
	Version     string         `json:"version,omitempty" max:"64"`       // which one it is, for people
	Description string         `json:"description,omitempty" max:"4096"` // what it does, for people
	Lashd       *Contributions `json:"lashd,omitempty"`                  // what it contributes to lashd
	Others
}

// Others are the fields of plugin.json that other agents have made. Most are only known here, so that a plugin that has
// them loads.
type Others struct {
	Author     json.RawMessage `json:"author,omitempty"`      // who made it; for people
	Homepage   json.RawMessage `json:"homepage,omitempty"`    // where to read about it; for people
	Repository json.RawMessage `json:"repository,omitempty"`  // where its source is; for people
	License    json.RawMessage `json:"license,omitempty"`     // under which terms it comes; for people
	Keywords   json.RawMessage `json:"keywords,omitempty"`    // what it is found by; for people
	Display    json.RawMessage `json:"displayName,omitempty"` // its name for people
	Interface  json.RawMessage `json:"interface,omitempty"`   // how a catalog shows it; for people
	Hooks      json.RawMessage `json:"hooks,omitempty"`       // the path of a file like hooks/hooks.json, a list of paths, or what such a file holds
	MCPServers json.RawMessage `json:"mcpServers,omitempty"`  // the path of a file like .mcp.json, a list of paths, or servers by name

	Agents       json.RawMessage `json:"agents,omitempty" slot:"none"`       // of other agents; has no effect
	Apps         json.RawMessage `json:"apps,omitempty" slot:"none"`         // of other agents; has no effect
	Channels     json.RawMessage `json:"channels,omitempty" slot:"none"`     // of other agents; has no effect
	Commands     json.RawMessage `json:"commands,omitempty" slot:"none"`     // of other agents; has no effect
	Dependencies json.RawMessage `json:"dependencies,omitempty" slot:"none"` // of other agents; has no effect
	LSPServers   json.RawMessage `json:"lspServers,omitempty" slot:"none"`   // of other agents; has no effect
	Monitors     json.RawMessage `json:"monitors,omitempty" slot:"none"`     // of other agents; has no effect
	OutputStyles json.RawMessage `json:"outputStyles,omitempty" slot:"none"` // of other agents; has no effect
	Settings     json.RawMessage `json:"settings,omitempty" slot:"none"`     // of other agents; has no effect
	Skills       json.RawMessage `json:"skills,omitempty" slot:"none"`       // of other agents; has no effect
	Themes       json.RawMessage `json:"themes,omitempty" slot:"none"`       // of other agents; has no effect
	UserConfig   json.RawMessage `json:"userConfig,omitempty" slot:"none"`   // of other agents; has no effect
}

// Contributions are what a plugin adds. All of it is declared: what a process offers beyond it is refused.
type Contributions struct {
	Process      *Process          `json:"process,omitempty"`                           // a program that speaks the plugin protocol; hooks, operations, and tools without a command need it
	Hooks        []Hook            `json:"hooks,omitempty" max:"64"`                    // where the process is asked; each slot once
	Tools        []Tool            `json:"tools,omitempty" max:"256"`                   // what the model may call
	Operations   []Operation       `json:"operations,omitempty" max:"256"`              // what clients may call; the process answers
	Tasks        []string          `json:"tasks,omitempty" max:"64" each:"128"`         // names of work that the process does for tasks
	CodeExecutor bool              `json:"codeExecutor,omitempty"`                      // the process runs code cells
	State        string            `json:"state,omitempty" max:"64"`                    // version of the state that the process keeps for each session; absent: it keeps none
	MoreTools    bool              `json:"moreTools,omitempty"`                         // the process says while it runs which tools it has; those of tools are the first
	Prepares     bool              `json:"prepares,omitempty"`                          // the process completes the arguments of calls of its tools before they run
	Input        *Input            `json:"input,omitempty"`                             // what the process takes with each turn
	Triggers     []Trigger         `json:"triggers,omitempty" max:"64"`                 // what may happen outside that wakes sessions
	Extensions   []Extension       `json:"extensions,omitempty" max:"64"`               // data for other plugins
	MCPServers   map[string]Server `json:"mcpServers,omitempty" max:"64" form:"server"` // servers by name, whose tools the model knows as mcp__server__tool
	Prompt       []Prompt          `json:"prompt,omitempty" max:"64"`                   // texts for the system prompt
	Monitors     []Monitor         `json:"monitors,omitempty" max:"32"`                 // commands whose lines wake sessions; not beside a sandbox or limits, to which they are not held
	ToolSwitches *Switches         `json:"toolSwitches,omitempty"`                      // which tools of others sessions begin with
	Limits       *Limits           `json:"limits,omitempty"`                            // what its programs may use: the process, servers and commands
	Sandbox      *Sandbox          `json:"sandbox,omitempty"`                           // what its programs are confined to, where the system can; absent: to nothing
	Config       json.RawMessage   `json:"config,omitempty" max:"65536"`                // JSON Schema of the options that a person may set; absent: there are none
	Capabilities []Capability      `json:"capabilities,omitempty" max:"16"`             // what the process may ask of lashd, where its hooks and tools are given it; absent: it may only trace
}

// Process is a program that speaks the plugin protocol on its stdin and stdout. It serves all sessions, in the directory of
// the plugin.
type Process struct {
	Command   []string          `json:"command" min:"1" max:"256" each:"8192" subst:"yes"`         // the program and its arguments, never through a shell
	Startup   Startup           `json:"startup,omitempty"`                                         // when it is started
	Env       map[string]string `json:"env,omitempty" max:"64" form:"env" each:"8192" subst:"yes"` // variables of its environment
	PassEnv   []string          `json:"passEnv,omitempty" max:"64" form:"env"`                     // names of variables that it gets from the environment of lashd; of all others it sees none but the usual few
	Deadlines *Deadlines        `json:"deadlines,omitempty"`                                       // how long it may take
}

// Limits are what a program and what it starts may use. What is absent is as lashd is configured.
type Limits struct {
	MemoryMiB int64 `json:"memoryMiB,omitempty" min:"16" max:"65536"` // address space of each process
	Processes int64 `json:"processes,omitempty" min:"1" max:"4096"`   // processes and threads besides those of the user that are there when it is started; not of root's
	OpenFiles int64 `json:"openFiles,omitempty" min:"16" max:"65536"` // open files of each process
	FileMiB   int64 `json:"fileMiB,omitempty" min:"1" max:"1048576"`  // size of a file that it writes
}

// Deadlines are how long a process may take. What is absent is as lashd is configured.
type Deadlines struct {
	StartMs int64 `json:"startMs,omitempty" min:"1" max:"600000"` // until its handshake is over
	CallMs  int64 `json:"callMs,omitempty" min:"1" max:"3600000"` // until it answers a call that has no deadline of its own
	StopMs  int64 `json:"stopMs,omitempty" min:"1" max:"60000"`   // until it has ended after it was asked to
}

// Sandbox is what a program is confined to. It reads the directory of the plugin and what programs need of the system, and
// writes the plugin's data directory; the rest is said here. Where the system cannot confine, that is reported.
type Sandbox struct {
	Workspace Access   `json:"workspace,omitempty"`                                  // files of the workspace; absent: none. A process of a plugin of all workspaces has none
	Read      []string `json:"read,omitempty" max:"64" each:"4096" form:"absolute"`  // absolute paths it may read, without links in them
	Write     []string `json:"write,omitempty" max:"64" each:"4096" form:"absolute"` // absolute paths it may read and write, likewise
	Network   bool     `json:"network,omitempty"`                                    // it may open connections, but to no local socket
}

// Hook is a slot at which the process is asked. It may be written as the name of the slot alone.
type Hook struct {
	On        Slot    `json:"on"`                                        // where
	TimeoutMs int64   `json:"timeoutMs,omitempty" min:"1" max:"3600000"` // how long it may take; absent: the call deadline of the process
	OnError   OnError `json:"onError,omitempty"`                         // what a failure comes to; absent: deny for beforeToolCall, else fail
	Priority  int     `json:"priority,omitempty" min:"-1000" max:"1000"` // of transformContext and compact: the higher one is asked first
	Messages  bool    `json:"messages,omitempty"`                        // the conversation comes with the question; always with compact
	Events    []News  `json:"events,omitempty" max:"8"`                  // of event: what it is told of; absent: everything
}

// Operation is what clients may call by name. The process answers.
type Operation struct {
	Name        string          `json:"name" form:"operation"`              // unique among all plugins
	Kind        OperationKind   `json:"kind"`                               // whether it changes something
	Session     SessionRule     `json:"session,omitempty"`                  // whether it is called in a session; absent: required
	Description string          `json:"description,omitempty" max:"4096"`   // what it does
	Input       json.RawMessage `json:"inputSchema,omitempty" max:"65536"`  // JSON Schema of its arguments
	Output      json.RawMessage `json:"outputSchema,omitempty" max:"65536"` // JSON Schema of its answer
}

// Input is what a client gives the plugin with a turn, beside what the model is told.
type Input struct {
	Schema   json.RawMessage `json:"schema,omitempty" max:"65536"` // JSON Schema of it; absent: any JSON
	Required bool            `json:"required,omitempty"`           // without it no turn is accepted
}

// Trigger is something outside that may wake a session. Alias and event together are unique among all plugins.
type Trigger struct {
	ResourceType string          `json:"resourceType" form:"operation"`    // what kind of thing it happens to
	Alias        string          `json:"alias" form:"operation"`           // what that is called here
	Event        string          `json:"event" form:"operation"`           // what happens
	Description  string          `json:"description,omitempty" max:"4096"` // for who waits for it
	Payload      json.RawMessage `json:"payload,omitempty" max:"65536"`    // JSON Schema of what comes with it
}

// Extension is data that the plugin offers to others, under an id that they agree on.
type Extension struct {
	ID      string          `json:"id" form:"operation"` // what it is known by
	Payload json.RawMessage `json:"payload" max:"65536"` // any JSON
}

// Prompt is a text for the system prompt.
type Prompt struct {
	Slot     PromptSlot `json:"slot"`                                      // where
	Title    string     `json:"title,omitempty" max:"256"`                 // a heading
	Priority int        `json:"priority,omitempty" min:"-1000" max:"1000"` // lower comes first in its slot
	Tools    []string   `json:"tools,omitempty" max:"256" form:"tool"`     // if any: only when one of these is in the catalog
	Content  string     `json:"content" min:"1" max:"65536"`               // the text
}

// Monitor is a command whose lines wake sessions. Its id there is the plugin's name, a colon, and the one here.
type Monitor struct {
	ID         string            `json:"monitorId" form:"server"`                       // what it is known by
	Command    string            `json:"command" min:"1" max:"8192"`                    // what sh runs, with the plugin's directory as PLUGIN_ROOT in its environment
	Cwd        string            `json:"cwd,omitempty" max:"4096"`                      // relative to the workspace; absent: that
	Env        map[string]string `json:"env,omitempty" max:"64" form:"env" each:"4096"` // variables of its environment
	Persistent bool              `json:"persistent,omitempty"`                          // it has no time limit
	TimeoutMs  int64             `json:"timeoutMs,omitempty" min:"1" max:"3600000"`     // after which it is stopped; absent: 300000
	ArmOn      MonitorArm        `json:"armOn,omitempty"`                               // when it is begun; absent: manual
	Wake       MonitorWake       `json:"wake,omitempty"`                                // what its lines do; absent: queueTurn
	Restart    bool              `json:"restartOnRestore,omitempty"`                    // it is begun again where its run was cut off
}

// Switches are which tools, of whatever plugin, a new session has. A person may set them otherwise.
type Switches struct {
	On  []string `json:"on,omitempty" max:"256" form:"tool"`  // tools that the model may call
	Off []string `json:"off,omitempty" max:"256" form:"tool"` // tools that the model is not told of
}

// Server is an MCP server, in the words of .mcp.json. It has a command or a url.
type Server struct {
	Type      Transport         `json:"type,omitempty"`                                                    // how it is spoken to; absent: as its other fields say
	Command   string            `json:"command,omitempty" max:"8192" subst:"yes"`                          // the program, never through a shell
	Args      []string          `json:"args,omitempty" max:"256" each:"8192" subst:"yes"`                  // its arguments
	Env       map[string]string `json:"env,omitempty" max:"64" form:"env" each:"8192" subst:"yes"`         // variables of its environment
	PassEnv   []string          `json:"passEnv,omitempty" max:"64" form:"env"`                             // names of variables that it gets from the environment of lashd
	URL       string            `json:"url,omitempty" max:"4096" subst:"none"`                             // where it is, if it is spoken to by HTTP
	Headers   map[string]string `json:"headers,omitempty" max:"64" form:"header" each:"8192" subst:"none"` // headers of each request
	TimeoutMs int64             `json:"timeoutMs,omitempty" min:"1" max:"3600000"`                         // how long a call may take
}
