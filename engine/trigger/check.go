package trigger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"lashd/engine/param"
	"lashd/engine/schedule"
	"lashd/engine/tool"
	"lashd/internal/glob"
	"lashd/rpc/protocol"
)

// Limits of what clients send.
const (
	maxTriggers = 1000     // of the user and of all sessions
	maxSpec     = 32 << 10 // bytes of a trigger's spec, as JSON
	maxPayload  = 64 << 10 // bytes
)

// checkSpec refuses a spec that no trigger can have, whoever owns it, and returns it with all defaults filled in.
func (r *Registry) checkSpec(ctx context.Context, owner protocol.SessionID, s protocol.TriggerSpec) (protocol.TriggerSpec, error) {
	if n := len(encode(s)); n > maxSpec {
		return s, param.Bad("", "the trigger has %d bytes, at most %d", n, maxSpec)
	}
	cwd, err := r.checkAction(ctx, owner, &s.Action)
	if err != nil {
		return s, err
	}
	if err := tool.CheckSchema(s.Filter); err != nil {
		return s, param.Bad("/filter", "is no JSON Schema: %v", err)
	}
	return s, r.checkSource(ctx, cwd, &s.Source)
}

// checkAction also returns the workspace of the action's session.
func (r *Registry) checkAction(ctx context.Context, owner protocol.SessionID, a *protocol.TriggerAction) (cwd string, err error) {
	if a.Text == "" {
		return "", param.Bad("/action/text", "must say what is to be done")
	}
	switch a.Kind {
	case protocol.TriggerWakes:
		return r.checkWakes(ctx, owner, a)
	case protocol.TriggerStarts:
		return r.checkStarts(ctx, a)
	}
	return "", param.Bad("/action/kind", "must be wakeSession or newSession, not %.40q", a.Kind)
}

func (r *Registry) checkWakes(ctx context.Context, owner protocol.SessionID, a *protocol.TriggerAction) (string, error) {
	a.SessionID, a.Delivery = cmp.Or(a.SessionID, owner), cmp.Or(a.Delivery, protocol.DeliverAfterTurn)
	switch {
	case a.Session != nil:
		return "", param.Bad("/action/session", "is of newSession")
	case a.SessionID == "":
		return "", param.Bad("/action/sessionId", "must name a session, as no session owns the trigger")
	case a.Delivery != protocol.DeliverAfterTurn && a.Delivery != protocol.DeliverEarliest:
		return "", param.Bad("/action/delivery", "must be afterTurn or earliestBoundary, not %.40q", a.Delivery)
	}
	if err := param.CheckName("/action/merge", a.Merge); err != nil {
		return "", err
	}
	row, err := r.Store.Session(ctx, a.SessionID)
	return row.Cwd, err
}

func (r *Registry) checkStarts(ctx context.Context, a *protocol.TriggerAction) (string, error) {
	switch {
	case a.Session == nil:
		return "", param.Bad("/action/session", "must say what the session is")
	case a.SessionID != "" || a.Delivery != "" || a.Merge != "":
		return "", param.Bad("/action/kind", "must be wakeSession where sessionId, delivery or merge is set")
	case a.Session.Cwd == "":
		return "", param.Bad("/action/session/cwd", "is needed")
	}
	return filepath.Clean(a.Session.Cwd), param.Under("/action/session", "", r.Host.CheckSession(ctx, a.Session))
}

func (r *Registry) checkSource(ctx context.Context, cwd string, s *protocol.TriggerSource) error {
	if _, err := r.eventType(ctx, cwd, s.Type); err != nil {
		if errors.Is(err, errNoEventType) {
			return param.Bad("/source/type", "%.100q %s", s.Type, err)
		}
		return err
	}
	switch {
	case (s.Type == protocol.TypeCronTick) != (s.Cron != nil):
		return param.Bad("/source/cron", "must be set of cron.tick, and only of it")
	case (s.Type == protocol.TypeFileChanged) != (s.File != nil):
		return param.Bad("/source/file", "must be set of file.changed, and only of it")
	case s.Cron != nil || s.File != nil:
		if s.Key != "" {
			return param.Bad("/source/key", "must not be set of %s", s.Type)
		}
	}
	if s.Cron != nil {
		_, err := schedule.Parse(*s.Cron, time.Now())
		if wrong, ok := errors.AsType[*schedule.FieldError](err); ok {
			return param.Bad("/source/cron/"+wrong.Field, "%v", wrong.Err)
		}
		return err
	}
	if s.File != nil {
		return checkFiles(cwd, s.File)
	}
	return param.CheckName("/source/key", s.Key)
}

func checkFiles(cwd string, s *protocol.FileSource) error {
	if _, err := glob.Compile(s.Glob); err != nil {
		return param.Bad("/source/file/glob", "%v", err)
	}
	if s.Dir == "" {
		s.Dir = cwd
	}
	dir, err := param.CheckCwd(s.Dir)
	if err != nil {
		return param.Under("/source/file/dir", "/cwd", err)
	}
	s.Dir = dir
	return nil
}

func checkKey(key string) error {
	if key == "" {
		return param.Bad("/key", "is needed")
	}
	return param.CheckName("/key", key)
}

// checkPayload returns a payload as it is stored.
func checkPayload(payload, schema json.RawMessage) (json.RawMessage, error) {
	if len(payload) == 0 {
		payload = json.RawMessage(`{}`)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, payload); err != nil {
		return nil, param.Bad("/payload", "is no JSON: %v", err)
	}
	if n := b.Len(); n > maxPayload {
		return nil, param.Bad("/payload", "has %d bytes, at most %d", n, maxPayload)
	}
	if b.Bytes()[0] != '{' {
		return nil, param.Bad("/payload", "must be an object")
	}
	if err := tool.CheckValue(schema, b.Bytes()); err != nil {
		return nil, param.Bad("/payload", "is not as the type says: %v", err)
	}
	return slices.Clip(b.Bytes()), nil
}
