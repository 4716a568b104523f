package acp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// newSession creates a session and opens it. The session id is chosen here, so
// that the inbox exists before the first event. If a later step fails, the session
// is deleted again.
func (a *agent) newSession(ctx context.Context, r *request, p *sdk.NewSessionRequest) (*sdk.NewSessionResponse, error) {
	r.admit()
	b, err := a.additionsFrom(p.McpServers, p.AdditionalDirectories)
	if err != nil {
		return nil, err
	}
	if p.Cwd == "" {
		return nil, invalidParams("/cwd", "is required")
	}
	s := a.prepare(protocol.NewSessionID(), p.Cwd, b)
	params := protocol.SessionNewParams{Mutation: newMutation(), SessionID: s.id, Cwd: p.Cwd, Driver: a.Driver}
	var made protocol.SessionNewResult
	err = a.daemon.do(ctx, func(l *link) error {
		s.on(l)
		return l.Call(ctx, "session/new", params, &made)
	})
	if err != nil {
		return nil, lacksModel(err)
	}
	s.seen, s.known, s.epoch, s.calls.cwd = made.Seq, made.Seq, s.link.epoch, made.Session.Cwd
	st, err := s.settings(ctx, &made.Session)
	if err != nil {
		s.discard()
		return nil, err
	}
	s.begin(r, &protocol.SessionAttachResult{})
	return &sdk.NewSessionResponse{SessionId: sdk.SessionId(s.id), Modes: st.modes, Models: st.models, ConfigOptions: st.options}, nil
}

// lacksModel converts the error of a new session that found no model: the session
// names none, so no provider has a key.
func lacksModel(err error) error {
	e := requestError(err)
	if data, ok := e.Data.(json.RawMessage); ok {
		var read protocol.ErrorData
		if json.Unmarshal(data, &read) == nil && read.Kind == protocol.KindModelNotFound {
			return authRequired(e.Message, read.Kind, protocol.EffectNone)
		}
	}
	return err
}

// settings applies the editor's overlay and returns the settings of the session
// that the editor can change. is is the session as the daemon reports it.
func (s *session) settings(ctx context.Context, is *protocol.Session) (*settings, error) {
	s.overlay.confine(is.Config)
	if err := s.overlay.apply(ctx, s.daemon.call); err != nil {
		return nil, err
	}
	s.overlay.refreshNow(ctx, s.daemon.call)
	s.config.set(is.Config)
	s.view.window = is.Config.Model.ContextWindow
	return settingsOf(ctx, s.daemon.call, is.Config)
}

// discard deletes a session that newSession created and then could not open.
func (s *session) discard() {
	s.drop(s.ctx, s.id)
	s.link.forget(s.id)
}

// loadSession opens a session and sends its whole history before it answers. New
// events follow.
func (a *agent) loadSession(ctx context.Context, r *request, p *sdk.LoadSessionRequest) (*sdk.LoadSessionResponse, error) {
	defer a.claim(r, protocol.SessionID(p.SessionId))()
	b, err := a.additionsFrom(p.McpServers, p.AdditionalDirectories)
	if err != nil {
		return nil, err
	}
	s, is, st, err := a.take(ctx, protocol.SessionID(p.SessionId), p.Cwd, b, true)
	if err != nil {
		return nil, err
	}
	s.begin(r, is)
	return &sdk.LoadSessionResponse{Modes: st.modes, Models: st.models, ConfigOptions: st.options}, nil
}

// resumeSession opens a session without sending its history.
func (a *agent) resumeSession(ctx context.Context, r *request, p *sdk.ResumeSessionRequest) (*sdk.ResumeSessionResponse, error) {
	defer a.claim(r, protocol.SessionID(p.SessionId))()
	b, err := a.additionsFrom(p.McpServers, p.AdditionalDirectories)
	if err != nil {
		return nil, err
	}
	s, is, st, err := a.take(ctx, protocol.SessionID(p.SessionId), p.Cwd, b, false)
	if err != nil {
		return nil, err
	}
	s.begin(r, is)
	return &sdk.ResumeSessionResponse{Modes: st.modes, Models: st.models, ConfigOptions: st.options}, nil
}

