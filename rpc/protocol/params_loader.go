package protocol

import "fmt"

// PluginScope says where a plugin comes from.
type PluginScope string

const (
	ScopeBuiltin   PluginScope = "builtin"   // it ships with lashd
	ScopeUser      PluginScope = "user"      // a directory of the user's, which is trusted for being there
	ScopeWorkspace PluginScope = "workspace" // a directory of the workspace, which is inert until a person trusts what is in it
)

// PluginStatus says what has become of a plugin.
type PluginStatus string

const (
	PluginLoaded    PluginStatus = "loaded"    // what is in its directory is what runs
	PluginDegraded  PluginStatus = "degraded"  // what is in its directory cannot be loaded: what ran before still does
	PluginFailed    PluginStatus = "failed"    // what is in its directory cannot be loaded, and nothing of it runs
	PluginUntrusted PluginStatus = "untrusted" // nobody has approved what is in its directory, and nothing of it runs
	PluginModified  PluginStatus = "modified"  // likewise, but what a person approved before still runs
	PluginDisabled  PluginStatus = "disabled"  // a person has switched it off
)

// PluginProblem is a mistake in a file of a plugin, or what else is wrong with it.
type PluginProblem struct {
	File    string `json:"file,omitempty"` // in the plugin's directory
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"` // it is loaded all the same
}

// String is the problem as compilers tell theirs.
func (p PluginProblem) String() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// PluginInfo is a plugin as it is now.
type PluginInfo struct {
	Name        string          `json:"name"` // that of its directory, if nothing in there names it
	Version     string          `json:"version,omitempty"`
	Description string          `json:"description,omitempty"`
	Scope       PluginScope     `json:"scope"`
	Dir         string          `json:"dir,omitempty"`
	Status      PluginStatus    `json:"status"`
	Digest      Digest          `json:"digest,omitempty"`     // of what runs
	Found       Digest          `json:"found,omitempty"`      // of what is in the directory, where that is something else
	Generation  int64           `json:"generation,omitempty"` // that it came with
	Problems    []PluginProblem `json:"problems,omitempty"`
	Sandbox     string          `json:"sandbox,omitempty"` // what confines all its programs, and those of the version before that sessions still have; absent: it has none
	Process     *PluginProcess  `json:"process,omitempty"`
	Servers     []PluginServer  `json:"servers,omitempty"` // MCP servers, by name
}

// PluginProcess is the process of a plugin.
type PluginProcess struct {
	State   string `json:"state"`             // idle, starting, running, failed, quarantined, resumed
	Sandbox string `json:"sandbox,omitempty"` // what confines it
	Error   string `json:"error,omitempty"`   // why it ended last
}

// PluginServer is an MCP server of a plugin.
type PluginServer struct {
	Name      string `json:"name"`
	Transport string `json:"transport"`         // stdio, http
	State     string `json:"state"`             // idle, starting, ready, failed, quarantined, unreachable, resumed
	Tools     int    `json:"tools"`             // that it offers
	Product   string `json:"product,omitempty"` // what it says that it is
	Error     string `json:"error,omitempty"`
}

// PluginListParams asks for the plugins that sessions in a directory have.
type PluginListParams struct {
	Cwd string `json:"cwd,omitempty"` // absent: those of no workspace
}

// PluginRoot is a directory in which plugins are looked for.
type PluginRoot struct {
	Dir    string `json:"dir"`
	Watch  string `json:"watch"`            // events, or polling
	Reason string `json:"reason,omitempty"` // why it is not watched by events, or not all of it
}

// PluginListResult are plugins, in the order in which they are asked, with those that are not loaded.
type PluginListResult struct {
	Generation int64        `json:"generation"` // of the set that runs
	Data       []PluginInfo `json:"data"`
	Roots      []PluginRoot `json:"roots"`
}

// PluginParams names a plugin.
type PluginParams struct {
	Name string `json:"name"`
	Cwd  string `json:"cwd,omitempty"` // of whose plugins it is one; absent: of those of no workspace
}

// PluginReach is what of a plugin reaches beyond its directory.
type PluginReach struct {
	Commands     [][]string         `json:"commands,omitempty"`     // that it may run, as it says them
	Executables  []PluginExecutable `json:"executables,omitempty"`  // which these are
	Files        []PluginFile       `json:"files,omitempty"`        // outside the plugin that the commands name: a change of one needs a new approval
	Uncovered    []string           `json:"uncovered,omitempty"`    // commands that may run or load files that approval does not cover, and why, for people
	Addresses    []string           `json:"addresses,omitempty"`    // of servers
	Environment  []string           `json:"environment,omitempty"`  // names of variables that it gets from the environment of lashd
	Capabilities []string           `json:"capabilities,omitempty"` // what it may ask of lashd
	Configures   bool               `json:"configures,omitempty"`   // a hook of it changes the configuration of sessions: approval only to be stricter
}

