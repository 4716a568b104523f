package cli

import (
	"context"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"lashd/cmd/internal/config"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/providers"
	"lashd/rpc"
	"lashd/rpc/protocol"
)

// offers is a source of candidates for a flag or an argument.
type offers func(context.Context, *completion) error

// sources are the sources by the name of a flag or an argument, and by that of the command with it if the name alone says too little.
var sources = map[string]offers{
	"session": offerSessions, "sessions": offerSessions, "wake": offerSessions, "owner": offerSessions,
	"at": offerTurns, "to": offerTurns, "turn": offerPoints,
	"task": offerTasks, "tasks": offerTasks,
	"model": offerModels, "model use name": offerModels, "model test name": offerModels,
	"plugin show name": offerPlugins, "plugin logs name": offerPlugins, "plugin trust name": offerPlugins, "plugin untrust name": offerPlugins,
	"plugin enable name": offerPlugins, "plugin disable name": offerPlugins,
	"trigger remove key": offerTriggers, "trigger enable key": offerTriggers, "trigger disable key": offerTriggers, "trigger history key": offerTriggers,
	"trigger emit type": offerEventTypes, "on": offerEventTypes,
	"rules add words": offerRuleWords, "rules remove rule": offerRules,
	"task signal name": offerWords("stdin", "closeStdin", "interrupt", "resize"),
	"missed":           offerWords("skip", "runOnce", "runAll"),
	"kind":             offerWords("command", "monitor", "subagent", "observer", "other"),
	"driver":           offerWords("standard", "rlm"),
	"provider":         offerWords(providers.Presets()...),
	"method":           offerMethods,
	"man command":      offerCommands,
}

// source returns the source for a flag or an argument of the command, nil if there is none.
func (at *completion) source(name string) offers {
	if s := sources[at.node.Path()+" "+name]; s != nil {
		return s
	}
	return sources[name]
}

// offerWords offers words that never change.
func offerWords(words ...string) offers {
	return func(_ context.Context, at *completion) error {
		for _, w := range words {
			if w != "" {
				at.offer(w, "")
			}
		}
		return nil
	}
}

// ask calls a method of a running daemon. Without one, the result stays empty.
func (at *completion) ask(ctx context.Context, method string, params, result any) error {
	l, err := at.env.Dial(ctx, false, nil)
	if err != nil {
		return nil
	}
	defer l.Close()
	return l.Call(ctx, method, params, result)
}

// offerSessions offers the newest sessions.
func offerSessions(ctx context.Context, at *completion) error {
	var r protocol.SessionListResult
	err := at.ask(ctx, "session/list", protocol.SessionListParams{}, &r)
	for _, s := range r.Data {
		at.offer(string(s.ID), s.Title)
	}
	return err
}

// offerTurns offers the numbers of the turns of the session that is the first argument.
func offerTurns(ctx context.Context, at *completion) error {
	return at.inSession(ctx, func(l *daemon.Link, id protocol.SessionID) error {
		list, err := readTurns(ctx, l, id)
		for i, turn := range list {
			at.offer(strconv.Itoa(i+1), turn.Title())
		}
		return err
	})
}

// offerPoints offers the turns of a session that changed files, and its file points.
func offerPoints(ctx context.Context, at *completion) error {
	return at.inSession(ctx, func(l *daemon.Link, id protocol.SessionID) error {
		points, err := pointsOf(ctx, l, id)
		for _, p := range slices.Backward(points) {
			what := plural(p.Files, "file", "files") + ", " + moment(p.AtMs)
			if p.TurnID != "" && p.Kind == protocol.PointTurn {
				at.offer(string(p.TurnID), what)
				continue
			}
			at.offer(string(p.ID), "undo: "+what)
		}
		return err
	})
}

// inSession calls do with a running daemon and the session that is the first argument.
func (at *completion) inSession(ctx context.Context, do func(*daemon.Link, protocol.SessionID) error) error {
	l, err := at.env.Dial(ctx, false, nil)
	if err != nil || len(at.args) == 0 {
		return nil
	}
	defer l.Close()
	id, err := sessionID(ctx, l, at.args[0])
	if err != nil {
		return nil // the command says what is wrong with the id
	}
	return do(l, id)
}

