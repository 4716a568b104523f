package param

import (
	"cmp"
	"slices"

	"lashd/rpc/protocol"
)

// ResolveNewSession returns a request for a new session with its defaults set, and with the current session named: by, which is empty
// if a client asks.
func ResolveNewSession(by protocol.SessionID, asked *protocol.SessionNewParams) (*protocol.SessionNewParams, error) {
	p := *asked
	switch p.Start.Kind {
	case "":
		p.Start.Kind = protocol.StartEmpty
	case protocol.StartCurrent:
		if by == "" || p.Start.SessionID != "" && p.Start.SessionID != by {
			return nil, Bad("/start/kind", "a client has no current session; name one as existingSession")
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

// CheckNewSession refuses what makes no sense, whatever the sessions are like that it names.
func CheckNewSession(p *protocol.SessionNewParams) error {
	err := cmp.Or(checkSessionID(p.SessionID), CheckTitle(p.Title), checkStart(p.Start), checkRelation(p), CheckName("/usageLabel", p.UsageLabel))
	if err != nil {
		return err
	}
	if p.PluginSource != protocol.PluginsFork && p.PluginSource != protocol.PluginsFresh {
		return Bad("/pluginSource", "must be fork or fresh")
	}
	if len(p.Nodes) > 0 {
		if err := CheckAppend(p.Nodes); err != nil {
			return err
		}
	}
	if len(p.FirstTurnInput) == 0 {
		return nil
	}
	return Under("/firstTurnInput", "/input", CheckInput(p.FirstTurnInput))
}

func checkStart(s protocol.SessionStart) error {
	switch s.Kind {
	case protocol.StartEmpty:
		if s.SessionID != "" {
			return Bad("/start/sessionId", "must not be set where the start is empty")
		}
	case protocol.StartExisting, protocol.StartSnapshot:
		if s.SessionID == "" {
			return Bad("/start/sessionId", "must name a session")
		}
	default:
		return Bad("/start/kind", "must be empty, currentSession, existingSession or snapshot, not %.40q", s.Kind)
	}
	if (s.Kind == protocol.StartSnapshot) != (s.Snapshot != "") {
		return Bad("/start/snapshot", "must name the snapshot where the start is one, and only there")
	}
	return nil
}

func checkRelation(p *protocol.SessionNewParams) error {
	r, sub := p.Relation, p.Authority.Subagent
	switch r.Kind {
	case protocol.RelationRoot:
		switch {
		case r.Parent != "" || r.Cause != "":
			return Bad("/relation/kind", "must be child where there is a parent")
		case r.Temporary:
			return Bad("/relation/temporary", "is of a child: nobody deletes a root")
		case sub != nil:
			return Bad("/relation/kind", "must be child, as the authority is a subagent's")
		case p.UsageLabel != "":
			return Bad("/usageLabel", "is of a child: a root has nobody to show its usage to")
		}
	case protocol.RelationChild:
		if r.Parent == "" {
			return Bad("/relation/parent", "must name a session")
		}
		if sub != nil && sub.Parent != r.Parent {
			return Bad("/relation/parent", "must be that of the subagent, %s", sub.Parent)
		}
	default:
		return Bad("/relation/kind", "must be root or child, not %.40q", r.Kind)
	}
	if r.AskedBy != "" {
		return Bad("/relation/askedBy", "must not be set; lashd knows who asks")
	}
	if r.Source != nil {
		return Bad("/relation/source", "must not be set; start says where a session begins")
	}
	return nil
}

// CheckRewind refuses a rewind that does not say exactly once where to.
func CheckRewind(p *protocol.SessionRewindParams) error {
	if known := []protocol.RewindFiles{"", protocol.RewindAlso, protocol.RewindOnly}; !slices.Contains(known, p.Files) {
		return NotOneOf("/files", known)
	}
	ways := 0
	for _, given := range []bool{p.ToNode != "", p.ToTurn != "", p.ToPoint != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		return Bad("/toNode", "exactly one of toNode, toTurn and toPoint must be given")
	case p.ToPoint != "" && p.Files != protocol.RewindOnly:
		return Bad("/toPoint", "is for files only")
	}
	return nil
}
