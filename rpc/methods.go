package rpc

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"lashd/engine"
	"lashd/engine/trigger"
	"lashd/engine/undo"
	"lashd/internal/strictjson"
	"lashd/rpc/protocol"
)

// Methods is the protocol: every method there is, by name. Dispatch, schema, types and documents are made from it.
// Nobody changes it.
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

var table struct {
	once sync.Once
	all  map[string]Method
}

// Warm makes what the first answer needs and a later one has: the table of methods, and what encoding/json knows of a type once it
// has seen it. Whoever starts a daemon has it done beside what the answer waits for.
func Warm() {
	Methods()
	var p protocol.InitializeParams
	_ = strictjson.Decode(json.RawMessage(`{"clientInfo":{}}`), &p)
	_, _ = json.Marshal(protocol.InitializeResult{})
}

// reading are the methods that change nothing.
var reading = []string{
	"artifact/read", "debug/prompt", "decision/list", "graph/read", "model/list", "operation/list", "operation/query",
	"ping", "plugin/list", "plugin/logs", "plugin/read", "queue/list", "rpc/discover", "server/diagnostics", "server/status",
	"session/diff", "session/list", "session/points", "session/read", "session/wait", "snapshot/list", "snapshot/preview", "snapshot/read",
	"task/list", "task/output", "task/read", "task/wait", "tool/list", "tool/state", "trigger/history", "trigger/list", "trigger/types",
	"turn/list", "turn/read", "turn/trace", "turn/wait", "usage/read",
}

type group struct {
	Name    string
	Methods map[string]Method
}

