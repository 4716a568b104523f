package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/lash/chat"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// mcpCommand has the subcommands of lash mcp. Those that change the servers change a file of the user, which is the plugin mcp; the daemon
// follows changes of it by itself, so they do not need it. Logins belong to the daemon.
type mcpCommand struct {
	List   mcpListCommand   `cmd:"" default:"1" help:"List your MCP servers (default)."`
	Add    mcpAddCommand    `cmd:"" help:"Add an MCP server for all sessions, or replace it."`
	Remove mcpRemoveCommand `cmd:"" help:"Remove an MCP server."`
	Login  mcpLoginCommand  `cmd:"" help:"Log in to an MCP server with a browser."`
	Logout mcpLogoutCommand `cmd:"" help:"Delete the login to an MCP server."`
}

// mcpServers is the file with the servers of the user, in the format of .mcp.json.
type mcpServers struct {
	Servers map[string]json.RawMessage `json:"mcpServers"`

	path string
}

// mcpServer is a server as lash mcp add writes it. The file may have more fields.
type mcpServer struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	OAuth   *mcpClient        `json:"oauth,omitempty"`
}

// mcpClient is the client with which a person logs in to a server.
type mcpClient struct {
	ID     string `json:"clientId"`
	Secret string `json:"clientSecret,omitempty"`
}

// readServers reads the servers of the user; none if there is no file.
func readServers() (*mcpServers, error) {
	dirs := daemon.UserPlugins()
	if len(dirs) == 0 {
		return nil, errors.New("there is no directory for your plugins: set HOME or XDG_CONFIG_HOME")
	}
	f := &mcpServers{Servers: map[string]json.RawMessage{}, path: filepath.Join(dirs[0], "mcp", ".mcp.json")}
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err == nil {
		err = json.Unmarshal(data, f)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w; correct the file, or remove it", f.path, err)
	}
	return f, nil
}

