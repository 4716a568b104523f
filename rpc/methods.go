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
			"session/list":           bind("Lists sessions, newest first; those that work for others only if they are wanted.", to(sessions, (*engine.Sessions).List)),
			"session/read":           bind("Reads a page of items, backwards from the newest.", to(sessions, (*engine.Sessions).Read)),
			"session/attach":         bind("Subscribes to a session: a snapshot or a replay, then everything that happens.", (*conn).sessionAttach),
			"session/detach":         bind("Ends a subscription.", (*conn).sessionDetach),
			"session/configure":      bind("Changes settings, from the next turn on.", to(sessions, (*engine.Sessions).Configure)),
			"session/setOverlay":     bind("Replaces what clients add to a session: tools of the client's own, MCP servers, and a prompt text.", toAs(sessions, (*engine.Sessions).SetOverlay)),
			"session/setTitle":       bind("Names a session for people.", to(sessions, (*engine.Sessions).SetTitle)),
			"session/fork":           bind("Makes a session that shares this one's history up to a node.", to(history, (*engine.History).Fork)),
			"session/rewind":         then("Moves the leaf to an ancestor, what came after it stays, pinned; or brings back files, or both.", (*conn).sessionRewind),
			"session/points":         bind("Lists the file points of a session: what its turns, and rewinds, did to files.", to(files, (*undo.Files).Points)),
			"session/diff":           wait("Tells what a session did to files, or one turn or file point of it, as unified diffs.", to(files, (*undo.Files).Diff)),
			"session/compact":        wait("Has a plugin summarise history: the model sees only the summary from then on.", to(sessions, (*engine.Sessions).Compact)),
			"session/applyExtension": wait("Sends something to the session's protocol, once the running turn has ended.", to(sessions, (*engine.Sessions).ApplyExtension)),
			"session/close":          bind("Takes an idle session out of memory; it is loaded again when used.", to(sessions, (*engine.Sessions).Close)),
			"session/archive":        bind("Puts a session away, or takes it out again.", to(sessions, (*engine.Sessions).Archive)),
			"session/delete":         bind("Removes a session for ever; a running turn is stopped.", to(sessions, (*engine.Sessions).Delete)),
			"session/wait":           wait("Waits until no turn runs and none is queued.", to(sessions, (*engine.Sessions).Wait)),
		}},
		{"Graph", map[string]Method{
			"graph/read":   bind("Reads a page of nodes of the active path, backwards from the leaf.", to(history, (*engine.History).Read)),
			"graph/append": bind("Adds nodes to the leaf, also beside a running turn.", to(history, (*engine.History).Append)),
			"graph/pin":    bind("Keeps a node reachable, whatever becomes of the leaf.", to(history, (*engine.History).Pin)),
			"graph/unpin":  bind("Lets a pinned node go.", to(history, (*engine.History).Unpin)),
		}},
		{"Turns", map[string]Method{
			"turn/start":     bind("Makes an input durable and starts its turn, or queues it.", to(turns, (*engine.Turns).Start)),
			"turn/run":       then("Starts a turn and waits for its end, and for that of the turns that follow it.", (*conn).turnRun),
			"turn/wait":      wait("Waits for the end of a turn; may be asked by anybody, at any time.", to(turns, (*engine.Turns).Wait)),
			"turn/steer":     bind("Sends an input into a running turn, at its next checkpoint.", to(turns, (*engine.Turns).Steer)),
			"turn/interrupt": bind("Stops a turn.", toAs(turns, (*engine.Turns).Interrupt)),
			"turn/read":      bind("Reports a turn as it is.", to(turns, (*engine.Turns).Read)),
			"turn/trace":     bind("Reads what the log has of a turn, event by event; also of one that goes on.", to(turns, (*engine.Turns).Trace)),
			"turn/list":      bind("Lists the turns of a session, newest first.", to(turns, (*engine.Turns).List)),
		}},
		{"Input queue", map[string]Method{
			"queue/list":   bind("Lists the inputs that no finished turn has taken in.", to(inputs, (*engine.Queue).List)),
			"queue/cancel": bind("Withdraws an input that no turn has taken in.", to(inputs, (*engine.Queue).Cancel)),
		}},
		{"Decisions", map[string]Method{
			"decision/list":    bind("Lists open questions to a person, and calls that wait for tool/complete.", to(decisions, (*engine.Decisions).List)),
			"decision/respond": bind("Answers one; the first answer counts. To approve a tool call, `argsHash` must be the decision's.", toAs(decisions, (*engine.Decisions).Respond)),
		}},
		{"Tools", map[string]Method{
			"tool/list":            bind("Lists the tools of a session.", to(tools, (*engine.Tools).List)),
			"tool/state":           bind("Reads what a session decided about its tools.", to(tools, (*engine.Tools).State)),
			"tool/applyState":      bind("Replaces those settings, if they are still of the generation that was read.", to(tools, (*engine.Tools).ApplyState)),
			"tool/setMembership":   bind("Says which tools the model may call.", to(tools, (*engine.Tools).SetMembership)),
			"tool/setAvailability": bind("Says how far tools are open to the model.", to(tools, (*engine.Tools).SetAvailability)),
			"tool/refresh":         bind("Asks the sources of tools again what they offer.", to(tools, (*engine.Tools).Refresh)),
			"tool/call":            wait("Runs a tool without a model.", to(tools, (*engine.Tools).Call)),
			"tool/complete":        bind("Completes a call that answered that it is pending.", toAs(tools, (*engine.Tools).Complete)),
			"tool/respond":         bind("Answers a call of a tool that this client provides.", toAs(tools, (*engine.Tools).Respond)),
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
			"operation/list":    bind("Lists what plugins offer to clients.", to(operations, (*engine.Operations).List)),
			"operation/query":   wait("Asks a plugin; runs beside a turn.", to(operations, (*engine.Operations).Query)),
			"operation/command": wait("Has a plugin change something, once the running turn has ended; no turn starts meanwhile.", to(operations, (*engine.Operations).Command)),
			"operation/task":    wait("Likewise for what takes its time; cancel the request to have it end early.", to(operations, (*engine.Operations).Task)),
			"action/invoke":     wait("Calls an operation of whatever kind it is.", to(operations, (*engine.Operations).Invoke)),
		}},
		{"Tasks", map[string]Method{
			"task/start":     bind("Starts background work in a session.", toAs(tasks, (*engine.Tasks).Start)),
			"task/list":      bind("Lists tasks in the order of their newest changes, or what has changed since a cursor.", to(tasks, (*engine.Tasks).List)),
			"task/read":      bind("Reads a task and what happened to it.", to(tasks, (*engine.Tasks).Read)),
			"task/output":    bind("Reads a part of what a task has put out.", to(tasks, (*engine.Tasks).Output)),
			"task/wait":      wait("Waits for tasks: all, the first, or the first that succeeds.", toAs(tasks, (*engine.Tasks).Wait)),
			"task/signal":    wait("Sends something to a task that it declares to take.", toAs(tasks, (*engine.Tasks).Signal)),
			"task/cancel":    bind("Asks that a task ends; it may still complete.", toAs(tasks, (*engine.Tasks).Cancel)),
			"task/cancelAll": bind("Asks that all tasks of a session end.", toAs(tasks, (*engine.Tasks).CancelAll)),
			"task/complete":  bind("Tells how a task ended that runs elsewhere, or gives it up.", toAs(tasks, (*engine.Tasks).Complete)),
			"task/transfer":  wait("Gives tasks to another session: all of them, or none.", to(tasks, (*engine.Tasks).Transfer)),
			"task/prune":     bind("Lets go of what is stored of tasks that are over; their ids stay known.", to(tasks, (*engine.Tasks).Prune)),
			"task/observe":   bind("Lets another session see a task, or no longer.", to(tasks, (*engine.Tasks).Observe)),
		}},
		{"Monitors", map[string]Method{
			"monitor/start":   bind("Starts a command whose lines wake the session; one that runs already is not started again.", toAs(monitors, (*engine.Monitors).Start)),
			"monitor/stop":    wait("Has a monitor end with all that it started, and waits for that.", toAs(monitors, (*engine.Monitors).Stop)),
			"monitor/status":  bind("Lists the monitors of a session; those that are armed are begun.", to(monitors, (*engine.Monitors).Status)),
			"monitor/updates": bind("Takes what monitors have told since it was last taken, at most 128; those that are armed are begun.", to(monitors, (*engine.Monitors).Updates)),
			"monitor/ackWake": bind("Takes notice of wakes, so that the next line wakes again. The end of the turn of a wake does so, too.", to(monitors, (*engine.Monitors).Ack)),
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
			"completion/create": wait("Makes one model call outside of any turn.", to(completions, (*engine.Completions).Create)),
		}},
		{"Seeing inside", map[string]Method{
			"usage/read":   bind("Sums the tokens that were used, by source and model.", to(completions, (*engine.Completions).Usage)),
			"debug/prompt": wait("Shows the request that the next turn would begin with.", to(sessions, (*engine.Sessions).PreviewPrompt)),
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