// PluginExecutable is a program outside of a plugin's directory.
type PluginExecutable struct {
	Name   string `json:"name"` // as the plugin says it
	Path   string `json:"path"` // where it is, after all links
	Digest Digest `json:"digest"`
}

// PluginFile is a file outside of a plugin's directory that a command of the plugin names.
type PluginFile struct {
	Path   string `json:"path"`
	Digest Digest `json:"digest,omitempty"` // absent: there is no such file
}

// PluginReadResult is a plugin with all that a person has to know to approve it.
type PluginReadResult struct {
	Plugin      PluginInfo           `json:"plugin"`
	Contributes []PluginContribution `json:"contributes"`      // of what is in its directory, or, if that cannot be read, of what runs
	Reach       PluginReach          `json:"reach"`            // likewise
	Digest      Digest               `json:"digest,omitempty"` // of just that, for plugin/trust; absent: it is what runs
}

// PluginContribution is something that a plugin adds.
type PluginContribution struct {
	Kind   string `json:"kind"` // tool, hook, operation, task, prompt, server, process, trigger, extension, toolSwitches, input, moreTools, state, codeExecutor
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"`
}

// PluginLogsParams asks for the newest lines that a plugin has said.
type PluginLogsParams struct {
	Name  string `json:"name"`
	Cwd   string `json:"cwd,omitempty"`   // as in plugin/read
	Limit int    `json:"limit,omitempty"` // default 100, at most 1000
}

// PluginLogLine is a line that a plugin has said, or that was said of it.
type PluginLogLine struct {
	AtMs  int64  `json:"atMs"`
	Level string `json:"level"`
	Text  string `json:"text"`
}

// PluginLogsResult are lines, the oldest first.
type PluginLogsResult struct {
	Data []PluginLogLine `json:"data"`
}

// PluginReloadParams has directories looked at now.
type PluginReloadParams struct {
	Mutation
	Cwd      string   `json:"cwd,omitempty"`      // whose plugins are looked at besides the user's; absent: all that are known
	DryRun   bool     `json:"dryRun,omitempty"`   // only tell what would change
	WhenBusy WhenBusy `json:"whenBusy,omitempty"` // queue: sessions take it at their next turn, the default; refuse: not while any turn runs
}

// PluginChangeKind says what a reload does to a plugin.
type PluginChangeKind string

const (
	PluginAdded     PluginChangeKind = "added"
	PluginChanged   PluginChangeKind = "changed"
	PluginRemoved   PluginChangeKind = "removed"
	PluginUnchanged PluginChangeKind = "unchanged"
)

// PluginChange is what a reload changes of a plugin.
type PluginChange struct {
	Name    string           `json:"name"`
	Change  PluginChangeKind `json:"change"`
	Added   []string         `json:"added,omitempty"`   // contributions, as kind and name
	Removed []string         `json:"removed,omitempty"` // likewise
}

// PluginReloadResult is what a reload came to, or would.
type PluginReloadResult struct {
	Replayable
	Generation int64          `json:"generation"`
	Data       []PluginChange `json:"data"`
	Prefix     bool           `json:"prefix"`             // tools or texts of the prompt change, so that what the model's provider has cached is of no use
	Problems   []PluginInfo   `json:"problems,omitempty"` // plugins that are not as they are in their directories
}

// PluginTrustParams approves what is in a directory of a workspace: exactly these bytes.
type PluginTrustParams struct {
	Mutation
	Name   string `json:"name"`
	Cwd    string `json:"cwd"`
	Digest Digest `json:"digest"` // as plugin/read tells it
}

// PluginUntrustParams takes back every approval of a plugin of a workspace. It stops running.
type PluginUntrustParams struct {
	Mutation
	Name string `json:"name"`
	Cwd  string `json:"cwd"`
}

// PluginEnableParams switches a plugin on or off, wherever it comes from.
type PluginEnableParams struct {
	Mutation
	Name    string `json:"name"`
	Cwd     string `json:"cwd,omitempty"` // as in plugin/read
	Enabled bool   `json:"enabled"`
}

// PluginResult is a plugin after a change.
type PluginResult struct {
	Replayable
	Plugin PluginInfo `json:"plugin"`
}
