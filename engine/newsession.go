package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"lashd/engine/attachment"
	"lashd/engine/change"
	"lashd/engine/clientserver"
	"lashd/engine/fact"
	"lashd/engine/imports"
	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/engine/workgroup"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// New creates a session: empty, or with the history and state of another session. It is durable when New returns;
// if anything fails, no part of it exists. MCP servers are only checked here: BringServers connects those of a
// client.
func (ss *Sessions) New(ctx context.Context, p *protocol.SessionNewParams) (*protocol.SessionNewResult, error) {
	return ss.new(ctx, &sessionDraft{}, p)
}

// Import creates a session with a history that a client has brought. The request has been checked, and the receipt stores the answer.
func (ss *Sessions) Import(ctx context.Context, p *protocol.SessionNewParams, h *imports.History, rc receipt.Request) (*protocol.SessionNewResult, error) {
	return ss.createOnce(ctx, &sessionDraft{params: p, id: protocol.NewSessionID(), turns: h.Turns, imported: h}, rc)
}

// new is New for a draft, which has the requester. Only clients may add MCP servers. The receipt stores the
// names of the servers without their settings.
func (ss *Sessions) new(ctx context.Context, b *sessionDraft, asked *protocol.SessionNewParams) (*protocol.SessionNewResult, error) {
	p, err := param.ResolveNewSession(b.by.id(), asked)
	if err == nil {
		err = param.CheckNewSession(p)
	}
	if err == nil && b.by != nil && len(p.MCPServers) > 0 {
		err = param.Bad("/mcpServers", "must not be set: only clients bring MCP servers")
	}
	if err != nil {
		return nil, err
	}
	b.servers, p.MCPServers = p.MCPServers, clientserver.Names(p.MCPServers)
	return receipt.Once(ctx, ss.eng.receipts, "session/new", p.Key(), p, func(rc receipt.Request) (*protocol.SessionNewResult, error) {
		b.params, b.id = p, cmp.Or(p.SessionID, protocol.NewSessionID())
		return ss.createOnce(ctx, b, rc)
	})
}

// createOnce prepares a session and creates it in one commit. A session with an origin is branched on the origin's
// actor, so that its history cannot move between the preparation and the commit.
func (ss *Sessions) createOnce(ctx context.Context, b *sessionDraft, rc receipt.Request) (*protocol.SessionNewResult, error) {
	b.eng = ss.eng
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	if b.origin == nil {
		c := b.change(nil)
		b.facts.CopyTo(c, nil)
		return ss.create(ctx, c, rc)
	}
	kept, err := b.captureOrigin(ctx)
	if err != nil {
		return nil, err
	}
	return do(ctx, ss.eng, b.origin.row.ID, func(ctx context.Context, st *state) (*protocol.SessionNewResult, error) {
		return b.branch(ctx, st, kept, rc)
	})
}

// sessionDraft is a session that is being created. prepare fills in its fields step by step; the store knows
// nothing of it until its single commit. One goroutine owns it.
type sessionDraft struct {
	eng        *Engine
	by         *requester // nil: a client
	params     *protocol.SessionNewParams
	id         protocol.SessionID
	at         protocol.NodeID // node of the origin's history to start from; empty: its leaf
	stored     bool            // the directory of the request was stored before; no link may lead elsewhere now
	freshTools bool            // start without tool changes of the origin, even if other state is inherited
	servers    protocol.MCPServers
	origin     *origin          // session whose history it shares; nil: it starts empty
	turns      int64            // of the history that it starts with
	imported   *imports.History // that it starts with; nil: none
	base       protocol.Config  // settings before those of the request
	config     protocol.Config
	issues     []protocol.Issue // problems that plugins report about the settings
	cwd        string
	relation   protocol.Relation
	authority  protocol.Authority
	writesCode bool           // its driver has the model write code cells
	facts      *fact.Book     // taken from its parent; nil: none
	files      attachment.New // first nodes and input of the request, with checked attachments
}

