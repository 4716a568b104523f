package engine

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"lashd/engine/schedule"
	"lashd/engine/tool"
	"lashd/internal/glob"
	"lashd/rpc/protocol"
)

const (
	maxTriggers    = 1000     // of the user and of all sessions
	maxTriggerSpec = 32 << 10 // bytes of what is wanted of one, as JSON
	maxHappening   = 64 << 10 // bytes
)

var errNoEventType = errors.New("is not declared; trigger/types lists what is")

// checkSpec refuses what no trigger can do, whoever owns it, and gives what was meant: nothing that can be said is left open.
func (e *Engine) checkSpec(ctx context.Context, owner protocol.SessionID, s protocol.TriggerSpec) (protocol.TriggerSpec, error) {
	if n := len(encode(s)); n > maxTriggerSpec {
		return s, bad("", "the trigger has %d bytes, at most %d", n, maxTriggerSpec)
	}
	cwd, err := e.checkAction(ctx, owner, &s.Action)
	if err != nil {
		return s, err
	}
	if err := tool.CheckSchema(s.Filter); err != nil {
		return s, bad("/filter", "is no JSON Schema: %v", err)
	}
	return s, e.checkSource(ctx, cwd, &s.Source)
}

// checkAction also gives the workspace that it is about.
func (e *Engine) checkAction(ctx context.Context, owner protocol.SessionID, a *protocol.TriggerAction) (cwd string, err error) {
	if a.Text == "" {
		return "", bad("/action/text", "must say what is to be done")
	}
	switch a.Kind {
	case protocol.TriggerWakes:
		return e.checkWakes(ctx, owner, a)
	case protocol.TriggerStarts:
		return e.checkStarts(ctx, a)
	}
	return "", bad("/action/kind", "must be wakeSession or newSession, not %.40q", a.Kind)
}

func (e *Engine) checkWakes(ctx context.Context, owner protocol.SessionID, a *protocol.TriggerAction) (string, error) {
	a.SessionID, a.Delivery = cmp.Or(a.SessionID, owner), cmp.Or(a.Delivery, protocol.DeliverAfterTurn)
	switch {
	case a.Session != nil:
		return "", bad("/action/session", "is of newSession")
	case a.SessionID == "":
		return "", bad("/action/sessionId", "must name a session, as no session owns the trigger")
	case a.Delivery != protocol.DeliverAfterTurn && a.Delivery != protocol.DeliverEarliest:
		return "", bad("/action/delivery", "must be afterTurn or earliestBoundary, not %.40q", a.Delivery)
	}
	if err := checkName("/action/merge", a.Merge); err != nil {
		return "", err
	}
	row, err := e.store.Session(ctx, a.SessionID)
	return row.Cwd, err
}

// checkStarts tries whether such a session could be made now.
func (e *Engine) checkStarts(ctx context.Context, a *protocol.TriggerAction) (string, error) {
	switch {
	case a.Session == nil:
		return "", bad("/action/session", "must say what the session is")
	case a.SessionID != "" || a.Delivery != "" || a.Merge != "":
		return "", bad("/action/kind", "must be wakeSession where sessionId, delivery or merge is set")
	case a.Session.Cwd == "":
		return "", bad("/action/session/cwd", "is needed")
	}
	id := protocol.NewSessionID()
	p, err := whole("", sessionFor(a.Session, id, a.Session.Title))
	if err == nil {
		err = checkNew(p)
	}
	if err == nil {
		err = (&sessionDraft{eng: e, params: p, id: id}).prepare(ctx)
	}
	return filepath.Clean(a.Session.Cwd), under("/action/session", "", err)
}

func (e *Engine) checkSource(ctx context.Context, cwd string, s *protocol.TriggerSource) error {
	if _, err := e.eventType(ctx, cwd, s.Type); err != nil {
		if errors.Is(err, errNoEventType) {
			return bad("/source/type", "%.100q %s", s.Type, err)
		}
		return err
	}
	switch {
	case (s.Type == protocol.TypeCronTick) != (s.Cron != nil):
		return bad("/source/cron", "must be set of cron.tick, and only of it")
	case (s.Type == protocol.TypeFileChanged) != (s.File != nil):
		return bad("/source/file", "must be set of file.changed, and only of it")
	case s.Cron != nil || s.File != nil:
		if s.Key != "" {
			return bad("/source/key", "must not be set of %s", s.Type)
		}
	}
	if s.Cron != nil {
		_, err := schedule.Parse(*s.Cron, time.Now())
		if wrong, ok := errors.AsType[*schedule.FieldError](err); ok {
			return bad("/source/cron/"+wrong.Field, "%v", wrong.Err)
		}
		return err
	}
	if s.File != nil {
		return checkFiles(cwd, s.File)
	}
	return checkName("/source/key", s.Key)
}

func checkFiles(cwd string, s *protocol.FileSource) error {
	if _, err := glob.Compile(s.Glob); err != nil {
		return bad("/source/file/glob", "%v", err)
	}
	if s.Dir == "" {
		s.Dir = cwd
	}
	dir, err := checkCwd(s.Dir)
	if err != nil {
		return under("/source/file/dir", "/cwd", err)
	}
	s.Dir = dir
	return nil
}

// checkKey refuses what is no key of a trigger.
func checkKey(key string) error {
	if key == "" {
		return bad("/key", "is needed")
	}
	return checkName("/key", key)
}

// happeningPayload gives a payload as it is stored.
func happeningPayload(payload, schema json.RawMessage) (json.RawMessage, error) {
	if len(payload) == 0 {
		payload = json.RawMessage(`{}`)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, payload); err != nil {
		return nil, bad("/payload", "is no JSON: %v", err)
	}
	if n := b.Len(); n > maxHappening {
		return nil, bad("/payload", "has %d bytes, at most %d", n, maxHappening)
	}
	if b.Bytes()[0] != '{' {
		return nil, bad("/payload", "must be an object")
	}
	if err := tool.CheckValue(schema, b.Bytes()); err != nil {
		return nil, bad("/payload", "is not as the type says: %v", err)
	}
	return slices.Clip(b.Bytes()), nil
}
