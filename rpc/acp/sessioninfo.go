package acp

import (
	"cmp"
	"context"
	"strings"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/internal/termtext"
	"lashd/rpc/protocol"
)

// Methods of the protocol's unstable part that the SDK lacks.
const (
	methodSessionSetTitle  = "session/set_title"
	methodSessionArchive   = "session/archive"
	methodSessionUnarchive = "session/unarchive"
)

// sessionRequest is the params of methods that take only a session.
type sessionRequest struct {
	SessionID sdk.SessionId `json:"sessionId"`
}

// titleRequest is the params of session/set_title. A missing title is an error.
type titleRequest struct {
	SessionID sdk.SessionId `json:"sessionId"`
	Title     *string       `json:"title"`
}

// titleResult is the title as it is stored.
type titleResult struct {
	Title string `json:"title"`
}

// setTitle sets the title of a stored session, which need not be open here.
func (a *agent) setTitle(ctx context.Context, r *request, p *titleRequest) (*titleResult, error) {
	r.admit()
	switch {
	case p.SessionID == "":
		return nil, noSession()
	case p.Title == nil:
		return nil, invalidParams("/title", "is required")
	}
	title := strings.TrimSpace(*p.Title)
	params := protocol.SessionSetTitleParams{Mutation: newMutation(), SessionID: protocol.SessionID(p.SessionID), Title: title}
	return &titleResult{title}, a.daemon.call(ctx, "session/setTitle", params, nil)
}

// archiveSession closes a session here, interrupts its turn, and takes it out of the
// default list.
func (a *agent) archiveSession(ctx context.Context, r *request, p *sessionRequest) (*none, error) {
	if p.SessionID == "" {
		return nil, noSession()
	}
	if _, err := a.session(p.SessionID); err == nil {
		if _, err := a.closeSession(ctx, r, &sdk.CloseSessionRequest{SessionId: p.SessionID}); err != nil {
			return nil, err
		}
	}
	r.admit()
	id := protocol.SessionID(p.SessionID)
	if err := a.interruptTurn(ctx, id); err != nil {
		return nil, err
	}
	return &none{}, a.daemon.call(ctx, "session/archive", protocol.SessionArchiveParams{Mutation: newMutation(), SessionID: id}, nil)
}

// interruptTurn stops the running turn of a session, if there is one.
func (a *agent) interruptTurn(ctx context.Context, id protocol.SessionID) error {
	var turns protocol.TurnListResult
	if err := a.daemon.call(ctx, "turn/list", protocol.TurnListParams{SessionID: id, Limit: 1}, &turns); err != nil {
		return err
	}
	for _, t := range turns.Data {
		if t.Outcome == nil {
			(&ref{agent: a, id: id}).interrupt(t.TurnID)
		}
	}
	return nil
}

// unarchiveSession lists a session again by default.
func (a *agent) unarchiveSession(ctx context.Context, r *request, p *sessionRequest) (*none, error) {
	r.admit()
	if p.SessionID == "" {
		return nil, noSession()
	}
	params := protocol.SessionArchiveParams{Mutation: newMutation(), SessionID: protocol.SessionID(p.SessionID), Undo: true}
	return &none{}, a.daemon.call(ctx, "session/archive", params, nil)
}

// The values of the filter archived of session/list.
const (
	archivedExclude = "exclude"
	archivedInclude = "include"
	archivedOnly    = "only"
)

// archivedCursor begins the cursors of the archived sessions that follow the others.
const archivedCursor = "archived:"

// listRequest replaces the SDK's type, which lacks archived.
type listRequest struct {
	Cwd      *string `json:"cwd"`
	Cursor   *string `json:"cursor"`
	Archived *string `json:"archived"`
}

// listResult replaces the SDK's type, whose entries lack archived.
type listResult struct {
	Sessions   []sessionInfo `json:"sessions"`
	NextCursor string        `json:"nextCursor,omitempty"`
}

// sessionInfo is an entry of session/list.
type sessionInfo struct {
	SessionID protocol.SessionID `json:"sessionId"`
	Cwd       string             `json:"cwd"`
	Title     string             `json:"title,omitempty"`
	UpdatedAt string             `json:"updatedAt"`
	Archived  bool               `json:"archived"`
}

// listSessions returns one page of sessions, newest first, optionally of one
// workspace. Archived sessions come after all others. A session without a title has
// the beginning of its first input.
func (a *agent) listSessions(ctx context.Context, r *request, p *listRequest) (*listResult, error) {
	r.admit()
	filter := cmp.Or(deref(p.Archived), archivedExclude)
	if filter != archivedExclude && filter != archivedInclude && filter != archivedOnly {
		return nil, invalidParams("/archived", "must be exclude, include or only")
	}
	cursor, archived := strings.CutPrefix(deref(p.Cursor), archivedCursor)
	archived = archived && filter == archivedInclude || filter == archivedOnly
	params := protocol.SessionListParams{Cwd: deref(p.Cwd), Cursor: cursor, Archived: archived}
	var list protocol.SessionListResult
	if err := a.daemon.call(ctx, "session/list", params, &list); err != nil {
		return nil, err
	}
	result := &listResult{Sessions: []sessionInfo{}, NextCursor: nextCursor(filter, archived, list.NextCursor)}
	for _, s := range list.Data {
		at := time.UnixMilli(s.UpdatedAtMs).UTC().Format(time.RFC3339)
		title := cmp.Or(s.Title, termtext.OneLine(s.FirstInput, maxTitle))
		result.Sessions = append(result.Sessions, sessionInfo{s.ID, s.Cwd, title, at, s.Archived})
	}
	return result, nil
}

// nextCursor returns the cursor of the page after one of the daemon's, or "" after
// the last one. archived says that the page has archived sessions.
func nextCursor(filter string, archived bool, next string) string {
	if filter == archivedInclude && (archived && next != "" || !archived && next == "") {
		return archivedCursor + next
	}
	return next
}
