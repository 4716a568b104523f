package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// monitorService is plugin.MonitorService for a session.
type monitorService struct{ *services }

// Snapshot implements plugin.MonitorService.
func (s monitorService) Snapshot(ctx context.Context) (*protocol.MonitorStatusResult, error) {
	return s.eng.Monitors.Status(ctx, &protocol.SessionParams{SessionID: s.session})
}

// Updates implements plugin.MonitorService.
func (s monitorService) Updates(ctx context.Context) (*protocol.MonitorUpdatesResult, error) {
	return s.eng.Monitors.Updates(ctx, &protocol.SessionParams{SessionID: s.session})
}

// Start implements plugin.MonitorService.
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
	return s.eng.Monitors.start(ctx, protocol.TaskOrigin{TurnID: s.turn, Ceiling: by.ceiling}, &mine)
}

// Stop implements plugin.MonitorService.
func (s monitorService) Stop(ctx context.Context, p *protocol.MonitorStopParams) (*protocol.MonitorResult, error) {
	mine := *p
	mine.SessionID = s.session
	return s.eng.Monitors.stop(ctx, string(pluginAsks), &mine)
}
