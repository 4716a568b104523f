package plugin

import (
	"fmt"

	"lashd/engine/task"
	"lashd/rpc/protocol"
)

// MonitorOwner is the plugin of the monitors that nobody declares: tools and clients start them. Ids of others begin with the
// name of their plugin.
const MonitorOwner = "monitor"

// MonitorDeclaration is a monitor that a plugin brings to every session.
type MonitorDeclaration struct {
	Plugin string
	Spec   protocol.MonitorSpec
}

// MonitorGroup takes monitors.
type MonitorGroup struct{ r *Registrar }

// Monitors is where monitors are contributed.
func (r *Registrar) Monitors() MonitorGroup { return MonitorGroup{r} }

// Add declares a monitor. Its id in the session is the plugin's, a colon, and the one that it has here.
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
		g.r.fail(fmt.Errorf("registers the monitor %s, and a session has at most %d of plugins", spec.ID, task.MaxMonitors))
	default:
		c.monitors = append(c.monitors, MonitorDeclaration{g.r.owner, spec})
	}
}

// maxMonitorID leaves room for what the id of a task has besides it.
const maxMonitorID = 100

func (c *contributions) monitor(id string) bool {
	for _, d := range c.monitors {
		if d.Spec.ID == id {
			return true
		}
	}
	return false
}

// Monitors are those that the session's plugins declare, in the order of registration.
func (s *Session) Monitors() []MonitorDeclaration { return own(s.monitors) }
