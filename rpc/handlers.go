package rpc

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"lashd/engine/audit"
	"lashd/engine/param"
	"lashd/engine/proc"
	"lashd/rpc/protocol"
)

// initialize checks the version and the client id, and marks the connection as ready. A client that
// names its id is the same client as on its earlier connections.
// It fails with invalidParams for an unsupported version or client id, and with invalidRequest
// if the connection is initialized already.
func (c *conn) initialize(_ context.Context, p *protocol.InitializeParams) (*protocol.InitializeResult, error) {
	if p.ProtocolVersion < 0 || p.ProtocolVersion > protocol.Version {
		return nil, invalidParams("/protocolVersion", "is not a version that this daemon supports", "")
	}
	if err := param.CheckClientID(p.ClientID); err != nil {
		return nil, err
	}
	if c.ready {
		return nil, newError(codeInvalidRequest, "this connection is already initialized", protocol.ErrorData{
			Kind: protocol.KindInvalidRequest, Retry: protocol.RetryNever, Outcome: protocol.EffectNone,
		})
	}
	if p.ClientID != "" && p.ClientID != c.client {
		c.left()
		c.client = p.ClientID
		c.left = c.eng.Clients.Connected(c.client)
	}
	c.ready, c.noDeltas = true, p.Capabilities.NoDeltas
	facts := c.Store.Facts()
	return &protocol.InitializeResult{
		ProtocolVersion: protocol.Version, ServerInfo: protocol.ClientInfo{Name: "lashd", Version: c.Version}, ClientID: c.client,
		StoreID: facts.StoreID, Epoch: facts.Epoch, Features: Groups(), DataDir: c.Store.Dir(), KeysWanted: c.eng.Models.KeysWanted(),
	}, nil
}

// ping returns an empty result. Clients use it to check the connection.
func (c *conn) ping(context.Context, *protocol.Empty) (*protocol.Empty, error) {
	return &protocol.Empty{}, nil
}

// shutdown ends the subscriptions. With daemon set, it stops the daemon after the response is
// written.
func (c *conn) shutdown(_ context.Context, p *protocol.ShutdownParams) (*protocol.Empty, error) {
	for id := range c.subs {
		c.unfollow(id)
	}
	if p.Daemon && c.Stop != nil {
		c.after = append(c.after, c.Stop)
	}
	return &protocol.Empty{}, nil
}

// discover returns the embedded OpenRPC document.
func (c *conn) discover(context.Context, *protocol.Empty) (*json.RawMessage, error) {
	doc := json.RawMessage(OpenRPC())
	return &doc, nil
}

// status counts sessions and decisions in the store, and loaded and running sessions in the engine.
// Connections counts all clients, also those of other processes.
func (c *conn) status(ctx context.Context, _ *protocol.Empty) (*protocol.StatusResult, error) {
	stored, err := c.Store.CountSessions(ctx)
	if err != nil {
		return nil, err
	}
	open, err := c.Store.OpenDecisions(ctx, 0)
	if err != nil {
		return nil, err
	}
	loaded, running := c.eng.Stats()
	clients, _ := c.door.clients()
	r := &protocol.StatusResult{
		Version: c.Version, Pid: os.Getpid(), UptimeMs: time.Since(c.started).Milliseconds(), DataDir: c.Store.Dir(), Socket: c.Socket,
		Sessions: stored, Loaded: loaded, Running: running, Decisions: len(open), Connections: clients, Drivers: c.eng.Drivers(), Store: c.eng.Condition(),
	}
	return r, nil
}

// diagnostics reports resource use. ReadMemStats stops all goroutines for a moment, so it is
// separate from status.
func (c *conn) diagnostics(context.Context, *protocol.Empty) (*protocol.DiagnosticsResult, error) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	db, wal := c.Store.Sizes()
	facts := c.Store.Facts()
	_, queued := c.door.clients()
	r := &protocol.DiagnosticsResult{
		RSSBytes: residentBytes(), HeapBytes: int64(mem.HeapAlloc), Goroutines: runtime.NumGoroutine(), OpenFiles: openFiles(), FileLimit: fileLimit(),
		DBBytes: db, WALBytes: wal, Durability: c.Store.Durability(), Sandbox: "none", Containment: proc.Containment(), Roots: []protocol.PluginRoot{}, Ailing: []protocol.PluginInfo{}, StoreID: facts.StoreID, Epoch: facts.Epoch,
		TraceLost: c.Trace.Lost(), QueuedBytes: queued, Children: proc.Alive(),
	}
	if c.Plugins != nil {
		sandbox, roots, ailing := c.Plugins.Condition()
		r.Sandbox, r.Roots, r.Ailing = sandbox, append(r.Roots, roots...), append(r.Ailing, ailing...)
	}
	return r, nil
}

