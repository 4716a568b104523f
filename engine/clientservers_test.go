package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine"
	"lashd/engine/clientserver"
	"lashd/engine/param"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// inn is where servers of clients are. The command of one says what it lists, and its first argument after what time.
type inn struct {
	mu    sync.Mutex
	rooms []*room
	taken map[string]string
}

// room is a server that was brought.
type room struct {
	shelf
	name  string
	tried chan struct{}
	tell  func(context.Context, error)
	gone  chan struct{}
}

func (i *inn) Taken(_ context.Context, _, name string) (string, error) { return i.taken[name], nil }

func (i *inn) Connect(ctx context.Context, name string, s protocol.MCPServer, tell func(context.Context, error)) (clientserver.Server, error) {
	if s.Command == "closed" {
		return nil, errors.New("closed")
	}
	r := &room{name: name, tried: make(chan struct{}), tell: tell, gone: make(chan struct{})}
	i.mu.Lock()
	i.rooms = append(i.rooms, r)
	i.mu.Unlock()
	var wait time.Duration
	if len(s.Args) > 0 {
		wait, _ = time.ParseDuration(s.Args[0])
	}
	ctx = context.WithoutCancel(ctx)
	go func() {
		select {
		case <-r.gone:
		case <-time.After(wait):
		}
		r.words = s.Command
		close(r.tried)
		if s.Command == "broken" {
			r.words = ""
			tell(ctx, errors.New("it is broken"))
			return
		}
		tell(ctx, nil)
	}()
	return r, nil
}

func (r *room) Tools() []tool.Tool {
	select {
	case <-r.tried:
		return r.shelf.Tools()
	default:
		return nil
	}
}

func (r *room) Tried() <-chan struct{} { return r.tried }
func (r *room) Leave()                 { close(r.gone) } // a second time panics

// here are the servers that were brought and not let go of.
func (i *inn) here() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var names []string
	for _, r := range i.rooms {
		select {
		case <-r.gone:
		default:
			names = append(names, r.name)
		}
	}
	return strings.Join(names, " ")
}

// of is the server of a name.
func (i *inn) of(name string) *room {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.rooms[slices.IndexFunc(i.rooms, func(r *room) bool { return r.name == name })]
}

// hosted is a daemon with the tool own, to which clients bring servers.
func hosted(t *testing.T, s setup) (*daemon, *inn) {
	t.Helper()
	i := &inn{taken: map[string]string{"plugged": "notes"}}
	if s.model == nil {
		s.model = replies()
	}
	if s.tools == nil {
		s.tools = []tool.Provider{says("own", "mine")}
	}
	s.config = func(c *engine.Config) { c.Servers = i }
	return start(t, s), i
}

// server is one that lists these tools at once, or after a time.
func server(words string, after ...string) protocol.MCPServers {
	return protocol.MCPServers{"x": {Command: words, Args: after}}
}

func (d *daemon) overlay(t *testing.T, id protocol.SessionID, servers protocol.MCPServers) *protocol.SessionOverlayResult {
	t.Helper()
	return must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: servers}))
}

