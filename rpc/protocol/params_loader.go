package protocol

import "fmt"

// PluginScope says where a plugin comes from.
type PluginScope string

const (
	ScopeBuiltin   PluginScope = "builtin"   // part of lashd
	ScopeUser      PluginScope = "user"      // in the user's plugin directory; loaded without approval
	ScopeWorkspace PluginScope = "workspace" // in the workspace; lashd does not load it until you trust it
)

// PluginStatus says whether a plugin is loaded.
type PluginStatus string

const (
	PluginLoaded    PluginStatus = "loaded"    // running with its current files
	PluginDegraded  PluginStatus = "degraded"  // the current files cannot be loaded; the last good version keeps running
	PluginFailed    PluginStatus = "failed"    // the current files cannot be loaded; not running
	PluginUntrusted PluginStatus = "untrusted" // not trusted; not running
	PluginModified  PluginStatus = "modified"  // its files changed after you trusted it; the trusted version keeps running
	PluginDisabled  PluginStatus = "disabled"  // disabled by a person
)

// PluginProblem is a mistake in a file of a plugin, or another problem with it.
type PluginProblem struct {
	File    string `json:"file,omitempty"` // relative to the plugin's directory
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Warning bool   `json:"warning,omitempty"` // the plugin still loads
}

// String formats the problem like a compiler error: file:line:column: message.
func (p PluginProblem) String() string {
	switch {
	case p.File == "":
		return p.Message
	case p.Line == 0:
		return p.File + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// PluginInfo is the current state of a plugin.
type PluginInfo struct {
	Name        string          `json:"name"` // from its manifest; else the name of its directory
	Version     string          `json:"version,omitempty"`
	Description string          `json:"description,omitempty"`
	Scope       PluginScope     `json:"scope"`
	Dir         string          `json:"dir,omitempty"`
	Status      PluginStatus    `json:"status"`
	Digest      Digest          `json:"digest,omitempty"`     // of the running version
	Found       Digest          `json:"found,omitempty"`      // of the current files, if they differ from the running version
	Generation  int64           `json:"generation,omitempty"` // the generation that loaded it
	Problems    []PluginProblem `json:"problems,omitempty"`
	Sandbox     string          `json:"sandbox,omitempty"` // sandbox of all its programs, including those of an older version that sessions still use; absent: no sandbox
	Process     *PluginProcess  `json:"process,omitempty"`
	Servers     []PluginServer  `json:"servers,omitempty"` // MCP servers, sorted by name
}

// PluginProcess is the state of a plugin's process.
type PluginProcess struct {
	State   string `json:"state"`             // idle, starting, running, failed, quarantined or resumed
	Sandbox string `json:"sandbox,omitempty"` // its sandbox
	Error   string `json:"error,omitempty"`   // why it ended the last time
}

// PluginServer is the state of an MCP server of a plugin.
type PluginServer struct {
	Name      string `json:"name"`
	Transport string `json:"transport"`         // stdio or http
	State     string `json:"state"`             // idle, starting, ready, failed, quarantined, unreachable or resumed
	Tools     int    `json:"tools"`             // number of its tools
	Product   string `json:"product,omitempty"` // name and version that it reports
	Sandbox   string `json:"sandbox,omitempty"` // where lashd starts it: in the sandbox of the session, or why not; absent: lashd does not start it
	Error     string `json:"error,omitempty"`

	Login ServerLogin `json:"login,omitempty"` // whether a person has logged in to it, or has to; absent: it has required no login so far
}

// PluginListParams selects the plugins of sessions in a directory.
type PluginListParams struct {
	Cwd string `json:"cwd,omitempty"` // absent: without workspace plugins
}

// PluginRoot is a directory in which lashd looks for plugins.
type PluginRoot struct {
	Dir    string `json:"dir"`
	Watch  string `json:"watch"`            // events or polling
	Reason string `json:"reason,omitempty"` // why lashd does not watch all of it with events
}

// PluginListResult lists plugins in the order in which lashd calls them, including those that are not loaded.
type PluginListResult struct {
	Generation int64        `json:"generation"` // of the running set of plugins
	Data       []PluginInfo `json:"data"`
	Roots      []PluginRoot `json:"roots"`
	UserDir    string       `json:"userDir,omitempty"` // where plugins of the user belong, such as the plugin mcp of lash mcp add; it may not exist
}

// PluginReadParams selects a plugin.
type PluginReadParams struct {
	Name  string `json:"name"`
	Cwd   string `json:"cwd,omitempty"`   // workspace of the plugin; absent: a plugin outside workspaces
	Files bool   `json:"files,omitempty"` // also return the files that trust covers
}

// PluginReach lists what a plugin uses outside its directory.
type PluginReach struct {
	Commands     [][]string         `json:"commands,omitempty"`     // commands that it may run, as written in its files
	Executables  []PluginExecutable `json:"executables,omitempty"`  // the programs of these commands
	Files        []PluginFile       `json:"files,omitempty"`        // files outside the plugin that the commands name; a change of one needs a new approval
	Uncovered    []string           `json:"uncovered,omitempty"`    // for people: commands that may run or load files which the approval does not cover, and why
	Addresses    []string           `json:"addresses,omitempty"`    // addresses of its servers
	Environment  []string           `json:"environment,omitempty"`  // names of variables that it receives from lashd's environment
	Capabilities []string           `json:"capabilities,omitempty"` // capabilities that it requests from lashd
	Configures   bool               `json:"configures,omitempty"`   // one of its hooks changes session settings; it can make approval only stricter
}

// PluginExecutable is a program outside a plugin's directory.
type PluginExecutable struct {
	Name   string `json:"name"` // as written in the plugin's files
	Path   string `json:"path"` // its path, with symbolic links resolved
	Digest Digest `json:"digest"`
}

// PluginFile is a file outside a plugin's directory that a command of the plugin names.
type PluginFile struct {
	Path   string `json:"path"`
	Digest Digest `json:"digest,omitempty"` // absent: the file does not exist
}

// PluginReadResult describes a plugin for review before you trust it.
type PluginReadResult struct {
	Plugin      PluginInfo           `json:"plugin"`
	Contributes []PluginContribution `json:"contributes"`      // of the current files, or of the running version if these cannot be read
	Reach       PluginReach          `json:"reach"`            // of the same version
	Digest      Digest               `json:"digest,omitempty"` // of the reviewed files, for plugin/trust; absent: they are already running
	Files       []PluginReviewFile   `json:"files,omitempty"`  // with files: true, all files that the digest covers
	Before      []PluginReviewFile   `json:"before,omitempty"` // with files: true, those of the running version if it differs
}

// PluginReviewFile is a file that the digest of a plugin covers.
type PluginReviewFile struct {
	Path       string `json:"path"`             // relative to the directory of the plugin; absolute: a file or program outside it
	Size       int64  `json:"size,omitempty"`   // in bytes
	Digest     Digest `json:"digest,omitempty"` // of its bytes
	Link       string `json:"link,omitempty"`   // where the symbolic link leads
	Executable bool   `json:"executable,omitempty"`
	Text       string `json:"text,omitempty"` // absent: it is empty, a binary file, a file over 256 KiB, or beyond 1 MiB of all texts
}

// PluginContribution is something that a plugin adds to sessions.
type PluginContribution struct {
	Kind   string `json:"kind"` // tool, hook, operation, task, prompt, server, process, trigger, extension, toolSwitches, input, moreTools, state or codeExecutor
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"`
}

// PluginLogsParams selects the newest log lines of a plugin.
type PluginLogsParams struct {
	Name  string `json:"name"`
	Cwd   string `json:"cwd,omitempty"`   // workspace of the plugin, as in plugin/read
	Limit int    `json:"limit,omitempty"` // 1 to 1000; absent: 100
}

// PluginLogLine is a line that a plugin printed, or that lashd logged about it.
type PluginLogLine struct {
	AtMs  int64  `json:"atMs"`
	Level string `json:"level"`
	Text  string `json:"text"`
}

// PluginLogsResult holds log lines, oldest first.
type PluginLogsResult struct {
	Data []PluginLogLine `json:"data"`
}

// PluginReloadParams selects the plugin directories to scan.
type PluginReloadParams struct {
	Mutation
	Cwd      string   `json:"cwd,omitempty"`      // the workspace to scan besides the user's plugins; absent: all known workspaces
	DryRun   bool     `json:"dryRun,omitempty"`   // only report what would change
	WhenBusy WhenBusy `json:"whenBusy,omitempty"` // queue: sessions use the change from their next turn on; the default. refuse: fail if any turn is running
}

// PluginChangeKind says how a reload changes a plugin.
type PluginChangeKind string

const (
	PluginAdded     PluginChangeKind = "added"
	PluginChanged   PluginChangeKind = "changed"
	PluginRemoved   PluginChangeKind = "removed"
	PluginUnchanged PluginChangeKind = "unchanged"
)

// PluginChange is the change of one plugin by a reload.
type PluginChange struct {
	Name    string           `json:"name"`
	Change  PluginChangeKind `json:"change"`
	Added   []string         `json:"added,omitempty"`   // added contributions, as kind and name
	Removed []string         `json:"removed,omitempty"` // removed contributions, as kind and name
}

// PluginReloadResult lists the changes of a reload.
type PluginReloadResult struct {
	Replayable
	Generation int64          `json:"generation"`
	Data       []PluginChange `json:"data"`
	Prefix     bool           `json:"prefix"`             // tools or prompt texts change, so the provider's prompt cache becomes useless
	Problems   []PluginInfo   `json:"problems,omitempty"` // plugins whose running version differs from their files, with the reasons
}

// PluginTrustParams trusts a workspace plugin with exactly the files of a digest.
type PluginTrustParams struct {
	Mutation
	Name   string `json:"name"`
	Cwd    string `json:"cwd"`
	Digest Digest `json:"digest"` // from plugin/read
}

// PluginUntrustParams revokes every approval of a workspace plugin. The plugin stops running.
type PluginUntrustParams struct {
	Mutation
	Name string `json:"name"`
	Cwd  string `json:"cwd"`
}

// PluginEnableParams enables or disables a plugin of any scope.
type PluginEnableParams struct {
	Mutation
	Name    string `json:"name"`
	Cwd     string `json:"cwd,omitempty"` // workspace of the plugin, as in plugin/read
	Enabled bool   `json:"enabled"`
}

// PluginResult is a plugin after a change.
type PluginResult struct {
	Replayable
	Plugin PluginInfo `json:"plugin"`
}