// groups are the sections of the protocol document, in order.
func groups() []group {
	return []group{
		{"Connection", map[string]Method{
			"initialize":   early(bind("Opens the connection. Line-framed clients of the socket may leave it out.", (*conn).initialize)),
			"ping":         early(bind("Answers.", (*conn).ping)),
			"shutdown":     early(bind("Ends what this connection began; exit follows. With daemon true, the daemon stops too.", (*conn).shutdown)),
			"rpc/discover": early(bind("Answers the OpenRPC document of this protocol.", (*conn).discover)),
		}},
		{"Server", map[string]Method{
			"server/status":      bind("Tells who serves and what is going on.", (*conn).status),
			"server/diagnostics": bind("Tells what the daemon uses, and in which modes it runs.", (*conn).diagnostics),
			"server/backup":      wait("Copies all that is stored into a new directory; turns go on meanwhile.", toEngine((*engine.Engine).Backup)),
			"server/attach":      bind("Subscribes to events of the whole daemon.", (*conn).serverAttach),
		}},
		{"Sessions", map[string]Method{
			"session/new":            bind("Creates a session and attaches the connection to it.", (*conn).sessionNew),
			"session/list":           bind("Lists sessions, newest first; those that work for others only if they are wanted.", toEngine((*engine.Engine).Sessions)),
			"session/read":           bind("Reads a page of items, backwards from the newest.", toEngine((*engine.Engine).ReadSession)),
			"session/attach":         bind("Subscribes to a session: a snapshot or a replay, then everything that happens.", (*conn).sessionAttach),
			"session/detach":         bind("Ends a subscription.", (*conn).sessionDetach),
			"session/configure":      bind("Changes settings, from the next turn on.", toEngine((*engine.Engine).Configure)),
			"session/setOverlay":     bind("Replaces what clients add to a session: tools of the client's own, MCP servers, and a prompt text.", toEngineAs((*engine.Engine).SetOverlay)),
			"session/setTitle":       bind("Names a session for people.", toEngine((*engine.Engine).SetTitle)),
			"session/fork":           bind("Makes a session that shares this one's history up to a node.", to(history, (*engine.History).Fork)),
			"session/rewind":         then("Moves the leaf to an ancestor, what came after it stays, pinned; or brings back files, or both.", (*conn).sessionRewind),
			"session/points":         bind("Lists the file points of a session: what its turns, and rewinds, did to files.", to(files, (*undo.Files).Points)),
			"session/diff":           wait("Tells what a session did to files, or one turn or file point of it, as unified diffs.", to(files, (*undo.Files).Diff)),
			"session/compact":        wait("Has a plugin summarise history: the model sees only the summary from then on.", toEngine((*engine.Engine).Compact)),
			"session/applyExtension": wait("Sends something to the session's protocol, once the running turn has ended.", toEngine((*engine.Engine).ApplyExtension)),
			"session/close":          bind("Takes an idle session out of memory; it is loaded again when used.", toEngine((*engine.Engine).CloseSession)),
			"session/archive":        bind("Puts a session away, or takes it out again.", toEngine((*engine.Engine).Archive)),
			"session/delete":         bind("Removes a session for ever; a running turn is stopped.", toEngine((*engine.Engine).DeleteSession)),
			"session/wait":           wait("Waits until no turn runs and none is queued.", toEngine((*engine.Engine).WaitIdle)),
		}},
		{"Graph", map[string]Method{
			"graph/read":   bind("Reads a page of nodes of the active path, backwards from the leaf.", to(history, (*engine.History).Read)),
			"graph/append": bind("Adds nodes to the leaf, also beside a running turn.", to(history, (*engine.History).Append)),
			"graph/pin":    bind("Keeps a node reachable, whatever becomes of the leaf.", to(history, (*engine.History).Pin)),
			"graph/unpin":  bind("Lets a pinned node go.", to(history, (*engine.History).Unpin)),
		}},
		{"Turns", map[string]Method{
			"turn/start":     bind("Makes an input durable and starts its turn, or queues it.", toEngine((*engine.Engine).StartTurn)),
			"turn/run":       then("Starts a turn and waits for its end, and for that of the turns that follow it.", (*conn).turnRun),
			"turn/wait":      wait("Waits for the end of a turn; may be asked by anybody, at any time.", toEngine((*engine.Engine).WaitTurn)),
			"turn/steer":     bind("Sends an input into a running turn, at its next checkpoint.", toEngine((*engine.Engine).Steer)),
			"turn/interrupt": bind("Stops a turn.", toEngineAs((*engine.Engine).Interrupt)),
			"turn/read":      bind("Reports a turn as it is.", toEngine((*engine.Engine).ReadTurn)),
			"turn/trace":     bind("Reads what the log has of a turn, event by event; also of one that goes on.", toEngine((*engine.Engine).TraceTurn)),
			"turn/list":      bind("Lists the turns of a session, newest first.", toEngine((*engine.Engine).Turns)),
		}},
		{"Input queue", map[string]Method{
			"queue/list":   bind("Lists the inputs that no finished turn has taken in.", toEngine((*engine.Engine).Queue)),
			"queue/cancel": bind("Withdraws an input that no turn has taken in.", toEngine((*engine.Engine).CancelInput)),
		}},
		{"Decisions", map[string]Method{
			"decision/list":    bind("Lists open questions to a person, and calls that wait for tool/complete.", toEngine((*engine.Engine).Decisions)),
			"decision/respond": bind("Answers one; the first answer counts. To approve a tool call, `argsHash` must be the decision's.", toEngineAs((*engine.Engine).Respond)),
		}},
		{"Tools", map[string]Method{
			"tool/list":            bind("Lists the tools of a session.", toEngine((*engine.Engine).Tools)),
			"tool/state":           bind("Reads what a session decided about its tools.", toEngine((*engine.Engine).ToolState)),
			"tool/applyState":      bind("Replaces those settings, if they are still of the generation that was read.", toEngine((*engine.Engine).ApplyToolState)),
			"tool/setMembership":   bind("Says which tools the model may call.", toEngine((*engine.Engine).SetMembership)),
			"tool/setAvailability": bind("Says how far tools are open to the model.", toEngine((*engine.Engine).SetAvailability)),
			"tool/refresh":         bind("Asks the sources of tools again what they offer.", toEngine((*engine.Engine).RefreshTools)),
			"tool/call":            wait("Runs a tool without a model.", toEngine((*engine.Engine).CallTool)),
			"tool/complete":        bind("Completes a call that answered that it is pending.", toEngineAs((*engine.Engine).CompleteTool)),
			"tool/respond":         bind("Answers a call of a tool that this client provides.", toEngineAs((*engine.Engine).RespondTool)),
		}},
		{"Plugins", map[string]Method{
			"plugin/list":       wait("Lists plugins, with those that are not loaded and why.", (*conn).pluginList),
			"plugin/read":       wait("Tells all that a person has to know of a plugin to approve it.", (*conn).pluginRead),
			"plugin/logs":       wait("Reads the newest lines that a plugin has said.", (*conn).pluginLogs),
			"plugin/reload":     wait("Looks at the directories of plugins now, or tells what that would change.", (*conn).pluginReload),
			"plugin/setEnabled": wait("Switches a plugin on or off.", (*conn).pluginSetEnabled),
			"plugin/trust":      wait("Approves exactly the content that a plugin of a workspace has now, and loads it.", (*conn).pluginTrust),
			"plugin/untrust":    wait("Takes every approval of a plugin of a workspace back.", (*conn).pluginUntrust),
		}},
		{"Operations", map[string]Method{
			"operation/list":    bind("Lists what plugins offer to clients.", toEngine((*engine.Engine).Operations)),
			"operation/query":   wait("Asks a plugin; runs beside a turn.", toEngine((*engine.Engine).QueryOperation)),
			"operation/command": wait("Has a plugin change something, once the running turn has ended; no turn starts meanwhile.", toEngine((*engine.Engine).Command)),
			"operation/task":    wait("Likewise for what takes its time; cancel the request to have it end early.", toEngine((*engine.Engine).Task)),
			"action/invoke":     wait("Calls an operation of whatever kind it is.", toEngine((*engine.Engine).Action)),
		}},
		{"Tasks", map[string]Method{
			"task/start":     bind("Starts background work in a session.", toEngineAs((*engine.Engine).StartTask)),
			"task/list":      bind("Lists tasks in the order of their newest changes, or what has changed since a cursor.", toEngine((*engine.Engine).Tasks)),
			"task/read":      bind("Reads a task and what happened to it.", toEngine((*engine.Engine).ReadTask)),
			"task/output":    bind("Reads a part of what a task has put out.", toEngine((*engine.Engine).TaskOutput)),
			"task/wait":      wait("Waits for tasks: all, the first, or the first that succeeds.", toEngineAs((*engine.Engine).WaitTasks)),
			"task/signal":    wait("Sends something to a task that it declares to take.", toEngineAs((*engine.Engine).SignalTask)),
			"task/cancel":    bind("Asks that a task ends; it may still complete.", toEngineAs((*engine.Engine).CancelTask)),
			"task/cancelAll": bind("Asks that all tasks of a session end.", toEngineAs((*engine.Engine).CancelTasks)),
			"task/complete":  bind("Tells how a task ended that runs elsewhere, or gives it up.", toEngineAs((*engine.Engine).CompleteTask)),
			"task/transfer":  wait("Gives tasks to another session: all of them, or none.", toEngine((*engine.Engine).TransferTasks)),
			"task/prune":     bind("Lets go of what is stored of tasks that are over; their ids stay known.", toEngine((*engine.Engine).PruneTasks)),
			"task/observe":   bind("Lets another session see a task, or no longer.", toEngine((*engine.Engine).ObserveTask)),
		}},
		{"Monitors", map[string]Method{
			"monitor/start":   bind("Starts a command whose lines wake the session; one that runs already is not started again.", toEngineAs((*engine.Engine).StartMonitor)),
			"monitor/stop":    wait("Has a monitor end with all that it started, and waits for that.", toEngineAs((*engine.Engine).StopMonitor)),
			"monitor/status":  bind("Lists the monitors of a session; those that are armed are begun.", toEngine((*engine.Engine).Monitors)),
			"monitor/updates": bind("Takes what monitors have told since it was last taken, at most 128; those that are armed are begun.", toEngine((*engine.Engine).MonitorUpdates)),
			"monitor/ackWake": bind("Takes notice of wakes, so that the next line wakes again. The end of the turn of a wake does so, too.", toEngine((*engine.Engine).AckMonitors)),
		}},
		{"Snapshots", map[string]Method{
			"snapshot/create":  bind("Gives the state of a session a name: its leaf, its plugins and its tools.", to(snapshots, (*engine.Snapshots).Create)),
			"snapshot/list":    bind("Lists the snapshots of a session.", to(snapshots, (*engine.Snapshots).List)),
			"snapshot/read":    bind("Reads what a snapshot holds.", to(snapshots, (*engine.Snapshots).Read)),
			"snapshot/preview": bind("Tells what a restore would change, if it would succeed; changes nothing.", to(snapshots, (*engine.Snapshots).Preview)),
			"snapshot/restore": bind("Begins a new head at a snapshot's leaf, with its plugins and tools; history stays.", to(snapshots, (*engine.Snapshots).Restore)),
			"snapshot/delete":  bind("Lets a snapshot go.", to(snapshots, (*engine.Snapshots).Delete)),
			"artifact/read":    bind("Reads a part of an artifact by its digest.", to(artifacts, (*engine.Artifacts).Read)),
			"artifact/write":   bind("Sends an artifact of a session in parts; the last one stores it.", to(artifacts, (*engine.Artifacts).Write)),
		}},
		{"Triggers", map[string]Method{
			"trigger/types":    wait("Lists what may happen outside, as plugins and lashd itself declare it.", to(triggers, (*trigger.Registry).Types)),
			"trigger/list":     bind("Lists triggers.", to(triggers, (*trigger.Registry).List)),
			"trigger/register": bind("Says what is to be done when something happens: wake a session, or begin one.", to(triggers, (*trigger.Registry).Register)),
			"trigger/update":   bind("Changes a trigger, or switches it on or off.", to(triggers, (*trigger.Registry).Update)),
			"trigger/delete":   bind("Ends a trigger; what has occurred before is still delivered.", to(triggers, (*trigger.Registry).Delete)),
			"trigger/emit":     bind("Tells that something has happened; when it answers, that is durable, with all that it is to bring about.", to(triggers, (*trigger.Registry).Emit)),
			"trigger/history":  bind("Lists what happened, newest first, and what has come of it.", to(triggers, (*trigger.Registry).History)),
		}},
		{"Models", map[string]Method{
			"model/list":        wait("Lists the models that sessions can use, and with check whether their servers take requests.", to(models, (*engine.Models).List)),
			"model/setKey":      bind("Hands the daemon an API key that its own environment lacks. It is kept in memory only.", to(models, (*engine.Models).SetKey)),
			"completion/create": wait("Makes one model call outside of any turn.", toEngine((*engine.Engine).Complete)),
		}},
		{"Seeing inside", map[string]Method{
			"usage/read":   bind("Sums the tokens that were used, by source and model.", toEngine((*engine.Engine).Usage)),
			"debug/prompt": wait("Shows the request that the next turn would begin with.", toEngine((*engine.Engine).DebugPrompt)),
		}},
	}
}

// Groups are the names of the sections of the protocol document, in order.
func Groups() []string {
	var names []string
	for _, g := range groups() {
		names = append(names, g.Name)
	}
	return names
}

// names are the names of methods, sorted.
func names(table map[string]Method) []string { return slices.Sorted(maps.Keys(table)) }