func TestClientServers(t *testing.T) {
	t.Run("issue/4-2 a client that reconnects within 30 s keeps its servers; otherwise their tools lose their provider", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, i := hosted(t, setup{})
			id := d.session(t)
			leave := d.Clients.Connected("cli_a")
			d.overlay(t, id, server("a b"))
			members := &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"b": false}}
			must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), members))
			leave()
			time.Sleep(29 * time.Second)
			leave = d.Clients.Connected("cli_a")
			time.Sleep(time.Hour)
			if got := d.told(t, id); got != "a own" || i.here() != "x" {
				t.Errorf("while it is connected: events %q, servers %q", got, i.here())
			}
			o := d.observe(t, id)
			leave()
			time.Sleep(31 * time.Second)
			state := *o.typed(protocol.EventToolsChanged).Tools
			if got := d.told(t, id); got != "own" || i.here() != "" || !state.Tools["a"].Orphaned {
				t.Errorf("without it: told %q, servers %q, %+v", got, i.here(), state)
			}
			defer d.Clients.Connected("cli_a")()
			d.overlay(t, id, server("a b"))
			if got := d.told(t, id); got != "a own" {
				t.Errorf("brought again: told %q", got)
			}
		})
	})
	t.Run("issue/4-2 a session waits two seconds for tools, and later ones appear in the next model call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, i := hosted(t, setup{})
			defer d.Clients.Connected("cli_a")()
			began := time.Now()
			id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir()})).SessionID
			late := protocol.MCPServers{"now": {Command: "a"}, "later": {Command: "b", Args: []string{"9s"}}, "never": {Command: "broken", Args: []string{"5s"}}}
			if err := d.Sessions.BringServers(t.Context(), "cli_a", id, late); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != 2*time.Second {
				t.Errorf("it took %v", took)
			}
			if got := d.told(t, id); got != "a own" {
				t.Errorf("told %q", got)
			}
			o := d.observe(t, id)
			told := o.typed(protocol.EventPluginStatus)
			if told.Name != "mcp_server_failed" || told.Text != "MCP server never is not available: it is broken" {
				t.Errorf("told %+v", told)
			}
			o.typed(protocol.EventToolsChanged)
			if got := d.told(t, id); got != "a b own" || time.Since(began) != 9*time.Second {
				t.Errorf("told %q after %v", got, time.Since(began))
			}
			for range 2 {
				i.of("never").tell(t.Context(), nil)
			}
			i.of("later").tell(t.Context(), errors.New("it is gone"))
			for _, want := range []string{"mcp_server_recovered: MCP server never is available again", "mcp_server_failed: MCP server later is not available: it is gone"} {
				if e := o.typed(protocol.EventPluginStatus); e.Name+": "+e.Text != want {
					t.Errorf("outside/26 told %+v, want %q", e, want)
				}
			}
			if i.here() == "" {
				t.Error("the session has no tools of the server")
			}
		})
	})
	t.Run("issue/4-2 servers of a cancelled request are disconnected", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			d, i := hosted(t, setup{})
			id := d.session(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := d.Sessions.SetOverlay(ctx, "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: server("a", "1h")})
			if !errors.Is(err, context.DeadlineExceeded) || i.here() != "" {
				t.Errorf("%v, servers %q", err, i.here())
			}
			half := protocol.MCPServers{"x": {Command: "a"}, "y": {Command: "closed"}}
			if _, err := d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: half}); err == nil || i.here() != "" {
				t.Errorf("%v, servers %q", err, i.here())
			}
		})
	})
	t.Run("issue/4-2 a failed commit keeps the previous servers", func(t *testing.T) {
		d, i := hosted(t, setup{})
		id := d.session(t)
		d.overlay(t, id, server("a"))
		large := &protocol.SessionOverlayParams{SessionID: id, Prompt: strings.Repeat("x", persistence.MaxCommitBytes), MCPServers: protocol.MCPServers{"y": {Command: "b"}}}
		if _, err := d.Sessions.SetOverlay(t.Context(), "cli_a", large); !errors.Is(err, persistence.ErrBudget) {
			t.Errorf("%v", err)
		}
		if got := d.told(t, id); got != "a own" || i.here() != "x" {
			t.Errorf("told %q, servers %q", got, i.here())
		}
	})
	t.Run("issue/4-2 a tool name conflict skips the server, and the session opens", func(t *testing.T) {
		d, i := hosted(t, setup{})
		id := d.session(t)
		servers := protocol.MCPServers{"x": {Command: "own a"}, "y": {Command: "b"}}
		d.overlay(t, id, servers)
		if got := d.told(t, id); got != "b own" {
			t.Errorf("told %q", got)
		}
		fresh := d.session(t)
		if err := d.Sessions.BringServers(t.Context(), "cli_a", fresh, servers); err != nil || d.told(t, fresh) != "b own" {
			t.Errorf("a new session: %v, told %q", err, d.told(t, fresh))
		}
		if i.here() != "x y x y" && i.here() != "y x x y" && i.here() != "x y y x" && i.here() != "y x y x" {
			t.Errorf("servers %q", i.here())
		}
	})
	t.Run("issue/4-2 a client's servers stay even if the session excludes all other tools", func(t *testing.T) {
		d, _ := hosted(t, setup{})
		id := d.session(t)
		mine := []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "mine"}}}
		p := &protocol.SessionOverlayParams{SessionID: id, IncludeBaseTools: new(false), Tools: mine, MCPServers: server("a")}
		must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", p))
		if got := d.told(t, id); got != "a mine" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("issue/4-2 servers end with their session, and another client's servers replace them", func(t *testing.T) {
		d, i := hosted(t, setup{})
		id := d.session(t)
		d.overlay(t, id, server("a"))
		other := &protocol.SessionOverlayParams{SessionID: id, MCPServers: protocol.MCPServers{"z": {Command: "a c"}}}
		must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_b", other))
		if got := d.told(t, id); got != "a c own" || i.here() != "z" {
			t.Errorf("told %q, servers %q", got, i.here())
		}
		must[*protocol.SeqResult](t)(d.Sessions.Close(t.Context(), &protocol.SessionMutationParams{SessionID: id}))
		for i.here() != "" {
			time.Sleep(time.Millisecond)
		}
		if got := d.told(t, id); got != "own" {
			t.Errorf("told %q", got)
		}
		d.overlay(t, id, server("a"))
		d.stop()
		if i.here() != "" {
			t.Errorf("servers %q", i.here())
		}
	})
	t.Run("issue/4-2 a disconnecting client removes only its own servers", func(t *testing.T) {
		d, i := hosted(t, setup{})
		id := d.session(t)
		mine := &protocol.SessionOverlayParams{SessionID: id, WhileConnected: true, Tools: []protocol.ClientTool{{ToolManifest: protocol.ToolManifest{Name: "mine"}}}}
		must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", mine))
		nothing := &protocol.SessionOverlayParams{SessionID: id}
		must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_b", nothing))
		if got := d.told(t, id); got != "mine own" {
			t.Errorf("with a tool of another client: told %q", got)
		}
		d.overlay(t, id, server("a"))
		must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_b", nothing))
		if got := d.told(t, id); got != "a own" || i.here() != "x" {
			t.Errorf("with a server of another client: told %q, servers %q", got, i.here())
		}
		must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", nothing))
		if got := d.told(t, id); got != "own" || i.here() != "" {
			t.Errorf("once that has left, too: told %q, servers %q", got, i.here())
		}
	})
	t.Run("issue/4-2 a repeated request gets the first answer, whatever its servers are, and connects them if there are none", func(t *testing.T) {
		d, i := hosted(t, setup{})
		id := d.session(t)
		p := &protocol.SessionOverlayParams{SessionID: id, Mutation: protocol.Mutation{IdempotencyKey: "once"}, MCPServers: server("a")}
		first := must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", p))
		p.MCPServers = protocol.MCPServers{"x": {Command: "a", Env: map[string]string{"TOKEN": "another"}}}
		again := must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", p))
		if !again.Duplicate || again.Seq != first.Seq || i.here() != "x" {
			t.Errorf("again %+v, servers %q", again, i.here())
		}
		p.MCPServers = protocol.MCPServers{"y": {Command: "a"}}
		if _, err := d.Sessions.SetOverlay(t.Context(), "cli_a", p); !errors.Is(err, persistence.ErrReceiptConflict) || i.here() != "x" {
			t.Errorf("with another name: %v, servers %q", err, i.here())
		}
		d = d.restart(t, nil)
		if state := must[*protocol.ToolStateResult](t)(d.Tools.State(t.Context(), &protocol.SessionParams{SessionID: id})).State; !state.Tools["a"].Orphaned {
			t.Errorf("after a restart: %+v", state)
		}
		p.MCPServers = server("a")
		again = must[*protocol.SessionOverlayResult](t)(d.Sessions.SetOverlay(t.Context(), "cli_a", p))
		if got := d.told(t, id); !again.Duplicate || got != "a own" {
			t.Errorf("after a restart: %+v, told %q", again, got)
		}
	})
	t.Run("issue/4-2 a fork starts without the servers but keeps the settings of their tools", func(t *testing.T) {
		d, _ := hosted(t, setup{})
		id := d.session(t)
		d.overlay(t, id, server("a b"))
		must[*protocol.ToolStateResult](t)(d.Tools.SetMembership(t.Context(), &protocol.ToolSetMembershipParams{SessionID: id, Members: map[string]bool{"b": false}}))
		fork := must[*protocol.SessionNewResult](t)(d.History.Fork(t.Context(), &protocol.SessionForkParams{SessionID: id})).SessionID
		if got := d.told(t, fork); got != "own" {
			t.Errorf("told %q", got)
		}
		d.overlay(t, fork, server("a b"))
		if got := d.told(t, fork); got != "a own" {
			t.Errorf("told %q", got)
		}
	})
	t.Run("issue/4-2 only clients can add servers", func(t *testing.T) {
		d, _, host := lent(t, setup{model: replies(scripted.Reply{Text: "ok"}), config: func(c *engine.Config) { c.Servers = &inn{} }})
		_, err := host.Lifecycle.CreateSession(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), MCPServers: server("a")})
		if e, ok := errors.AsType[*param.Error](err); !ok || e.Pointer != "/mcpServers" {
			t.Errorf("%v", err)
		}
		if n := len(must[*protocol.SessionListResult](t)(d.Sessions.List(t.Context(), &protocol.SessionListParams{})).Data); n != 1 {
			t.Errorf("%d sessions", n)
		}
	})
}