// serverAttach returns the status of the daemon and subscribes the connection to its events. A
// second call returns the status only.
func (c *conn) serverAttach(ctx context.Context, _ *protocol.Empty) (*protocol.StatusResult, error) {
	w := c.eng.Events.Watch() // before reading the status, so that no event is lost in between
	r, err := c.status(ctx, nil)
	if err != nil || c.watching {
		w.Close()
		return r, err
	}
	c.watching = true
	c.seat.follow(1)
	c.after = append(c.after, func() {
		c.wg.Go(func() { c.pumpDaemonEvents(w) })
	})
	return r, nil
}

// sessionNew creates a session and subscribes the connection from the session's first event on, so
// no event is lost.
// MCP servers of the request are connected before the answer; if that fails, the session exists
// without a subscription.
func (c *conn) sessionNew(ctx context.Context, p *protocol.SessionNewParams) (*protocol.SessionNewResult, error) {
	r, err := c.eng.Sessions.New(ctx, p)
	if err == nil {
		err = c.eng.Sessions.BringServers(ctx, c.client, r.SessionID, p.MCPServers)
	}
	if err != nil {
		return nil, err
	}
	sub, err := c.eng.Sessions.Follow(ctx, r.SessionID, r.Seq)
	if err != nil {
		return nil, err
	}
	c.follow(r.SessionID, sub)
	return r, nil
}

// sessionAttach subscribes the connection to a session, from the client's cursor if that is still
// valid.
// An earlier subscription of this connection to the same session ends.
func (c *conn) sessionAttach(ctx context.Context, p *protocol.SessionAttachParams) (*protocol.SessionAttachResult, error) {
	r, sub, err := c.eng.Sessions.Attach(ctx, p)
	if err != nil {
		return nil, err
	}
	c.follow(p.SessionID, sub)
	return r, nil
}

// sessionDetach ends the subscription to a session. It succeeds if there was none.
func (c *conn) sessionDetach(_ context.Context, p *protocol.SessionParams) (*protocol.Empty, error) {
	c.unfollow(p.SessionID)
	return &protocol.Empty{}, nil
}

// turnStart starts or queues a turn. Slash commands and resources are inputs of the plugins that have them.
func (c *conn) turnStart(ctx context.Context, p *protocol.TurnStartParams) (*protocol.TurnStartResult, error) {
	inputs := protocol.PluginInputs{}
	var servers protocol.ServersInput
	switch {
	case p.Command == nil:
	case strings.HasPrefix(p.Command.Name, "mcp__"):
		servers.Prompt = p.Command
	default:
		if err := give(inputs, protocol.CommandsID, p.Command); err != nil {
			return nil, err
		}
	}
	if servers.Resources = p.Resources; servers.Prompt != nil || len(servers.Resources) > 0 {
		if err := give(inputs, protocol.ServersID, servers); err != nil {
			return nil, err
		}
	}
	if len(inputs) > 0 {
		maps.Copy(inputs, p.PluginInputs)
		p.PluginInputs, p.Command, p.Resources = inputs, nil, nil
	}
	return c.eng.Turns.Start(ctx, p)
}

// give adds an input of a plugin.
func give(inputs protocol.PluginInputs, id string, input any) error {
	data, err := json.Marshal(input)
	inputs[id] = data
	return err
}

// commandList lists the slash commands of a session, sorted by name: of skills and commands, then of MCP servers.
func (c *conn) commandList(ctx context.Context, p *protocol.SessionParams) (*protocol.CommandListResult, error) {
	r, prompts := &protocol.CommandListResult{Data: []protocol.CommandInfo{}}, &protocol.CommandListResult{}
	if err := c.query(ctx, p.SessionID, protocol.CommandsID, nil, r); err != nil {
		return r, err
	}
	if err := c.query(ctx, p.SessionID, protocol.ServersID, nil, prompts); err != nil {
		return r, err
	}
	r.Data = append(r.Data, prompts.Data...)
	slices.SortStableFunc(r.Data, func(a, b protocol.CommandInfo) int { return strings.Compare(a.Name, b.Name) })
	return r, nil
}

