package engine

import (
	"context"

	"lashd/rpc/protocol"
)

// workerFor is who can do what a spec says.
func (e *Engine) workerFor(spec *protocol.TaskSpec) (worker, error) {
	switch {
	case spec.Recovery == protocol.RecoverExternal:
		return nil, nil
	case spec.Kind == protocol.TaskCommand:
		return runCommand, nil
	case spec.Kind == protocol.TaskMonitor:
		return nil, bad("/spec/kind", "monitor is what monitor/start starts")
	case spec.Subagent != nil:
		return runSubagent, nil
	case spec.Handler != "":
		return pluginWork(nil), nil
	}
	return nil, bad("/spec/kind", "%s is nothing that lashd can run by itself; make it external, and complete it", spec.Kind)
}

func runCommand(ctx context.Context, w *work) *protocol.TaskOutcome {
	row, err := w.eng.store.Session(ctx, w.owner())
	if err != nil {
		return &protocol.TaskOutcome{Kind: protocol.TaskError, Code: "no_session", Message: err.Error()}
	}
	t := w.now()
	return w.eng.commands.Run(ctx, &t, row.Cwd, w.signals)
}
