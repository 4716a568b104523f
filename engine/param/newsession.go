package param

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"lashd/rpc/protocol"
)

// ResolveNewSession returns a copy of a request for a new session with its defaults filled
// in. by is the session that asks; it is empty if a client asks. currentSession is replaced
// by that session, and a child gets it as its parent. The result still has to pass
// CheckNewSession.
// It changes neither the request nor the store, so callers may use it for a dry run too. The
// only error is that a client names its current session, as clients have none.
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

// CheckNewSession validates a resolved request: ids, title, start, relation, first nodes
// and first input. It does not look at the sessions that the request names, so they may
// still be missing.
// The first error in a fixed order is returned, so equal requests get equal errors.
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

// checkStart validates the start of a new session. Each kind requires its own fields and
// rejects those of the others.
func checkStart(s protocol.SessionStart) error {
	switch s.Kind {
	case protocol.StartEmpty:
		if s.SessionID != "" {
			return Bad("/start/sessionId", "must not be set for start kind empty")
		}
	case protocol.StartExisting, protocol.StartSnapshot:
		if s.SessionID == "" {
			return Bad("/start/sessionId", "is required: the id of a session")
		}
	default:
		return Bad("/start/kind", "must be empty, currentSession, existingSession or snapshot, not %.40q", s.Kind)
	}
	if (s.Kind == protocol.StartSnapshot) != (s.Snapshot != "") {
		return Bad("/start/snapshot", "is required for start kind snapshot and not allowed otherwise")
	}
	return nil
}

// checkRelation validates the relation of a new session to others. A root has none of the
// fields of a child. AskedBy and Source are set by lashd only. For the authority of a
// subagent, the session must be a child of the subagent's parent.
func checkRelation(p *protocol.SessionNewParams) error {
	r, sub := p.Relation, p.Authority.Subagent
	switch r.Kind {
	case protocol.RelationRoot:
		switch {
		case r.Parent != "" || r.Cause != "":
			return Bad("/relation/kind", "must be child if parent or cause is set")
		case r.Temporary:
			return Bad("/relation/temporary", "is only allowed for a child")
		case sub != nil:
			return Bad("/relation/kind", "must be child for the authority of a subagent")
		case p.UsageLabel != "":
			return Bad("/usageLabel", "is only allowed for a child")
		}
	case protocol.RelationChild:
		if r.Parent == "" {
			return Bad("/relation/parent", "is required: the id of a session")
		}
		if sub != nil && sub.Parent != r.Parent {
			return Bad("/relation/parent", "must be the parent of the subagent, %s", sub.Parent)
		}
	default:
		return Bad("/relation/kind", "must be root or child, not %.40q", r.Kind)
	}
	if r.AskedBy != "" {
		return Bad("/relation/askedBy", "must not be set; lashd sets it")
	}
	if r.Source != nil {
		return Bad("/relation/source", "must not be set; use start instead")
	}
	return nil
}

// CheckRewind validates the target of a rewind: exactly one of node, turn and point. A
// point is only a target for files.
// Whether the target exists, and whether it can be restored, is checked by the rewind
// itself.
func CheckRewind(p *protocol.SessionRewindParams) error {
	if known := []protocol.RewindFiles{"", protocol.RewindAlso, protocol.RewindOnly}; !slices.Contains(known, p.Files) {
		return NotOneOf("/files", known)
	}
	ways := 0
	for _, set := range []bool{p.ToNode != "", p.ToTurn != "", p.ToPoint != ""} {
		if set {
			ways++
		}
	}
	switch {
	case ways != 1:
		return Bad("/toNode", "exactly one of toNode, toTurn and toPoint must be set")
	case p.ToPoint != "" && p.Files != protocol.RewindOnly:
		return Bad("/toPoint", "is only allowed if files is only")
	}
	return nil
}

// ForkTitle returns the title of a session that continues the history of another one: the one that was asked for, or one that tells a
// fork from its original. A child keeps the title.
func ForkTitle(asked string, kind protocol.RelationKind, of *protocol.Session) string {
	switch {
	case asked != "" || kind != protocol.RelationFork:
		return cmp.Or(asked, of.Title)
	case of.Title == "":
		return "Fork of " + string(of.ID)
	}
	base, n := of.Title, 1
	if at := strings.LastIndex(base, forkMark); at >= 0 {
		if _, err := fmt.Sscanf(base[at:], forkMark+" %d)", &n); err == nil || base[at:] == forkMark+")" {
			base, n = base[:at], n+1
		}
	}
	if n == 1 {
		return cutTitle(base, forkMark+")")
	}
	return cutTitle(base, fmt.Sprintf("%s %d)", forkMark, n))
}

// forkMark begins the end of the title of a fork.
const forkMark = " (fork"

// cutTitle returns a title with an end, cut so that both fit the longest title.
func cutTitle(title, end string) string {
	n := min(len(title), maxTitle-len(end))
	for n > 0 && n < len(title) && !utf8.RuneStart(title[n]) {
		n--
	}
	return title[:n] + end
}