// offerTasks offers tasks, those that can be signalled or cancelled only while they run.
func offerTasks(ctx context.Context, at *completion) error {
	live := slices.Contains([]string{"task signal", "task cancel", "task wait"}, at.node.Path())
	var r protocol.TaskListResult
	err := at.ask(ctx, "task/list", protocol.TaskListParams{Live: live, Limit: 1000}, &r)
	for _, t := range slices.Backward(r.Data) {
		at.offer(string(t.ID), taskState(t)+": "+t.Spec.Label)
	}
	return err
}

// offerModels offers the models of the daemon or, without one, those of config.toml and the keys here.
func offerModels(ctx context.Context, at *completion) error {
	var r protocol.ModelListResult
	err := at.ask(ctx, "model/list", nil, &r)
	for _, m := range r.Data {
		at.offer(m.Name, m.Title)
	}
	if err != nil || len(r.Data) > 0 {
		return err
	}
	cfg, err := config.Load(at.env.Home)
	if err != nil {
		return nil // lash config says what is wrong
	}
	if source, err := cfg.Source(config.OpenKeySources(at.env.Home, cfg, ""), config.NotSet); err == nil {
		for _, m := range source.Models() {
			at.offer(m.Name, m.Title)
		}
	}
	return nil
}

// offerPlugins offers the plugins of the user and of this directory.
func offerPlugins(ctx context.Context, at *completion) error {
	cwd, err := os.Getwd()
	if err != nil {
		return err
	}
	var r protocol.PluginListResult
	err = at.ask(ctx, "plugin/list", protocol.PluginListParams{Cwd: cwd}, &r)
	for _, p := range r.Data {
		if p.Scope != protocol.ScopeBuiltin {
			at.offer(p.Name, string(p.Status))
		}
	}
	return err
}

// offerTriggers offers the keys of triggers.
func offerTriggers(ctx context.Context, at *completion) error {
	var r protocol.TriggerListResult
	err := at.ask(ctx, "trigger/list", protocol.TriggerListParams{Limit: 200}, &r)
	for _, g := range r.Data {
		at.offer(g.Key, when(g.Source))
	}
	return err
}

// offerEventTypes offers the types of events.
func offerEventTypes(ctx context.Context, at *completion) error {
	var r protocol.TriggerTypesResult
	err := at.ask(ctx, "trigger/types", nil, &r)
	for _, t := range r.Data {
		if !t.Watched {
			at.offer(t.Type, t.Description)
		}
	}
	return err
}

// offerRuleWords offers the subjects of a rule. Values of a path are files, which the shell completes.
func offerRuleWords(_ context.Context, at *completion) error {
	switch words := at.args[1:]; {
	case len(words) == 0:
		at.offer("command", "a command and what follows it, such as: command git push")
		at.offer("path", "files, such as: path '**/.env'")
		at.offer("host", "a host, such as: host '*.example.com'")
		at.offer("tool", "a tool, such as: tool 'mcp_*'")
	case len(words) == 2 && words[0] == "tool":
		at.offer("command", "of this tool")
		at.offer("path", "of this tool")
		at.offer("host", "of this tool")
	}
	return nil
}

// offerRules offers the ids of rules that can be removed here.
func offerRules(ctx context.Context, at *completion) error {
	l, err := at.env.Dial(ctx, false, nil)
	if err != nil || len(at.args) > 0 {
		return nil
	}
	defer l.Close()
	_, cwd, err := ofRules{}.place(ctx, l)
	if err != nil {
		return err
	}
	all, err := (&rulesLink{Link: l, cwd: cwd}).rules(ctx)
	for _, rule := range all.Data {
		if rule.ID != "" {
			at.offer(rule.ID, ruleText(rule))
		}
	}
	return err
}

// offerMethods offers the methods of the daemon.
func offerMethods(_ context.Context, at *completion) error {
	methods := rpc.Methods()
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		at.offer(name, methods[name].Doc)
	}
	return nil
}

// offerCommands offers the commands of lash.
func offerCommands(_ context.Context, at *completion) error {
	for _, n := range at.node.Parent.Children {
		if !n.Hidden {
			at.offer(n.Name, strings.TrimSuffix(n.Help, "."))
		}
	}
	return nil
}
