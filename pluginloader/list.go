package pluginloader

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"lashd/engine/plugin"
	"lashd/internal/strictjson"
	"lashd/pluginloader/child"
	"lashd/pluginloader/content"
	"lashd/pluginloader/layout"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// List implements plugin/list: the plugins of sessions in a directory, also those that failed to
// load or need approval, and how their roots are watched.
func (l *Loader) List(ctx context.Context, p *protocol.PluginListParams) (*protocol.PluginListResult, error) {
	s, err := l.setOf(ctx, p.Cwd)
	if err != nil {
		return nil, err
	}
	result := &protocol.PluginListResult{Data: builtin(l.config.Base), Roots: []protocol.PluginRoot{}}
	if len(l.config.User) > 0 {
		result.UserDir = l.config.User[0]
	}
	for _, e := range l.entries(s) {
		info := e.public()
		if info.Digest != "" { // it is in use and may replace a built-in plugin
			result.Data = slices.DeleteFunc(result.Data, func(b protocol.PluginInfo) bool { return b.Scope == protocol.ScopeBuiltin && b.Name == info.Name })
		}
		result.Data = append(result.Data, info)
	}
	l.mu.Lock()
	result.Generation = s.number
	l.mu.Unlock()
	for _, r := range l.watcher.Status() {
		if l.user.has([]string{r.Root}) || s.has([]string{r.Root}) {
			result.Roots = append(result.Roots, s.rootOf(r))
		}
	}
	return result, nil
}

// rootOf describes how a root is watched, or why it is not read, for example because it leads out
// of the workspace.
func (s *set) rootOf(r watch.RootStatus) protocol.PluginRoot {
	root := protocol.PluginRoot{Dir: r.Root, Watch: string(r.Mode), Reason: r.Reason}
	s.loader.mu.Lock()
	defer s.loader.mu.Unlock()
	if s.has([]string{r.Root}) && s.shownRefusal != nil {
		root.Reason = s.shownRefusal.Error()
	}
	return root
}

// entries returns the entries of the user and of a set, in the order in which they register. Any
// goroutine may call it; the entries themselves belong to the loader's goroutine, except for their
// published fields.
func (l *Loader) entries(s *set) []*entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.user.listed)
	if s != l.user {
		all = append(all, s.listed...)
	}
	return all
}

// builtin returns the plugins that ship with lashd.
func builtin(base *plugin.Host) (all []protocol.PluginInfo) {
	for _, id := range base.IDs() {
		all = append(all, protocol.PluginInfo{Name: id, Scope: protocol.ScopeBuiltin, Status: protocol.PluginLoaded})
	}
	return all
}

// public returns the entry's info for clients, with the current state of its programs. It reads the
// published copies under Loader.mu, so any goroutine may call it.
func (e *entry) public() protocol.PluginInfo {
	l := e.set.loader
	l.mu.Lock()
	info, u := e.seen, e.shown
	before := l.confinedBeforeLocked(u)
	l.mu.Unlock()
	if u == nil {
		return info
	}
	info.Version, info.Description, info.Digest, info.Generation = u.manifest.Version, u.manifest.Description, u.copy.Digest, u.number
	info.Sandbox = u.confined(l.config.Sandbox)
	if u.process != nil {
		info.Process = u.process.Status()
		info.Process.Sandbox = info.Sandbox
	}
	if before != "" {
		info.Sandbox += "; an older version that sessions still use: " + before
	}
	if u.servers != nil {
		info.Servers = servers(u.servers.Status())
	}
	info.Problems = append(slices.Clip(info.Problems), unknownModels(u.manifest.Agents, l.config.Knows)...)
	return info
}

// unknownModels returns warnings about agents whose model is not configured. The configuration can change, so they are computed for each
// list.
func unknownModels(agents []*layout.Agent, knows func(string) bool) (all []protocol.PluginProblem) {
	for _, a := range agents {
		if a.Model != "" && knows != nil && !knows(a.Model) {
			all = append(all, protocol.PluginProblem{File: a.File, Warning: true, Message: fmt.Sprintf(
				"there is no model with the name %s, so the agent has the model of the session that starts it; lash model list has the names", strictjson.Quote(a.Model))})
		}
	}
	return all
}

// servers converts the status of MCP servers for clients.
func servers(all []mcp.ServerStatus) (infos []protocol.PluginServer) {
	for _, s := range all {
		infos = append(infos, protocol.PluginServer{
			Name: s.Name, Transport: string(s.Transport), State: string(s.State), Tools: s.Tools,
			Product: strings.TrimSpace(s.Server + " " + s.Version), Error: s.LastError, Sandbox: s.Sandbox, Login: s.Login,
		})
	}
	return infos
}