// prepare checks the request, resolves settings, directory and authority, and tests that the plugins open with
// them. It stores nothing. The order matters: authority depends on the origin, and plugins see the final settings.
func (b *sessionDraft) prepare(ctx context.Context) (err error) {
	p := b.params
	if err := cmp.Or(b.eng.reach(ctx, b.by, p.Start.SessionID), b.eng.reach(ctx, b.by, p.Relation.Parent), b.inherit(ctx)); err != nil {
		return err
	}
	if b.origin != nil && p.Driver != "" && p.Driver != b.base.Driver {
		return param.Bad("/driver", "must be %s, the driver of the session that this one starts from", b.base.Driver)
	}
	if b.config, err = b.eng.Sessions.configFor(b.base, p); err != nil {
		return err
	}
	if b.cwd == p.Cwd {
		if b.cwd, err = param.ResolveCwd(p.Cwd, b.stored); err != nil {
			return err
		}
	}
	if err := cmp.Or(b.eng.Sessions.checkOptions(ctx, b.cwd, p.Options, b.base.Options), clientserver.Check(ctx, b.eng.Servers, b.cwd, b.servers)); err != nil {
		return err
	}
	if b.authority, b.relation, err = b.eng.Sessions.authorityFor(ctx, p, b.origin, b.by); err != nil {
		return err
	}
	b.relation.AskedBy = b.by.id()
	if err := b.checkPlace(); err != nil {
		return err
	}
	if err := b.mutateConfig(ctx); err != nil {
		return err
	}
	if b.facts, err = b.factsOfParent(ctx); err != nil {
		return err
	}
	from := []protocol.SessionID{p.Start.SessionID, b.relation.Parent, b.by.id()}
	b.files, err = b.eng.attachments().New(ctx, p, attachment.Use{Model: &b.config.Model, Lenient: b.by != nil}, from)
	return err
}

// checkPlace refuses a directory outside the roots that the requesting sessions may use. The directory is stored without links, and
// each use checks that there are none, so nothing can redirect it after the check.
func (b *sessionDraft) checkPlace() error {
	if !insideRoots(b.authority.Ceiling, b.cwd) {
		return param.Bad("/cwd", "must be inside the workspace of the requesting session or of the session that this one starts from: %s", b.cwd)
	}
	return nil
}

// inherit sets the base settings and the directory: from the origin, else from the parent or the requesting
// session, else from the engine's defaults. A directory in the request takes precedence.
func (b *sessionDraft) inherit(ctx context.Context) (err error) {
	b.cwd = b.params.Cwd
	switch {
	case b.params.Start.Kind != protocol.StartEmpty:
		if b.origin, err = b.loadOrigin(ctx); err != nil {
			return err
		}
		b.base, b.cwd = b.origin.row.Config, cmp.Or(b.cwd, b.origin.row.Cwd)
	case b.params.Relation.Parent != "" || b.by != nil:
		row, err := b.eng.store.Session(ctx, cmp.Or(b.params.Relation.Parent, b.by.id()))
		if err != nil {
			return err
		}
		b.base, b.cwd = row.Config, cmp.Or(b.cwd, row.Cwd)
	default:
		b.base, err = b.eng.Sessions.defaults(b.cwd)
	}
	return err
}

// origin is the session that a new session starts from, as it was when the request arrived.
type origin struct {
	row  protocol.Session
	kept plugin.Stored // state of its plugins in the snapshot that the new session starts from; zero: no snapshot
}

// loadOrigin reads the origin on its actor. Plugin state is read only for a snapshot: a fork shares the stored
// state, so its cost does not grow with that state.
func (b *sessionDraft) loadOrigin(ctx context.Context) (*origin, error) {
	start := b.params.Start
	return do(ctx, b.eng, start.SessionID, func(ctx context.Context, st *state) (*origin, error) {
		from := &origin{row: st.row}
		if start.Snapshot == "" {
			return from, nil // a fork costs the same, whatever plugins keep
		}
		s, err := b.eng.readSnapshot(ctx, st.key, start.Snapshot)
		if err == nil && b.params.PluginSource != protocol.PluginsFresh {
			from.kept, err = s.pluginStored(ctx, st)
		}
		return from, err
	})
}

// mutateConfig opens the plugins privately with the planned settings and lets their config mutators change these.
// It closes the plugins before the session exists; the session opens its own when it needs them.
func (b *sessionDraft) mutateConfig(ctx context.Context) error {
	bc := plugin.BuildContext{
		SessionID: b.id, Parent: b.relation.Parent, Authority: b.authority, Cwd: b.cwd, StateDir: b.eng.StateDir,
	}
	c, err := workgroup.CallPlugin(ctx, b.eng.group, func(ctx context.Context) (*configChange, error) {
		plugins, err := b.open(ctx, bc)
		if err != nil {
			return nil, err
		}
		c := &configChange{eng: b.eng, id: b.id, plugins: plugins, previous: b.base, current: b.config}
		c.mutate(ctx)
		return c, errors.Join(context.Cause(ctx), plugins.Close())
	})
	if err == nil {
		b.config, b.issues, b.writesCode = c.current, c.issues, c.plugins.WritesCode()
	}
	return err
}

