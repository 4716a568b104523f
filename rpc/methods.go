package rpc

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"lashd/engine"
	"lashd/engine/artifact"
	"lashd/engine/export"
	"lashd/engine/imports"
	"lashd/engine/models"
	"lashd/engine/rulebook"
	"lashd/engine/search"
	"lashd/engine/trigger"
	"lashd/engine/undo"
	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// Methods returns every method of the protocol by name. Dispatch uses this table, and the schemas,
// the TypeScript types and docs/protocol.md are generated from it. Callers must not change it.
func Methods() map[string]Method {
	table.once.Do(func() {
		table.all = map[string]Method{}
		for _, g := range groups() {
			for name, m := range g.Methods {
				m.Group, m.Reads = g.Name, slices.Contains(reading, name)
				table.all[name] = m
			}
		}
	})
	return table.all
}

// table caches the method table. It is filled on first use and not changed afterwards.
var table struct {
	once sync.Once
	all  map[string]Method
}

// Warm fills the method table and the type caches of encoding/json, which the first request would otherwise pay for. The daemon
// calls it in parallel with the rest of its start.
func Warm() {
	Methods()
	var p protocol.InitializeParams
	_ = strictjson.Decode(json.RawMessage(`{"clientInfo":{}}`), &p)
	_, _ = json.Marshal(protocol.InitializeResult{})
}

// reading lists the methods that change nothing. Their errors always have outcome none, and they
// take no idempotency key.
var reading = []string{
	"artifact/read", "audit/list", "audit/verify", "code/state", "command/list", "debug/prompt", "decision/list", "graph/read", "mcp/complete", "mcp/resources", "model/list",
	"operation/list", "operation/query", "ping", "plugin/list", "plugin/logs", "plugin/read", "provider/list", "queue/list", "rpc/discover",
	"rule/list", "rule/test", "server/diagnostics", "server/status",
	"session/compactPreview", "session/diff", "session/export", "session/inputs", "session/list", "session/points", "session/read", "session/search", "session/wait", "snapshot/list", "snapshot/preview", "snapshot/read",
	"task/list", "task/output", "task/read", "task/wait", "tool/list", "tool/state", "trigger/history", "trigger/list", "trigger/types",
	"instruction/list", "turn/list", "turn/read", "turn/trace", "turn/wait", "usage/read",
}

// group is a section of docs/protocol.md.
type group struct {
	Name    string
	Methods map[string]Method
}

