package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// Stored is the stored state of a session whose plugins were just built.
type Stored struct {
	Plugins   *Snapshot             // nil: nothing
	Execution map[string][]byte     // values of the code executor, by name; nil: none
	View      *View                 // may be nil if NeedsView reports false
	Recorded  *protocol.TurnOptions // turn options of the current frame; nil: none
}

// Resumed is the result of Session.Resume.
type Resumed struct {
	Unknown []string      // ids of stored entries whose plugin does not exist
	Options *Materialized // to be recorded; nil: keep the recorded ones
}

// TakeBack initializes the protocol and restores the state of plugins and code executor. unknown holds the ids of
// stored entries whose plugin does not exist.
func (s *Session) TakeBack(ctx context.Context, st Stored) (unknown []string, err error) {
	if err := s.Protocol().Initialize(ctx, s.session); err != nil {
		return nil, err
	}
	if st.Plugins != nil {
		if unknown, err = s.Restore(ctx, *st.Plugins); err != nil {
			return nil, err
		}
	}
	if st.Execution != nil {
		err = s.RestoreExecution(ctx, st.Execution)
	}
	return unknown, err
}

// Resume is TakeBack for a session that will be used: then it restores the protocol, emits SessionRestored, and asks
// the protocol for the turn options. On the first error, or if a lifecycle hook fails, the caller must close the
// session.
func (s *Session) Resume(ctx context.Context, st Stored) (r Resumed, err error) {
	if r.Unknown, err = s.TakeBack(ctx, st); err != nil {
		return r, err
	}
	p := s.Protocol()
	if err := p.Restore(ctx, st.View); err != nil {
		return r, err
	}
	if err := s.emitJoined(ctx, &LifecycleEvent{Kind: SessionRestored, View: st.View}); err != nil {
		return r, err
	}
	r.Options, err = p.Materialize(ctx, &Materialization{SessionID: s.session, Root: s.root, Options: s.options[p.plugin], Recorded: st.Recorded})
	return r, err
}

// NeedsView reports whether Resume needs a View. If not, the caller can skip loading the history.
func (s *Session) NeedsView() bool { return s.Listens() || s.Protocol().callbacks.Restore != nil }

// emitJoined emits an event and joins the errors of the hooks.
func (l *lifecycleHooks) emitJoined(ctx context.Context, event *LifecycleEvent) error {
	var errs []error
	for _, f := range l.Emit(ctx, event) {
		errs = append(errs, f.Err)
	}
	return errors.Join(errs...)
}

// check rejects options that cannot be recorded.
func (m *Materialized) check() error {
	switch {
	case m == nil:
	case m.Options.SchemaVersion < 1:
		return &OptionsError{Err: errNoVersion}
	case !json.Valid(m.Options.Payload):
		return &OptionsError{Err: errNoJSON}
	case len(m.Options.Payload) > protocol.MaxTurnOptions:
		return &OptionsError{Err: fmt.Errorf("%d bytes exceed the limit of %d bytes", len(m.Options.Payload), protocol.MaxTurnOptions)}
	}
	return nil
}

var (
	errNoVersion = errors.New("the schema version is missing")
	errNoJSON    = errors.New("the payload is not JSON")
)
