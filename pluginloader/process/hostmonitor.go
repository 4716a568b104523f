package process

import (
	"context"

	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// onMonitors calls the monitor service. It always acts on the session of the call.
func onMonitors[R any](ctx context.Context, g *grant, do func(plugin.MonitorService, context.Context) (R, error)) (R, error) {
	s, err := g.host.NeedMonitors()
	if err != nil {
		var none R
		return none, err
	}
	return do(s, ctx)
}

// monitorSnapshot implements host/monitorSnapshot: the state of all monitors.
func monitorSnapshot(ctx context.Context, g *grant, _ *ofSession) (*protocol.MonitorStatusResult, error) {
	return onMonitors(ctx, g, plugin.MonitorService.Snapshot)
}

// monitorUpdates implements host/monitorUpdates. Each update is returned once.
func monitorUpdates(ctx context.Context, g *grant, _ *ofSession) (*protocol.MonitorUpdatesResult, error) {
	return onMonitors(ctx, g, plugin.MonitorService.Updates)
}

// monitorStart implements host/monitorStart, with the parameters of monitor/start.
func monitorStart(ctx context.Context, g *grant, p *struct {
	granted
	protocol.MonitorStartParams
}) (*protocol.MonitorResult, error) {
	return onMonitors(ctx, g, func(s plugin.MonitorService, ctx context.Context) (*protocol.MonitorResult, error) {
		return s.Start(ctx, &p.MonitorStartParams)
	})
}

// monitorStop implements host/monitorStop. It returns when the monitor has ended.
func monitorStop(ctx context.Context, g *grant, p *struct {
	granted
	protocol.MonitorStopParams
}) (*protocol.MonitorResult, error) {
	return onMonitors(ctx, g, func(s plugin.MonitorService, ctx context.Context) (*protocol.MonitorResult, error) {
		return s.Stop(ctx, &p.MonitorStopParams)
	})
}