// open opens the plugins for mutateConfig. If the session starts from a snapshot, it restores them from that, so
// that a plugin that cannot be restored fails the request instead of the first turn.
func (b *sessionDraft) open(ctx context.Context, bc plugin.BuildContext) (*plugin.Session, error) {
	if b.origin == nil || b.origin.kept.View == nil {
		return b.eng.build(ctx, b.config, bc, (*plugin.Host).Isolated)
	}
	stored := b.origin.kept
	stored.View, stored.Recorded = b.view(stored.View), nil // snapshots do not contain what the protocol recorded
	return b.eng.rehearse(ctx, b.config, bc, stored)
}

// view returns the new session as its plugins will see it, built from the view of the origin.
func (b *sessionDraft) view(origin *plugin.View) *plugin.View {
	v := &plugin.View{Window: b.config.Model.ContextWindow, Session: protocol.Session{
		ID: b.id, Title: cmp.Or(b.params.Title, origin.Session.Title), Cwd: b.cwd, State: protocol.SessionIdle, Config: b.config,
		Relation: b.relation, Authority: b.authority, Head: origin.Session.Head,
	}}
	messages := slices.Clip(origin.Messages())
	for _, n := range b.params.Nodes {
		if n.Message != nil {
			messages = append(messages, *n.Message)
		}
	}
	return v.WithMessages(nil, messages...)
}

// captureOrigin captures the plugin state of the origin if the new session inherits it and the origin is idle.
// Otherwise the new session gets the state that is stored. It waits for the lock of the origin's plugins.
func (b *sessionDraft) captureOrigin(ctx context.Context) (kept idleCapture, err error) {
	if b.params.PluginSource == protocol.PluginsFresh || b.params.Start.Snapshot != "" {
		return kept, nil
	}
	st, err := loadedState(ctx, b.eng, b.origin.row.ID)
	if err == nil {
		kept = st.plugins.captureIdle(ctx)
	}
	return kept, err
}

// change builds the commit that creates the session with its first nodes. Without a source these follow the first
// frame of the session; with one they continue the shared history. Node ids derive from the session id, so a
// repeated request creates the same nodes.
func (b *sessionDraft) change(source *protocol.ForkSource) *change.Change {
	p := b.params
	c := change.New(change.Base{}, persistence.Commit{Session: b.id, AtMs: now(), Blobs: b.files.Blobs, Create: &persistence.NewSession{
		Title: p.Title, Cwd: b.cwd, Config: b.config, Relation: b.relation, Authority: b.authority, Source: source,
		UsageLabel: p.UsageLabel, Snapshot: p.Start.Snapshot, Blank: p.PluginSource == protocol.PluginsFresh, First: b.files.First, Turns: b.turns,
	}})
	if source == nil {
		c.Nodes = []protocol.Node{{
			ID: protocol.DeriveNodeID(b.id, "open", 0), AtMs: c.AtMs,
			FrameOpen: &protocol.FrameOpen{Key: "initial", Reason: "initial", Config: b.config},
		}}
	} else {
		r := &c.Create.Relation
		if r.Kind == protocol.RelationRoot {
			r.Kind = protocol.RelationFork
		}
		r.Source = source
		c.Create.Title = param.ForkTitle(p.Title, r.Kind, &b.origin.row)
		c.TellOf(protocol.Event{Type: protocol.EventSessionForked, Source: source})
	}
	if b.imported != nil {
		b.imported.AddTo(&c.Commit)
	}
	if len(b.issues) > 0 {
		c.Tell(issueEvent("", b.issues...))
	}
	for i, body := range b.files.Nodes {
		n := body.Node(protocol.DeriveNodeID(b.id, "initial", i), c.AtMs)
		c.Nodes = append(c.Nodes, n)
		c.Tell(appendedEvents(n)...)
	}
	return c
}

// takeFirstInput removes and returns the input with which the session was created. Exactly one caller gets it. It
// is gone even if that caller fails afterwards.
func (st *state) takeFirstInput(ctx context.Context) ([]protocol.InputPart, error) {
	var first []protocol.InputPart
	c := st.change(persistence.Commit{TakeFirst: true})
	c.ThenWith(func(res persistence.Result) { first = res.First })
	err := st.commit(ctx, c)
	return first, err
}
