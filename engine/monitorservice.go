package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// monitorService implements plugin.MonitorService for one session. It replaces the session id of each request with
// its own, so a plugin cannot reach the monitors of another session.
type monitorService struct{ *services }

// Snapshot implements plugin.MonitorService.
func (s monitorService) Snapshot(ctx context.Context) (*protocol.MonitorStatusResult, error) {
	return s.eng.Monitors.Status(ctx, &protocol.SessionParams{SessionID: s.session})
}

// Updates implements plugin.MonitorService.
func (s monitorService) Updates(ctx context.Context) (*protocol.MonitorUpdatesResult, error) {
	return s.eng.Monitors.Updates(ctx, &protocol.SessionParams{SessionID: s.session})
}

// Start implements plugin.MonitorService. It is refused if the caller may not run commands, such as a sandboxed
// plugin or a turn in plan mode. The monitor keeps the caller's ceiling for its wakes.
func (s monitorService) Start(ctx context.Context, p *protocol.MonitorStartParams) (*protocol.MonitorResult, error) {
	mine := *p
	mine.SessionID = s.session
	by, err := s.requester(ctx)
	if err == nil {
		err = by.checkCommands()
	}
	if err != nil {
		return nil, err
	}
	mine.Spec.Sandbox, mine.Spec.Network = by.confined(mine.Spec.Sandbox), by.networked(mine.Spec.Network)
	return s.eng.Monitors.start(ctx, protocol.TaskOrigin{TurnID: s.turn, Ceiling: by.ceiling}, &mine)
}

// Stop implements plugin.MonitorService.
func (s monitorService) Stop(ctx context.Context, p *protocol.MonitorStopParams) (*protocol.MonitorResult, error) {
	mine := *p
	mine.SessionID = s.session
	return s.eng.Monitors.stop(ctx, string(pluginAsks), &mine)
}