// take attaches to an existing session for load, resume and fork. If the session
// is already open on this connection, take stops the earlier one first. Most
// checks come before any change: an unknown session, another workspace or a
// running prompt leaves everything as it was. With history, take sends the
// history.
func (a *agent) take(ctx context.Context, id protocol.SessionID, cwd string, b additions, history bool) (*session, *protocol.SessionAttachResult, *settings, error) {
	if id == "" {
		return nil, nil, nil, noSession()
	}
	var there protocol.SessionReadResult
	if err := a.daemon.call(ctx, "session/read", protocol.SessionReadParams{SessionID: id, Limit: 1}, &there); err != nil {
		return nil, nil, nil, err
	}
	if err := sameDirectory(there.Session.Cwd, cwd); err != nil {
		return nil, nil, nil, err
	}
	s := a.prepare(id, there.Session.Cwd, b)
	st, err := s.settings(ctx, &there.Session)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := a.stopFollowing(id); err != nil {
		return nil, nil, nil, err
	}
	var is protocol.SessionAttachResult
	err = a.daemon.do(ctx, func(l *link) error {
		is = protocol.SessionAttachResult{}
		s.on(l)
		return l.Call(ctx, "session/attach", protocol.SessionAttachParams{SessionID: id}, &is)
	})
	if err != nil {
		return nil, nil, nil, err
	}
	s.seen, s.known, s.epoch = is.Seq, is.Seq, s.link.epoch
	if history {
		err = s.replay(ctx, &is)
	}
	if err != nil {
		s.unfollow()
		return nil, nil, nil, err
	}
	return s, &is, st, nil
}

// stopFollowing closes the session on this connection, if it is open. It fails
// while prompts are unanswered.
func (a *agent) stopFollowing(id protocol.SessionID) error {
	a.mu.Lock()
	s := a.sessions[id]
	a.mu.Unlock()
	if s == nil {
		return nil
	}
	if !s.prompts.close() {
		return invalidRequest("a prompt of this session is still running; cancel it or wait for its end")
	}
	a.mu.Lock()
	delete(a.sessions, id)
	a.mu.Unlock()
	s.stop()
	return nil
}

// unfollow ends the subscription on the current connection. A failure means that
// the connection is gone, and the subscription with it.
func (s *session) unfollow() {
	if err := s.link.drop(s.id); err != nil {
		s.Log.Debug("could not detach from a session", "session", s.id, "error", err)
	}
}

// sameDirectory returns an error unless both paths name the same directory. Tools
// run in the session's workspace, so an editor with another project open would
// show the wrong files.
func sameDirectory(is, wanted string) error {
	a, err := os.Stat(is)
	b, err2 := os.Stat(wanted)
	if is == wanted || err == nil && err2 == nil && os.SameFile(a, b) {
		return nil
	}
	return invalidParams("/cwd", fmt.Sprintf("must be the workspace of the session, %s", is))
}

// replay sends the history of a session, oldest first, and its plan. is holds the
// newest page; older pages are read with the cursor, 500 items each.
func (s *session) replay(ctx context.Context, is *protocol.SessionAttachResult) error {
	pages := [][]protocol.Item{is.Items}
	for cursor := is.NextCursor; cursor != ""; {
		var page protocol.SessionReadResult
		p := protocol.SessionReadParams{SessionID: s.id, Cursor: cursor, Limit: 500}
		if err := s.daemon.call(ctx, "session/read", p, &page); err != nil {
			return err
		}
		pages = append(pages, page.Data)
		cursor = page.NextCursor
	}
	s.view.setPendingApprovals(is.Decisions)
	for i := len(pages) - 1; i >= 0; i-- {
		for k := range pages[i] {
			s.send(ctx, s.view.completed(&pages[i][k])...)
		}
	}
	s.showPlan(ctx)
	return nil
}

// closeSession cancels the unanswered prompts of a session, waits until they are
// answered, and closes it here. The session stays stored, and other clients keep
// using it.
func (a *agent) closeSession(ctx context.Context, r *request, p *sdk.CloseSessionRequest) (*none, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return nil, err
	}
	waiting := s.prompts.underWay()
	s.prompts.cancel(waiting...)
	defer a.claim(r, s.id)()
	for _, pr := range waiting {
		select {
		case <-pr.answered:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err := a.stopFollowing(s.id); err != nil {
		return nil, err
	}
	s.overlay.leave()
	return &none{}, nil
}

// deleteSession deletes a session permanently. The daemon stops a running turn
// first.
func (a *agent) deleteSession(ctx context.Context, r *request, p *sessionRequest) (*none, error) {
	r.admit()
	if p.SessionID == "" {
		return nil, noSession()
	}
	params := protocol.SessionMutationParams{Mutation: newMutation(), SessionID: protocol.SessionID(p.SessionID)}
	return &none{}, a.daemon.call(ctx, "session/delete", params, nil)
}
