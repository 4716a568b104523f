package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"lashd/engine/param"
	"lashd/engine/plugin"
	"lashd/engine/receipt"
	"lashd/internal/strictjson"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// changed returns cfg with the settings that a request sets. Nil and empty fields of the request
// keep the old value. Sampling settings (generation) are replaced or merged, as the request's mode
// says; options always replace all old ones. It rejects unknown models and settings that are
// invalid together. It reads only the daemon's configuration, so it may run anywhere.
func (ss *Sessions) changed(cfg protocol.Config, p *protocol.SessionConfigureParams) (protocol.Config, error) {
	if p.Model != "" {
		m, err := ss.eng.Models.Named(p.Model)
		if err != nil {
			return cfg, err
		}
		cfg.Model = m.Spec
	}
	if p.Effort != nil {
		cfg.Model.Effort = *p.Effort
	}
	if p.Prompt != nil {
		cfg.Prompt = *p.Prompt
	}
	if p.Budget != nil {
		cfg.Budget = *p.Budget
	}
	if p.Approval != nil {
		kept := cfg.Approval.Sandbox
		cfg.Approval = *p.Approval
		cfg.Approval.Sandbox = cmp.Or(p.Approval.Sandbox, kept)
	}
	switch {
	case !slices.Contains([]protocol.OverlayMode{"", protocol.OverlayReplace, protocol.OverlayMerge}, p.GenerationMode):
		return cfg, param.Bad("/generationMode", "must be merge or replace")
	case p.Generation != nil && p.GenerationMode == protocol.OverlayMerge:
		cfg.Generation = p.Generation.Over(cfg.Generation)
	case p.Generation != nil:
		cfg.Generation = *p.Generation
	}
	if p.Options != nil {
		cfg.Options = p.Options
	}
	if p.Unknown != nil {
		cfg.Unknown = *p.Unknown
	}
	cfg.Drain = cmp.Or(p.Drain, cfg.Drain)
	return cfg, param.CheckConfig(cfg)
}

// SetTitle sets the title that people see. Titles need not be unique. It may be called while a turn
// runs.
func (ss *Sessions) SetTitle(ctx context.Context, p *protocol.SessionSetTitleParams) (*protocol.SeqResult, error) {
	if err := param.CheckTitle(p.Title); err != nil {
		return nil, err
	}
	return mutate(ctx, ss.eng, p.SessionID, "session/setTitle", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.SeqResult, error) {
		result, err := st.describe(ctx, &persistence.Meta{Title: &p.Title}, protocol.Event{Type: protocol.EventSessionConfigured, Title: p.Title}, rc)
		if err == nil {
			st.row.Title = p.Title
		}
		return result, err
	})
}

// Archive hides a session from the default list, or shows it again with p.Undo. It changes nothing
// else: an archived session can run turns and receive wakes.
func (ss *Sessions) Archive(ctx context.Context, p *protocol.SessionArchiveParams) (*protocol.SeqResult, error) {
	return mutate(ctx, ss.eng, p.SessionID, "session/archive", p.Key(), p, func(ctx context.Context, st *state, rc receipt.Request) (*protocol.SeqResult, error) {
		archived := !p.Undo
		name := "archived"
		if p.Undo {
			name = "unarchived"
		}
		result, err := st.describe(ctx, &persistence.Meta{Archived: &archived}, protocol.Event{Type: protocol.EventSessionConfigured, Name: name}, rc)
		if err == nil {
			st.row.Archived = archived
		}
		return result, err
	})
}

// describe commits a change of the session's title or archive flag together with its event and
// receipt, on the actor. The caller updates the row in memory after it returns nil.
func (st *state) describe(ctx context.Context, m *persistence.Meta, e protocol.Event, rc receipt.Request) (*protocol.SeqResult, error) {
	c := st.change(persistence.Commit{Meta: m})
	c.TellOf(e)
	result := &protocol.SeqResult{Seq: c.Seq()}
	c.Receipt = rc.With(result)
	return result, st.commit(ctx, c)
}

// checkOptions rejects options for plugins that the workspace does not have, and suggests the
// nearest name. Options that the session has already (before) stay valid, because a plugin may be
// missing only for a while. It may load the workspace's plugins, so it must not run on an actor.
func (ss *Sessions) checkOptions(ctx context.Context, cwd string, next, before protocol.PluginOptions) error {
	if len(next) == 0 {
		return nil
	}
	host, err := ss.eng.Plugins.Host(ctx, cwd)
	if err != nil {
		return err
	}
	known := append(plugin.DriverNames(host.Drivers()), host.IDs()...)
	for _, id := range slices.Sorted(maps.Keys(next)) {
		if _, had := before[id]; had || slices.Contains(known, id) {
			continue
		}
		reason := "there is no plugin with this name"
		if near := strictjson.Nearest(id, known); near != "" {
			reason = fmt.Sprintf("%s; did you mean %q?", reason, near)
		}
		return param.Bad("/options/"+param.Escape(id), "%s", reason)
	}
	return nil
}