// write replaces the file, or removes it with its directory if there are no servers. It writes nothing that lashd cannot load.
func (f *mcpServers) write() error {
	if len(f.Servers) == 0 {
		return errors.Join(os.Remove(f.path), os.Remove(filepath.Dir(f.path)))
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if _, problems := manifest.ParseServers(f.path, data); len(problems) > 0 && !problems[0].Warning {
		return problems
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	next := filepath.Join(filepath.Dir(filepath.Dir(f.path)), ".mcp.json.new")
	if err := os.WriteFile(next, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(next, f.path)
}

// mcpAddCommand implements lash mcp add.
type mcpAddCommand struct {
	Env     map[string]string `help:"Environment variable of the program; $${NAME} in the value takes a variable of lashd's environment. Repeatable." short:"e" placeholder:"NAME=VALUE" mapsep:"none"`
	Headers []string          `name:"header" help:"HTTP header of each request to a URL. Repeatable." short:"H" placeholder:"NAME: VALUE" sep:"none"`
	Client  string            `name:"client-id" help:"Id of an OAuth client that you have registered with the authorization server of a URL; without it, lashd registers at each login." placeholder:"ID"`
	Secret  string            `name:"client-secret" help:"Secret of this client; $${NAME} takes a variable of lashd's environment." placeholder:"SECRET"`
	Name    string            `arg:"" help:"Name of the server; its tools are mcp__NAME__TOOL."`
	Server  []string          `arg:"" passthrough:"" help:"Program with its arguments, or the URL of an HTTP server."`
}

// Help is shown by --help.
func (mcpAddCommand) Help() string {
	return `Adds the server to the plugin mcp in your plugin directory, for all sessions. Sessions use it from their next turn. Put options before the
name. A server that lashd starts runs in the sandbox of the session; it reaches hosts and directories that you set for it in config.toml.

If a server requires a login, run lash mcp login NAME, or answer when a call asks for it. Some authorization servers, such as that of GitHub, accept no
registrations: register lashd there yourself, with the redirect address http://127.0.0.1/callback, and pass its --client-id.

Examples:
  lash mcp add files npx -y @modelcontextprotocol/server-filesystem /tmp
  lash mcp add --client-id Ov23li0a1b2c github https://api.githubcopilot.com/mcp
  lash mcp add -H 'Authorization: Bearer ${DOCS_TOKEN}' docs https://example.com/mcp`
}

// Run adds the server.
func (c mcpAddCommand) Run() error {
	server, err := c.server()
	if err != nil {
		return err
	}
	f, err := readServers()
	if err != nil {
		return err
	}
	if f.Servers[c.Name], err = json.Marshal(server); err != nil {
		return err
	}
	if err := f.write(); err != nil {
		return fmt.Errorf("mcp add: %w", err)
	}
	fmt.Fprintf(console.Stdout, "Added %s to %s.\n", c.Name, f.path)
	return nil
}

// server returns the server that the arguments describe. A path of a program becomes absolute, because lashd starts it elsewhere.
func (c mcpAddCommand) server() (s mcpServer, err error) {
	if c.Secret != "" && c.Client == "" {
		return s, usage("mcp add: --client-secret needs --client-id")
	}
	words := c.Server
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		return s, usage("mcp add: name a program or a URL after the name")
	}
	if !strings.HasPrefix(words[0], "http://") && !strings.HasPrefix(words[0], "https://") {
		switch {
		case len(c.Headers) > 0:
			return s, usage("mcp add: --header is for the URL of a server; for a program use --env")
		case c.Client != "":
			return s, usage("mcp add: --client-id is for the URL of a server; a program logs in by itself")
		}
		if strings.ContainsRune(words[0], filepath.Separator) {
			if words[0], err = filepath.Abs(words[0]); err != nil {
				return s, err
			}
		}
		return mcpServer{Command: words[0], Args: words[1:], Env: c.Env}, nil
	}
	if len(words) > 1 || len(c.Env) > 0 {
		return s, usage("mcp add: a URL has no arguments and no --env; use --header")
	}
	s = mcpServer{Type: "http", URL: words[0]}
	if c.Client != "" {
		s.OAuth = &mcpClient{c.Client, c.Secret}
	}
	for _, h := range c.Headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok {
			return s, usage("mcp add: --header must be NAME: VALUE")
		}
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return s, nil
}

// mcpRemoveCommand implements lash mcp remove.
type mcpRemoveCommand struct {
	Name string `arg:"" help:"Name of the server."`
}

// Run removes the server.
func (c mcpRemoveCommand) Run() error {
	f, err := readServers()
	if err != nil {
		return err
	}
	if _, there := f.Servers[c.Name]; !there {
		return fmt.Errorf("mcp remove: there is no server %s in %s; lash mcp lists the servers", c.Name, f.path)
	}
	delete(f.Servers, c.Name)
	if err := f.write(); err != nil {
		return fmt.Errorf("mcp remove: %w", err)
	}
	fmt.Fprintf(console.Stdout, "Removed %s.\n", c.Name)
	return nil
}

// mcpListCommand implements lash mcp list.
type mcpListCommand struct{ console.InJSON }

// Help is shown by --help.
func (mcpListCommand) Help() string {
	return `Lists your MCP servers: those that lash mcp add has added, with their program or URL, and those of plugins and of the workspace. STATE is one of:
  ready        the server works
  idle         lashd starts it when it is used
  starting     it starts
  needs login  log in with lash mcp login NAME
  failed       it does not work; lashd tries again
  unreachable  the same, for a URL that failed often
  quarantined  it failed too often; lash plugin reload starts it again
  resumed      it was started again and has not been used since

If the daemon does not run, there are no states and only the servers that lash mcp add has added. The log of these is in lash plugin logs mcp. --json prints
their file.`
}

// Run prints the servers, without values of variables and headers.
func (c mcpListCommand) Run(ctx context.Context, e *daemon.Environment) error {
	f, err := readServers()
	if err != nil {
		return err
	}
	if c.JSON {
		return console.PrintJSON(f)
	}
	plugins, running := runningPlugins(ctx, e)
	defer adviseServers(e, plugins)
	rows, err := f.rows(plugins)
	if err != nil {
		return err
	}
	rows = append(rows, f.otherRows(plugins)...)
	if len(rows) == 0 {
		fmt.Fprintln(console.Stdout, "No MCP servers. Add one with: lash mcp add NAME PROGRAM")
		return nil
	}
	rows = append([][]string{{"NAME", "STATE", "TOOLS", "SERVER"}}, rows...)
	if !running {
		rows = without(without(rows, "STATE"), "TOOLS")
	}
	if err := table(rows, "TOOLS"); err != nil {
		return err
	}
	if !running {
		e.Note("the daemon is not running, so the states of the servers are unknown; lash plugin list starts it")
	}
	return nil
}

// runningPlugins returns the plugins of the current directory from the daemon, which it does not start. false: there is none.
func runningPlugins(ctx context.Context, e *daemon.Environment) ([]protocol.PluginInfo, bool) {
	l, err := e.Dial(ctx, false, nil)
	if err != nil {
		return nil, false
	}
	defer l.Close()
	var r protocol.PluginListResult
	cwd, err := os.Getwd()
	if err == nil {
		err = l.Call(ctx, "plugin/list", protocol.PluginListParams{Cwd: cwd}, &r)
	}
	return r.Data, err == nil
}

// rows returns a row for each server of the file.
func (f *mcpServers) rows(plugins []protocol.PluginInfo) (rows [][]string, err error) {
	states := map[string]protocol.PluginServer{}
	for _, p := range plugins {
		for _, s := range p.Servers {
			if f.has(&p) {
				states[s.Name] = s
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		var s mcpServer
		if err := json.Unmarshal(f.Servers[name], &s); err != nil {
			return nil, fmt.Errorf("read %s: the server %s: %w", f.path, name, err)
		}
		state, known := states[name]
		rows = append(rows, append(serverCells(name, state, known), console.OneLine(strings.Join(append([]string{s.URL + s.Command}, s.Args...), " "), 120)))
	}
	return rows, nil
}

// has reports whether a plugin is that of the file.
func (f *mcpServers) has(p *protocol.PluginInfo) bool { return p.Dir == filepath.Dir(f.path) }

// otherRows returns a row for each server of another plugin.
func (f *mcpServers) otherRows(plugins []protocol.PluginInfo) (rows [][]string) {
	for _, p := range plugins {
		for _, s := range p.Servers {
			if !f.has(&p) {
				rows = append(rows, append(serverCells(s.Name, s, true), "plugin "+console.OneLine(p.Name, 60)))
			}
		}
	}
	return rows
}

// serverCells returns the cells of a server's name, state and number of tools.
func serverCells(name string, s protocol.PluginServer, known bool) []string {
	if !known {
		return []string{name, "-", "-"}
	}
	state, _ := chat.ServerState(&s)
	return []string{name, state, strconv.Itoa(s.Tools)}
}

// adviseServers says what to do about servers that do not work, and about plugins that need approval, whose servers are not listed.
func adviseServers(e *daemon.Environment, plugins []protocol.PluginInfo) {
	for _, p := range plugins {
		for i := range p.Servers {
			if _, help := chat.ServerState(&p.Servers[i]); len(help) > 0 {
				e.Note("%s: %s", p.Servers[i].Name, strings.Join(help, "\n"))
			}
		}
		if p.Status == protocol.PluginUntrusted {
			advise(e, p)
		}
	}
}

// usage returns an error about the arguments.
func usage(text string) error { return console.Exit(console.ExitUsage, errors.New(text)) }
