package engine

import (
	"cmp"
	"errors"

	"lashd/persistence"
	"lashd/rpc/protocol"
)

// whole is a request that says by name what it means by the current session.
func whole(by protocol.SessionID, asked *protocol.SessionNewParams) (*protocol.SessionNewParams, error) {
	p := *asked
	switch p.Start.Kind {
	case "":
		p.Start.Kind = protocol.StartEmpty
	case protocol.StartCurrent:
		if by == "" || p.Start.SessionID != "" && p.Start.SessionID != by {
			return nil, bad("/start/kind", "a client has no current session; name one as existingSession")
		}
		p.Start.Kind, p.Start.SessionID = protocol.StartExisting, by
	case protocol.StartSnapshot:
		p.Start.SessionID = cmp.Or(p.Start.SessionID, by)
	}
	if sub := p.Authority.Subagent; sub != nil {
		p.Relation.Kind = cmp.Or(p.Relation.Kind, protocol.RelationChild)
		p.Relation.Parent = cmp.Or(p.Relation.Parent, sub.Parent)
	}
	p.Relation.Kind = cmp.Or(p.Relation.Kind, protocol.RelationRoot)
	if p.Relation.Kind == protocol.RelationChild {
		p.Relation.Parent = cmp.Or(p.Relation.Parent, by)
		p.UsageLabel = cmp.Or(p.UsageLabel, "child")
	}
	p.PluginSource = cmp.Or(p.PluginSource, protocol.PluginsFork)
	return &p, nil
}

// checkNew refuses what makes no sense, whatever the sessions are that it names.
func checkNew(p *protocol.SessionNewParams) error {
	err := cmp.Or(checkSessionID(p.SessionID), checkTitle(p.Title), checkStart(p.Start), checkRelation(p), checkName("/usageLabel", p.UsageLabel))
	if err != nil {
		return err
	}
	if p.PluginSource != protocol.PluginsFork && p.PluginSource != protocol.PluginsFresh {
		return bad("/pluginSource", "must be fork or fresh")
	}
	if len(p.Nodes) > 0 {
		if err := checkAppend(p.Nodes); err != nil {
			return err
		}
	}
	if len(p.FirstTurnInput) == 0 {
		return nil
	}
	return under("/firstTurnInput", "/input", checkInput(p.FirstTurnInput))
}

func checkStart(s protocol.SessionStart) error {
	switch s.Kind {
	case protocol.StartEmpty:
		if s.SessionID != "" {
			return bad("/start/sessionId", "must not be set where the start is empty")
		}
	case protocol.StartExisting, protocol.StartSnapshot:
		if s.SessionID == "" {
			return bad("/start/sessionId", "must name a session")
		}
	default:
		return bad("/start/kind", "must be empty, currentSession, existingSession or snapshot, not %.40q", s.Kind)
	}
	if (s.Kind == protocol.StartSnapshot) != (s.Snapshot != "") {
		return bad("/start/snapshot", "must name the snapshot where the start is one, and only there")
	}
	return nil
}

func checkRelation(p *protocol.SessionNewParams) error {
	r, sub := p.Relation, p.Authority.Subagent
	switch r.Kind {
	case protocol.RelationRoot:
		switch {
		case r.Parent != "" || r.Cause != "":
			return bad("/relation/kind", "must be child where there is a parent")
		case r.Temporary:
			return bad("/relation/temporary", "is of a child: nobody deletes a root")
		case sub != nil:
			return bad("/relation/kind", "must be child, as the authority is a subagent's")
		case p.UsageLabel != "":
			return bad("/usageLabel", "is of a child: a root has nobody to show its usage to")
		}
	case protocol.RelationChild:
		if r.Parent == "" {
			return bad("/relation/parent", "must name a session")
		}
		if sub != nil && sub.Parent != r.Parent {
			return bad("/relation/parent", "must be that of the subagent, %s", sub.Parent)
		}
	default:
		return bad("/relation/kind", "must be root or child, not %.40q", r.Kind)
	}
	if r.AskedBy != "" {
		return bad("/relation/askedBy", "must not be set; lashd knows who asks")
	}
	if r.Source != nil {
		return bad("/relation/source", "must not be set; start says where a session begins")
	}
	return nil
}

func isGone(err error) bool {
	return errors.Is(err, persistence.ErrNotFound) || errors.Is(err, persistence.ErrDeleted)
}