// same reports whether two infos are equal for clients that follow changes. Starts and ends of
// processes and servers are no changes, because they happen all the time. Failing too often, and
// resuming after that, are.
func same(a, b protocol.PluginInfo) bool {
	if !slices.Equal(failing(a), failing(b)) || !slices.Equal(programs(a, mcp.Resumed), programs(b, mcp.Resumed)) {
		return false
	}
	a.Process, b.Process, a.Servers, b.Servers = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// failing returns the programs and servers of a plugin that failed too often.
func failing(p protocol.PluginInfo) []string { return programs(p, mcp.Quarantined, mcp.Unreachable) }

// programs returns the programs of a plugin that are in one of the states: servers by name, the
// process as "". The process and servers use the same names for states.
func programs(p protocol.PluginInfo, in ...mcp.State) (all []string) {
	if p.Process != nil && slices.Contains(in, mcp.State(p.Process.State)) {
		all = append(all, "")
	}
	for _, s := range p.Servers {
		if slices.Contains(in, mcp.State(s.State)) {
			all = append(all, s.Name)
		}
	}
	return all
}

// find returns the plugin with a name in a directory. Of several, a loaded one wins. The error
// wraps ErrNoPlugin if there is none.
func (l *Loader) find(ctx context.Context, name, cwd string) (*entry, error) {
	s, err := l.setOf(ctx, cwd)
	if err != nil {
		return nil, err
	}
	var found *entry
	for _, e := range l.entries(s) {
		if info := e.public(); info.Name == name && (found == nil || info.Digest != "") {
			found = e
		}
	}
	if found == nil {
		return nil, l.missing(name)
	}
	return found, nil
}

// missing returns the error for a name without a plugin. It says so if the name belongs to a
// built-in plugin, which has no files to read or trust.
func (l *Loader) missing(name string) error {
	if slices.Contains(l.config.Base.IDs(), name) {
		return fmt.Errorf("%w with files: %s is built into lashd", ErrNoPlugin, name)
	}
	return fmt.Errorf("%w: %s", ErrNoPlugin, name)
}

// Read implements plugin/read: everything that a person needs to decide about trust. The digest
// belongs to exactly the contents that the result describes. If the directory cannot be read, the
// result describes what runs.
func (l *Loader) Read(ctx context.Context, p *protocol.PluginReadParams) (*protocol.PluginReadResult, error) {
	e, err := l.find(ctx, p.Name, p.Cwd)
	if err != nil {
		return nil, err
	}
	result := &protocol.PluginReadResult{Contributes: []protocol.PluginContribution{}}
	c, files, err := e.read(ctx, p.Files)
	if err == nil && p.Files {
		result.Files, result.Before = files, e.before(ctx, c.Digest)
	}
	result.Digest = c.Digest
	if err != nil {
		c.Plugin, c.Beyond = e.running()
	}
	result.Plugin = e.public()
	if m := c.Plugin; m != nil {
		result.Contributes, result.Reach = Contributions(m), reachOf(c.Beyond)
		result.Reach.Configures = slices.ContainsFunc(m.Hooks, func(h manifest.Hook) bool { return h.On == manifest.SlotConfigChanged })
	}
	return result, nil
}

// read reads a consistent state of the plugin's directory, including the digest that approval would
// cover, and the files that it covers if they are wanted. Without an error, the copy is gone but describes the plugin.
func (e *entry) read(ctx context.Context, wanted bool) (found content.Copy, files []protocol.PluginReviewFile, err error) {
	if err := e.set.contained(e.dir); err != nil {
		return found, nil, err
	}
	err = e.set.loader.copies.Examine(ctx, e.source(), func(c content.Copy) (err error) {
		if wanted {
			files, err = c.Files(ctx)
		}
		if err == nil {
			found = c
		}
		return err
	})
	return found, files, err
}

// before returns the files of the version in use, if that has another digest.
func (e *entry) before(ctx context.Context, d protocol.Digest) []protocol.PluginReviewFile {
	used := e.public().Digest
	if used == "" || used == d {
		return nil
	}
	files, err := e.set.loader.copies.Before(ctx, used)
	if err != nil {
		return nil // a review without a comparison
	}
	return files
}

// running returns the unit in use; nil: none.
func (e *entry) running() (*manifest.Plugin, manifest.Beyond) {
	e.set.loader.mu.Lock()
	defer e.set.loader.mu.Unlock()
	if e.shown == nil {
		return nil, manifest.Beyond{}
	}
	return e.shown.manifest, e.shown.copy.Beyond
}

// reachOf converts what a plugin uses outside its directory for clients.
func reachOf(b manifest.Beyond) protocol.PluginReach {
	r := protocol.PluginReach{Commands: b.Commands, Addresses: b.Addresses, Environment: b.Environment}
	for _, e := range b.Executables {
		r.Executables = append(r.Executables, protocol.PluginExecutable{Name: e.Name, Path: e.Path, Digest: e.Digest})
	}
	for _, f := range b.Files {
		r.Files = append(r.Files, protocol.PluginFile{Path: f.Path, Digest: f.Digest})
	}
	r.Uncovered = b.Uncovered
	for _, c := range b.Capabilities {
		r.Capabilities = append(r.Capabilities, string(c))
	}
	return r
}

// Logs implements plugin/logs: the newest lines of a plugin's log, oldest first, 100 by default.
// The log is in memory and starts empty when lashd starts.
func (l *Loader) Logs(ctx context.Context, p *protocol.PluginLogsParams) (*protocol.PluginLogsResult, error) {
	e, err := l.find(ctx, p.Name, p.Cwd)
	if err != nil {
		return nil, err
	}
	result := &protocol.PluginLogsResult{Data: []protocol.PluginLogLine{}}
	lines := e.log.Newest()
	limit := p.Limit
	if limit == 0 {
		limit = 100
	}
	for _, line := range lines[max(0, len(lines)-limit):] {
		result.Data = append(result.Data, lineOf(line))
	}
	return result, nil
}

// lineOf converts a line of a plugin's log for clients.
func lineOf(l child.Line) protocol.PluginLogLine {
	return protocol.PluginLogLine{AtMs: l.At.UnixMilli(), Level: l.Level.String(), Text: l.Text}
}
