package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"lashd/rpc/protocol"
)

// Stored is what is stored of a session whose plugins were just built.
type Stored struct {
	Plugins   *Snapshot             // nil: nothing
	Execution []byte                // of the code executor; nil: nothing
	View      *View                 // nil: nobody looks at it, see Looks
	Recorded  *protocol.TurnOptions // of the current frame; nil: none
}

// Resumed is what a session that goes on came to.
type Resumed struct {
	Unknown []string      // ids of stored entries for which there is no plugin
	Options *Materialized // to be recorded; nil: those that are
}

// TakeBack begins the session, and gives plugins and code executor back what is stored of them.
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

// Resume is TakeBack for a session that is to be used: the protocol follows, everybody is told, and the protocol says which
// options hold now. The first error, or one of whoever is told, means that the session is not open.
func (s *Session) Resume(ctx context.Context, st Stored) (r Resumed, err error) {
	if r.Unknown, err = s.TakeBack(ctx, st); err != nil {
		return r, err
	}
	p := s.Protocol()
	if err := p.Restore(ctx, st.View); err != nil {
		return r, err
	}
	if err := s.told(ctx, &LifecycleEvent{Kind: SessionRestored, View: st.View}); err != nil {
		return r, err
	}
	r.Options, err = p.Materialize(ctx, &Materialization{SessionID: s.session, Root: s.root, Options: s.options[p.plugin], Recorded: st.Recorded})
	return r, err
}

// Looks tells whether anybody looks at the session when it is opened.
func (s *Session) Looks() bool { return s.Listens() || s.Protocol().callbacks.Restore != nil }

func (l *lifecycleHooks) told(ctx context.Context, event *LifecycleEvent) error {
	var errs []error
	for _, f := range l.Emit(ctx, event) {
		errs = append(errs, f.Err)
	}
	return errors.Join(errs...)
}

// check refuses what cannot be recorded.
func (m *Materialized) check() error {
	switch {
	case m == nil:
	case m.Options.SchemaVersion < 1:
		return &OptionsError{Err: errNoVersion}
	case !json.Valid(m.Options.Payload):
		return &OptionsError{Err: errNoJSON}
	case len(m.Options.Payload) > protocol.MaxTurnOptions:
		return &OptionsError{Err: fmt.Errorf("they have %d bytes, at most %d", len(m.Options.Payload), protocol.MaxTurnOptions)}
	}
	return nil
}

var (
	errNoVersion = errors.New("they have no schema version")
	errNoJSON    = errors.New("the payload is not JSON")
)