func TestInvalidClientServers(t *testing.T) {
	d, i := hosted(t, setup{})
	id := d.session(t)
	many, names := protocol.MCPServers{}, map[string]string{}
	for n := range 65 {
		names[fmt.Sprint("A", n)] = "x"
		if n < 33 {
			many[fmt.Sprint(n)] = protocol.MCPServer{Command: "a"}
		}
	}
	one := func(s protocol.MCPServer) protocol.MCPServers { return protocol.MCPServers{"x": s} }
	long := strings.Repeat("x", 8193)
	for _, c := range []struct {
		what    string
		servers protocol.MCPServers
		pointer string
	}{
		{"too many", many, "/mcpServers"},
		{"a name that cannot be part of a tool name", protocol.MCPServers{"a/b": {Command: "a"}}, "/mcpServers/a~1b"},
		{"no name", protocol.MCPServers{"": {Command: "a"}}, "/mcpServers/"},
		{"nothing", one(protocol.MCPServer{}), "/mcpServers/x"},
		{"another type", one(protocol.MCPServer{Type: "sse", URL: "http://a"}), "/mcpServers/x/type"},
		{"a program by HTTP", one(protocol.MCPServer{Type: "http", Command: "a"}), "/mcpServers/x/type"},
		{"a url by stdio", one(protocol.MCPServer{Type: "stdio", URL: "http://a"}), "/mcpServers/x/type"},
		{"a type alone", one(protocol.MCPServer{Type: "stdio"}), "/mcpServers/x"},
		{"both", one(protocol.MCPServer{Command: "a", URL: "http://a"}), "/mcpServers/x"},
		{"a url with env", one(protocol.MCPServer{URL: "http://a", Env: map[string]string{"A": "b"}}), "/mcpServers/x"},
		{"a command with headers", one(protocol.MCPServer{Command: "a", Headers: map[string]string{"A": "b"}}), "/mcpServers/x"},
		{"a program with a relative path", one(protocol.MCPServer{Command: "./a"}), "/mcpServers/x/command"},
		{"another protocol", one(protocol.MCPServer{URL: "file:///a"}), "/mcpServers/x/url"},
		{"too many arguments", one(protocol.MCPServer{Command: "a", Args: make([]string, 257)}), "/mcpServers/x/args"},
		{"a long argument", one(protocol.MCPServer{Command: "a", Args: []string{"", long}}), "/mcpServers/x/args/1"},
		{"an argument with a 0", one(protocol.MCPServer{Command: "a", Args: []string{"\x00"}}), "/mcpServers/x/args/0"},
		{"too many variables", one(protocol.MCPServer{Command: "a", Env: names}), "/mcpServers/x/env"},
		{"an invalid variable name", one(protocol.MCPServer{Command: "a", Env: map[string]string{"A=B": "c"}}), "/mcpServers/x/env"},
		{"a long value", one(protocol.MCPServer{Command: "a", Env: map[string]string{"A": long}}), "/mcpServers/x/env/A"},
		{"a header in a header", one(protocol.MCPServer{URL: "http://a", Headers: map[string]string{"A": "b\r\nC: d"}}), "/mcpServers/x/headers/A"},
		{"a negative timeout", one(protocol.MCPServer{Command: "a", TimeoutMs: -1}), "/mcpServers/x/timeoutMs"},
	} {
		t.Run("issue/4-2 an invalid client server is rejected: "+c.what, func(t *testing.T) {
			_, overlay := d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: c.servers})
			_, session := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), MCPServers: c.servers})
			for _, err := range []error{overlay, session} {
				if e, ok := errors.AsType[*param.Error](err); !ok || e.Pointer != c.pointer || len(e.Reason) > 200 {
					t.Errorf("%v, want %s", err, c.pointer)
				}
			}
		})
	}
	t.Run("issue/4-2 the name of a plugin's server", func(t *testing.T) {
		plugged := protocol.MCPServers{"plugged": {Command: "a"}}
		_, overlay := d.Sessions.SetOverlay(t.Context(), "cli_a", &protocol.SessionOverlayParams{SessionID: id, MCPServers: plugged})
		_, session := d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: t.TempDir(), MCPServers: plugged})
		for _, err := range []error{overlay, session} {
			if e, ok := errors.AsType[*clientserver.TakenError](err); !ok || *e != (clientserver.TakenError{Server: "plugged", Plugin: "notes"}) {
				t.Errorf("%v", err)
			}
		}
	})
	if i.here() != "" || len(i.rooms) > 0 {
		t.Errorf("servers %q were connected", i.here())
	}
}
