package plugin

import (
	"fmt"

	"lashd/engine/task"
	"lashd/rpc/protocol"
)

// MonitorOwner is the plugin of monitors that tools and clients start. Ids of monitors that a plugin declares are
// prefixed with its id.
const MonitorOwner = "monitor"

// MonitorDeclaration is a monitor that a plugin starts in every session.
type MonitorDeclaration struct {
	Plugin string
	Spec   protocol.MonitorSpec // with the id that it has in the session
}

// MonitorGroup registers monitors.
type MonitorGroup struct{ r *Registrar }

// Monitors returns the group that registers monitors.
func (r *Registrar) Monitors() MonitorGroup { return MonitorGroup{r} }

// Add declares a monitor. Its id in the session is the plugin's id, a colon, and the id in the spec. A session has at
// most task.MaxMonitors of them.
func (g MonitorGroup) Add(spec protocol.MonitorSpec) {
	if err := task.CheckMonitor(&spec); err != nil {
		g.r.fail(fmt.Errorf("registers a monitor %q: %w", spec.ID, err))
		return
	}
	spec = task.Monitor(own(spec))
	if g.r.owner != MonitorOwner {
		spec.ID = g.r.owner + ":" + spec.ID
	}
	c := g.r.in()
	switch {
	case len(spec.ID) > maxMonitorID:
		g.r.fail(fmt.Errorf("registers a monitor %q, whose id is longer than %d bytes", spec.ID, maxMonitorID))
	case c.monitor(spec.ID):
		g.r.fail(fmt.Errorf("registers the monitor %s twice", spec.ID))
	case len(c.monitors) >= task.MaxMonitors:
		g.r.fail(fmt.Errorf("registers the monitor %s, but the plugins of a session may declare at most %d", spec.ID, task.MaxMonitors))
	default:
		c.monitors = append(c.monitors, MonitorDeclaration{g.r.owner, spec})
	}
}

// maxMonitorID is the maximum length of a monitor's id in bytes. It leaves room for the rest of a task's id.
const maxMonitorID = 100

// monitor reports whether a monitor with this id is declared.
func (c *contributions) monitor(id string) bool {
	for _, d := range c.monitors {
		if d.Spec.ID == id {
			return true
		}
	}
	return false
}

// Monitors returns the monitors that the session's plugins declare, in the order of registration.
func (s *Session) Monitors() []MonitorDeclaration { return own(s.monitors) }