// groups returns the methods by section of docs/protocol.md, in order. The doc strings become the
// descriptions in all generated documents.
func groups() []group {
	return []group{
		{"Connection", map[string]Method{
			"initialize":   early(bind("Opens the connection and negotiates the protocol version. Optional on the socket with line framing.", (*conn).initialize)),
			"ping":         early(bind("Returns an empty result.", (*conn).ping)),
			"shutdown":     early(bind("Ends this connection's subscriptions; send `exit` next. With `daemon: true`, also stops the daemon.", (*conn).shutdown)),
			"rpc/discover": early(bind("Returns the OpenRPC document of this protocol.", (*conn).discover)),
		}},
		{"Server", map[string]Method{
			"server/status":      bind("Reports the daemon's version, its uptime, its drivers, and how many sessions, turns and decisions are open.", (*conn).status),
			"server/diagnostics": bind("Reports the daemon's resource use, its modes, and plugins with problems.", (*conn).diagnostics),
			"server/backup":      wait("Copies all stored data to a new directory. Turns keep running during the copy.", toEngine((*engine.Engine).Backup)),
			"server/attach":      bind("Subscribes to events of the whole daemon.", (*conn).serverAttach),
		}},
		{"Sessions", map[string]Method{
			"session/new":            bind("Creates a session and attaches the connection to it.", (*conn).sessionNew),
			"audit/list":             bind("Lists, in order, who decided over the tool calls of a session, and what ran outside a sandbox or was refused.", (*conn).auditList),
			"audit/verify":           bind("Checks that the log of a session is complete and unchanged.", (*conn).auditVerify),
			"session/list":           bind("Lists sessions, newest first. Sessions of subagents are included only on request.", to(sessions, (*engine.Sessions).List)),
			"session/inputs":         wait("Lists the texts that people sent to the sessions of a directory, newest first and each once. It covers the newest 5,000 inputs, without those of subagents, plugins and triggers.", to(searches, (*search.Searches).Inputs)),
			"session/search":         wait("Finds messages of people and models, and titles, by their words. The first search makes the index, which takes a while in a large store.", to(searches, (*search.Searches).Search)),
			"session/read":           bind("Reads a page of items, newest page first.", to(sessions, (*engine.Sessions).Read)),
			"session/export":         wait("Writes a session as a Markdown or JSON document, in parts.", to(exports, (*export.Exports).Export)),
			"session/import":         wait("Creates a session with the history of a document that session/export wrote as JSON. Tool calls in it do not run, and no settings, approvals or plugin state come with it.", to(imported, (*imports.Imports).Import)),
			"session/attach":         bind("Subscribes to a session: returns a snapshot or replays missed events, then sends every new event.", (*conn).sessionAttach),
			"session/detach":         bind("Ends a subscription.", (*conn).sessionDetach),
			"session/configure":      bind("Changes settings. They apply from the next turn on.", to(sessions, (*engine.Sessions).Configure)),
			"session/setOverlay":     bind("Replaces the session's overlay: client tools, MCP servers and prompt text.", toAs(sessions, (*engine.Sessions).SetOverlay)),
			"session/setTitle":       bind("Sets the title of a session.", to(sessions, (*engine.Sessions).SetTitle)),
			"session/fork":           bind("Creates a session that shares this session's history up to a node.", to(history, (*engine.History).Fork)),
			"session/rewind":         then("Moves the leaf to an ancestor, restores files, or both. The abandoned branch stays, pinned.", (*conn).sessionRewind),
			"session/points":         bind("Lists the file points of a session: what each turn and each undo changed in files.", to(files, (*undo.Files).Points)),
			"session/diff":           wait("Returns the file changes of a session, a turn or a file point as unified diffs.", to(files, (*undo.Files).Diff)),
			"session/compact":        wait("Compacts history: from then on the model sees a summary instead.", to(sessions, (*engine.Sessions).Compact)),
			"session/compactPreview": wait("Says what session/compact would summarize and what it would keep. Nothing changes, and no model is called.", (*conn).compactPreview),
			"session/applyExtension": wait("Sends a message to the session's driver. Waits for the running turn to end first.", to(sessions, (*engine.Sessions).ApplyExtension)),
			"session/close":          bind("Unloads an idle session from memory. lashd loads it again on next use.", to(sessions, (*engine.Sessions).Close)),
			"session/archive":        bind("Archives a session. With `undo: true`, takes it out of the archive.", to(sessions, (*engine.Sessions).Archive)),
			"session/delete":         bind("Deletes a session permanently. Stops a running turn first.", to(sessions, (*engine.Sessions).Delete)),
			"session/wait":           wait("Waits until no turn is running or queued.", to(sessions, (*engine.Sessions).Wait)),
		}},
		{"Graph", map[string]Method{
			"graph/read":   bind("Reads a page of nodes on the active branch, starting at the leaf and going back.", to(history, (*engine.History).Read)),
			"graph/append": bind("Appends nodes at the leaf, even during a turn.", to(history, (*engine.History).Append)),
			"graph/pin":    bind("Pins a node: it stays reachable wherever the leaf moves.", to(history, (*engine.History).Pin)),
			"graph/unpin":  bind("Unpins a node.", to(history, (*engine.History).Unpin)),
		}},
		{"Turns", map[string]Method{
			"turn/start":     bind("Stores an input, then starts its turn or queues it.", (*conn).turnStart),
			"turn/run":       then("Starts a turn and waits until it and its follow-up turns have ended.", (*conn).turnRun),
			"turn/wait":      wait("Waits for the end of a turn. Any client may call it, at any time.", to(turns, (*engine.Turns).Wait)),
			"turn/steer":     bind("Sends an input to a running turn. The turn reads it at its next checkpoint.", to(turns, (*engine.Turns).Steer)),
			"turn/interrupt": bind("Stops a turn.", toAs(turns, (*engine.Turns).Interrupt)),
			"turn/read":      bind("Returns the current report of a turn.", to(turns, (*engine.Turns).Read)),
			"turn/trace":     bind("Reads the stored events of a turn, in order. The turn may still be running.", to(turns, (*engine.Turns).Trace)),
			"turn/list":      bind("Lists the turns of a session, newest first.", to(turns, (*engine.Turns).List)),
		}},
		{"Input queue", map[string]Method{
			"queue/list":   bind("Lists the queued inputs of a session.", to(inputs, (*engine.Queue).List)),
			"queue/cancel": bind("Removes an input that no turn has used yet.", to(inputs, (*engine.Queue).Cancel)),
		}},
		{"Decisions", map[string]Method{
			"decision/list":    bind("Lists open decisions: approvals, questions, and tool calls that wait for tool/complete.", to(decisions, (*engine.Decisions).List)),
			"decision/respond": bind("Answers a decision. The first answer counts. To approve a tool call, send the decision's `argsHash`.", toAs(decisions, (*engine.Decisions).Respond)),
		}},
		{"Rules", map[string]Method{
			"rule/list":   bind("Lists approval rules of the user, a workspace and a session.", to(rules, (*rulebook.Methods).List)),
			"rule/test":   wait("Judges a tool call without making it: the decision, its reason and the rule that decides.", to(rules, (*rulebook.Methods).Test)),
			"rule/add":    wait("Stores an approval rule of the user, a workspace or a session.", toAs(rules, (*rulebook.Methods).Add)),
			"rule/remove": wait("Removes an approval rule, or an answer that covers later calls.", to(rules, (*rulebook.Methods).Remove)),
		}},
		{"Tools", map[string]Method{
			"tool/list":            bind("Lists the tools of a session.", to(tools, (*engine.Tools).List)),
			"tool/state":           bind("Reads the tool settings of a session.", to(tools, (*engine.Tools).State)),
			"tool/applyState":      bind("Replaces all tool settings of a session. Fails if their generation has changed.", to(tools, (*engine.Tools).ApplyState)),
			"tool/setMembership":   bind("Adds tools to the model's catalog or removes them.", to(tools, (*engine.Tools).SetMembership)),
			"tool/setAvailability": bind("Sets how tools are offered to the model.", to(tools, (*engine.Tools).SetAvailability)),
			"tool/refresh":         bind("Asks plugins and MCP servers for their current tools.", to(tools, (*engine.Tools).Refresh)),
			"tool/call":            wait("Runs a tool without a model.", to(tools, (*engine.Tools).Call)),
			"tool/complete":        bind("Completes a tool call that returned a pending result.", toAs(tools, (*engine.Tools).Complete)),
			"tool/respond":         bind("Returns the result of a tool call that this client runs.", toAs(tools, (*engine.Tools).Respond)),
		}},
		{"Code", map[string]Method{
			"code/state":   wait("Returns the variables that code cells of a session have set. Fails if the session's driver runs no code.", to(code, (*engine.Code).State)),
			"code/execute": wait("Runs a code cell without a model. Without `write`, it can only look: it calls no tools and its assignments are forgotten.", to(code, (*engine.Code).Execute)),
		}},
		{"Plugins", map[string]Method{
			"plugin/list":       wait("Lists plugins, including those that are not loaded, with the reason.", (*conn).pluginList),
			"plugin/read":       wait("Returns everything you need to review a plugin before you trust it.", (*conn).pluginRead),
			"plugin/logs":       wait("Reads the newest log lines of a plugin.", (*conn).pluginLogs),
			"plugin/reload":     wait("Scans plugin directories now and loads changes. With `dryRun: true`, only reports them.", (*conn).pluginReload),
			"plugin/setEnabled": wait("Enables or disables a plugin.", (*conn).pluginSetEnabled),
			"plugin/trust":      wait("Trusts a workspace plugin with exactly its current files, and loads it.", (*conn).pluginTrust),
			"plugin/untrust":    wait("Revokes trust in a workspace plugin.", (*conn).pluginUntrust),
		}},
		{"MCP servers", map[string]Method{
			"mcp/login":       wait("Starts an OAuth login to an MCP server of a plugin. Show the address to a person, then call `mcp/finishLogin`.", (*conn).mcpLogin),
			"mcp/finishLogin": wait("Finishes a login with the address that the browser opened, and connects the server. lashd keeps the tokens in the system's keyring or in a private file.", (*conn).mcpFinishLogin),
			"mcp/cancelLogin": bind("Ends a login in progress.", (*conn).mcpCancelLogin),
			"mcp/resources":   wait("Lists the resources and resource templates of a session's MCP servers. `turn/start` reads some with `resources`.", (*conn).mcpResources),
			"mcp/complete":    wait("Completes an argument of a prompt or of a resource template of an MCP server.", (*conn).mcpComplete),
			"mcp/restart":     wait("Restarts an MCP server of a plugin, and returns its state after that. Calls in progress at this server fail.", (*conn).mcpRestart),
			"mcp/logout":      wait("Deletes the login to an MCP server.", (*conn).mcpLogout),
		}},
		{"Operations", map[string]Method{
			"operation/list":    bind("Lists the operations of plugins.", to(operations, (*engine.Operations).List)),
			"operation/query":   wait("Calls a query of a plugin. May run during a turn.", to(operations, (*engine.Operations).Query)),
			"operation/command": wait("Calls a command of a plugin. Waits for the running turn to end; no turn starts before the command returns.", to(operations, (*engine.Operations).Command)),
			"operation/task":    wait("Calls a long-running command of a plugin. Cancel the request to stop it early.", to(operations, (*engine.Operations).Task)),
			"command/list":      wait("Lists the slash commands of a session: the skills and commands of its plugins, and the prompts of their MCP servers. `turn/start` runs one with `command`.", (*conn).commandList),
			"action/invoke":     wait("Calls an operation of any kind.", to(operations, (*engine.Operations).Invoke)),
		}},
		{"Tasks", map[string]Method{
			"task/start":     bind("Starts a task in a session.", toAs(tasks, (*engine.Tasks).Start)),
			"task/list":      bind("Lists tasks by time of their last change, or only tasks that changed since a cursor.", to(tasks, (*engine.Tasks).List)),
			"task/read":      bind("Reads a task and its events.", to(tasks, (*engine.Tasks).Read)),
			"task/output":    bind("Reads a range of a task's output.", to(tasks, (*engine.Tasks).Output)),
			"task/wait":      wait("Waits for tasks: all of them, the first to end, or the first to succeed.", toAs(tasks, (*engine.Tasks).Wait)),
			"task/signal":    wait("Sends a signal that the task declares, such as input for a command.", toAs(tasks, (*engine.Tasks).Signal)),
			"task/cancel":    bind("Requests that a task ends. The task may still complete.", toAs(tasks, (*engine.Tasks).Cancel)),
			"task/cancelAll": bind("Requests that all tasks of a session end.", toAs(tasks, (*engine.Tasks).CancelAll)),
			"task/complete":  bind("Reports the outcome of a task that runs outside lashd, or abandons a task.", toAs(tasks, (*engine.Tasks).Complete)),
			"task/transfer":  wait("Moves tasks to another session, all or none.", to(tasks, (*engine.Tasks).Transfer)),
			"task/prune":     bind("Deletes the stored data of ended tasks. Their ids stay reserved.", to(tasks, (*engine.Tasks).Prune)),
			"task/observe":   bind("Lets another session see a task, or stops that.", to(tasks, (*engine.Tasks).Observe)),
		}},
		{"Monitors", map[string]Method{
			"monitor/start":   bind("Starts a monitor: a command whose output lines wake the session. Does nothing if it is already running.", toAs(monitors, (*engine.Monitors).Start)),
			"monitor/stop":    wait("Stops a monitor with all its processes, and waits until they have ended.", toAs(monitors, (*engine.Monitors).Stop)),
			"monitor/status":  bind("Lists the monitors of a session. Starts armed monitors.", to(monitors, (*engine.Monitors).Status)),
			"monitor/updates": bind("Returns monitor updates since the last call, at most 128. Starts armed monitors.", to(monitors, (*engine.Monitors).Updates)),
			"monitor/ackWake": bind("Acknowledges wakes, so that the next line wakes the session again. The end of the woken turn does the same.", to(monitors, (*engine.Monitors).Ack)),
		}},
		{"Snapshots", map[string]Method{
			"snapshot/create":  bind("Saves the state of a session under a name: its leaf, its plugins' state and its tools.", to(snapshots, (*engine.Snapshots).Create)),
			"snapshot/list":    bind("Lists the snapshots of a session.", to(snapshots, (*engine.Snapshots).List)),
			"snapshot/read":    bind("Reads the contents of a snapshot.", to(snapshots, (*engine.Snapshots).Read)),
			"snapshot/preview": bind("Shows what restoring a snapshot would change, without doing it.", to(snapshots, (*engine.Snapshots).Preview)),
			"snapshot/restore": bind("Restores a snapshot: the leaf, the plugins' state and the tools. History stays.", to(snapshots, (*engine.Snapshots).Restore)),
			"snapshot/delete":  bind("Deletes a snapshot.", to(snapshots, (*engine.Snapshots).Delete)),
			"artifact/read":    bind("Reads a range of an artifact by its digest.", to(artifacts, (*artifact.Artifacts).Read)),
			"artifact/write":   bind("Uploads an artifact in parts. The last part stores it.", to(artifacts, (*artifact.Artifacts).Write)),
		}},
		{"Triggers", map[string]Method{
			"trigger/types":    wait("Lists the event types that plugins and lashd declare.", to(triggers, (*trigger.Registry).Types)),
			"trigger/list":     bind("Lists triggers.", to(triggers, (*trigger.Registry).List)),
			"trigger/register": bind("Creates a trigger that wakes a session or starts a new one.", to(triggers, (*trigger.Registry).Register)),
			"trigger/update":   bind("Changes, enables or disables a trigger.", to(triggers, (*trigger.Registry).Update)),
			"trigger/delete":   bind("Deletes a trigger. Events from before the deletion are still delivered.", to(triggers, (*trigger.Registry).Delete)),
			"trigger/emit":     bind("Emits an event. The event and its deliveries are stored before the call returns.", to(triggers, (*trigger.Registry).Emit)),
			"trigger/history":  bind("Lists emitted events and their deliveries, newest first.", to(triggers, (*trigger.Registry).History)),
		}},
		{"Models", map[string]Method{
			"model/list":        wait("Lists the configured models. With `check: true`, also asks each server whether it accepts requests.", to(modelsOf, (*models.Catalog).List)),
			"model/test":        wait("Sends a model a prompt of two words and returns its reply.", to(modelsOf, (*models.Catalog).Test)),
			"model/setDefault":  bind("Sets the model of new sessions, in config.toml.", setsUp(Providers.SetDefaultModel)),
			"model/setKey":      bind("Gives the daemon an API key that its environment lacks. lashd keeps it in memory only.", to(modelsOf, (*models.Catalog).SetKey)),
			"completion/create": wait("Makes one model call outside any turn.", to(completions, (*engine.Completions).Create)),
		}},
		{"Providers", map[string]Method{
			"provider/list":        wait("Lists model providers, where their keys come from, and the models of servers that run on this machine. Takes up to 300 ms.", setsUp(Providers.List)),
			"provider/models":      wait("Asks the server of a provider for the ids of its models, with the key of the provider.", setsUp(Providers.Models)),
			"provider/setAddress":  wait("Writes the address of a server that needs no key into config.toml, if the server answers.", setsUp(Providers.SetAddress)),
			"provider/setKey":      wait("Tests the API key of a provider with one small call and stores it, in the system's keyring or in a file that only the user can read.", setsUp(Providers.SetKey)),
			"provider/removeKey":   wait("Deletes a stored API key or login.", setsUp(Providers.RemoveKey)),
			"provider/beginLogin":  wait("Begins the login to a provider that takes one in place of a key.", setsUp(Providers.BeginLogin)),
			"provider/finishLogin": wait("Finishes a login and stores it.", setsUp(Providers.FinishLogin)),
		}},
		{"Inspection", map[string]Method{
			"instruction/list": wait("Lists the files of instructions that the model of a session gets: those of the user and of the workspace, with their sizes.", (*conn).instructionList),
			"usage/read":       bind("Sums token usage by source and model.", to(completions, (*engine.Completions).Usage)),
			"debug/prompt":     wait("Shows the request that the next turn would send to the model first.", to(sessions, (*engine.Sessions).PreviewPrompt)),
		}},
	}
}

// Groups returns the section names of docs/protocol.md, in order.
func Groups() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.Name)
	}
	return names
}

// names returns the sorted names of methods.
func names(table map[string]Method) []string { return slices.Sorted(maps.Keys(table)) }
