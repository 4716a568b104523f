package trigger

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"lashd/engine/param"
	"lashd/engine/schedule"
	"lashd/engine/tool"
	"lashd/internal/glob"
	"lashd/rpc/protocol"
)

// Limits of triggers and of emitted events.
const (
	// maxTriggers is the number of triggers of the user and of all sessions together.
	maxTriggers = 1000
	// maxSpec is the size in bytes of a trigger's spec as JSON.
	maxSpec = 32 << 10
	// maxPayload is the size in bytes of an event's payload.
	maxPayload = 64 << 10
)

// checkSpec validates the spec of a trigger and returns it with all defaults filled in. It
// asks plugins for the events that they declare, which may take long, so it never runs on
// the loop's goroutine. The session that the trigger wakes must exist.
func (r *Registry) checkSpec(ctx context.Context, owner protocol.SessionID, s protocol.TriggerSpec) (protocol.TriggerSpec, error) {
	if n := len(encode(s)); n > maxSpec {
		return s, param.Bad("", "the trigger has %d bytes; the limit is %d", n, maxSpec)
	}
	cwd, err := r.checkAction(ctx, owner, &s.Action)
	if err != nil {
		return s, err
	}
	if err := tool.CheckSchema(s.Filter); err != nil {
		return s, param.Bad("/filter", "is not a JSON Schema: %v", err)
	}
	return s, r.checkSource(ctx, cwd, &s.Source)
}

// checkAction validates an action, fills in its defaults, and returns the workspace of the
// session that it wakes or starts.
func (r *Registry) checkAction(ctx context.Context, owner protocol.SessionID, a *protocol.TriggerAction) (cwd string, err error) {
	if a.Text == "" {
		return "", param.Bad("/action/text", "is required: the prompt for the session")
	}
	switch a.Kind {
	case protocol.TriggerWakes:
		return r.checkWakes(ctx, owner, a)
	case protocol.TriggerStarts:
		return r.checkStarts(ctx, a)
	}
	return "", param.Bad("/action/kind", "must be wakeSession or newSession, not %.40q", a.Kind)
}

// checkWakes validates an action that wakes an existing session. Without a session it wakes
// the owner of the trigger.
func (r *Registry) checkWakes(ctx context.Context, owner protocol.SessionID, a *protocol.TriggerAction) (string, error) {
	a.SessionID, a.Delivery = cmp.Or(a.SessionID, owner), cmp.Or(a.Delivery, protocol.DeliverAfterTurn)
	switch {
	case a.Session != nil:
		return "", param.Bad("/action/session", "is only allowed with kind newSession")
	case a.SessionID == "":
		return "", param.Bad("/action/sessionId", "is required, because no session owns the trigger")
	case a.Delivery != protocol.DeliverAfterTurn && a.Delivery != protocol.DeliverEarliest:
		return "", param.Bad("/action/delivery", "must be afterTurn or earliestBoundary, not %.40q", a.Delivery)
	}
	if err := param.CheckName("/action/merge", a.Merge); err != nil {
		return "", err
	}
	row, err := r.Store.Session(ctx, a.SessionID)
	return row.Cwd, err
}

// checkStarts validates an action that starts a session for each occurrence. It stores the
// directory without links, so that nothing can redirect it until the session starts. The engine checks the settings of that session now, although they may become invalid later.
func (r *Registry) checkStarts(ctx context.Context, a *protocol.TriggerAction) (string, error) {
	switch {
	case a.Session == nil:
		return "", param.Bad("/action/session", "is required: the settings of the new session")
	case a.SessionID != "" || a.Delivery != "" || a.Merge != "":
		return "", param.Bad("/action/kind", "must be wakeSession if sessionId, delivery or merge is set")
	case a.Session.Cwd == "":
		return "", param.Bad("/action/session/cwd", "is required")
	}
	own := *a.Session
	a.Session = &own
	at, err := param.CheckCwd(own.Cwd)
	if err != nil {
		return "", param.Under("/action/session", "", err)
	}
	own.Cwd = at
	return at, param.Under("/action/session", "", r.Host.CheckSession(ctx, &own))
}

// checkSource validates the source of a trigger. Schedules and file patterns are parsed
// here, so that their errors reach the client. cwd is the workspace of its session, whose
// plugins declare event types.
func (r *Registry) checkSource(ctx context.Context, cwd string, s *protocol.TriggerSource) error {
	if _, err := r.eventType(ctx, cwd, s.Type); err != nil {
		if errors.Is(err, errNoEventType) {
			return param.Bad("/source/type", "%.100q %s", s.Type, err)
		}
		return err
	}
	switch {
	case (s.Type == protocol.TypeCronTick) != (s.Cron != nil):
		return param.Bad("/source/cron", "is required for type cron.tick and not allowed otherwise")
	case (s.Type == protocol.TypeFileChanged) != (s.File != nil):
		return param.Bad("/source/file", "is required for type file.changed and not allowed otherwise")
	case s.Cron != nil || s.File != nil:
		if s.Key != "" {
			return param.Bad("/source/key", "is not allowed for type %s", s.Type)
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

// checkFiles validates the glob and the directory of file.changed. The directory defaults
// to cwd.
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

// checkKey validates the key of a trigger.
func checkKey(key string) error {
	if key == "" {
		return param.Bad("/key", "is required")
	}
	return param.CheckName("/key", key)
}

// checkPayload validates an event's payload against a schema and returns it as compact
// JSON. An absent payload is an empty object.
func checkPayload(payload, schema json.RawMessage) (json.RawMessage, error) {
	if len(payload) == 0 {
		payload = json.RawMessage(`{}`)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, payload); err != nil {
		return nil, param.Bad("/payload", "is not valid JSON: %v", err)
	}
	if n := b.Len(); n > maxPayload {
		return nil, param.Bad("/payload", "has %d bytes; the limit is %d", n, maxPayload)
	}
	if b.Bytes()[0] != '{' {
		return nil, param.Bad("/payload", "must be an object")
	}
	if err := tool.CheckValue(schema, b.Bytes()); err != nil {
		return nil, param.Bad("/payload", "does not match the schema of the event type: %v", err)
	}
	return slices.Clip(b.Bytes()), nil
}