// mcpResources lists the resources of MCP servers.
func (c *conn) mcpResources(ctx context.Context, p *protocol.MCPResourcesParams) (*protocol.MCPResourcesResult, error) {
	r := &protocol.MCPResourcesResult{Data: []protocol.ResourceInfo{}, Failed: []protocol.ServerFailure{}}
	return r, c.query(ctx, p.SessionID, protocol.ResourcesID, nil, r)
}

// mcpComplete completes an argument.
func (c *conn) mcpComplete(ctx context.Context, p *protocol.MCPCompleteParams) (*protocol.MCPCompleteResult, error) {
	if p.Server == "" || p.Argument == "" || (p.Prompt == "") == (p.Template == "") {
		return nil, &param.Error{Pointer: "", Reason: "must have server, argument, and either prompt or template"}
	}
	r := &protocol.MCPCompleteResult{Values: []string{}}
	args, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return r, c.query(ctx, p.SessionID, protocol.CompletionsID, args, r)
}

// query asks a query of a plugin for result. Without such a plugin, result stays.
func (c *conn) query(ctx context.Context, id protocol.SessionID, name string, args json.RawMessage, result any) error {
	has, err := c.eng.Operations.List(ctx, &protocol.OperationListParams{SessionID: id})
	if err != nil || !slices.ContainsFunc(has.Data, func(o protocol.OperationInfo) bool { return o.Name == name }) {
		return err
	}
	out, err := c.eng.Operations.Query(ctx, &protocol.OperationQueryParams{SessionID: id, Name: name, Args: args})
	if err != nil {
		return err
	}
	return json.Unmarshal(out.Output, result)
}

// instructionList lists the instructions of a session. A daemon with another plugin in place of the built-in one has no such query.
func (c *conn) instructionList(ctx context.Context, p *protocol.SessionParams) (*protocol.InstructionListResult, error) {
	r := &protocol.InstructionListResult{Data: []protocol.InstructionFile{}}
	return r, c.query(ctx, p.SessionID, protocol.InstructionsQuery, nil, r)
}

// compactPreview asks the built-in compactor, which a session can switch off.
func (c *conn) compactPreview(ctx context.Context, p *protocol.SessionParams) (*protocol.CompactionPreviewResult, error) {
	r := &protocol.CompactionPreviewResult{}
	return r, c.query(ctx, p.SessionID, protocol.CompactionQuery, nil, r)
}

// turnRun starts a turn in order of arrival and then waits for its end. An error while waiting is a
// durableError: the turn is stored and continues.
// The returned function is the waiting part, so later requests of the connection need not wait for the turn.
func (c *conn) turnRun(ctx context.Context, p *protocol.TurnStartParams) (func(context.Context) (*protocol.TurnReport, error), error) {
	r, err := c.turnStart(ctx, p)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (*protocol.TurnReport, error) {
		report, err := c.eng.Turns.Wait(ctx, &protocol.TurnWaitParams{TurnID: r.TurnID, Follow: true})
		if err != nil {
			return nil, &durableError{err}
		}
		return report, nil
	}, nil
}

// sessionRewind moves the leaf in order of arrival. With files it runs as the waiting part, because
// restoring files may take long.
func (c *conn) sessionRewind(ctx context.Context, p *protocol.SessionRewindParams) (func(context.Context) (*protocol.SessionRewindResult, error), error) {
	if p.Files != "" {
		return func(ctx context.Context) (*protocol.SessionRewindResult, error) { return c.eng.History.Rewind(ctx, p) }, nil
	}
	r, err := c.eng.History.Rewind(ctx, p)
	return func(context.Context) (*protocol.SessionRewindResult, error) { return r, nil }, err
}

// auditList handles audit/list.
func (c *conn) auditList(ctx context.Context, p *protocol.AuditListParams) (*protocol.AuditListResult, error) {
	return audit.List(ctx, c.Store, p)
}

// auditVerify handles audit/verify.
func (c *conn) auditVerify(ctx context.Context, p *protocol.SessionParams) (*protocol.AuditVerifyResult, error) {
	return audit.Verify(ctx, c.Store, p)
}
