package protocol

// MonitorStartParams starts a monitor. Without a command, it starts the known monitor with that id.
type MonitorStartParams struct {
	Mutation
	SessionID SessionID   `json:"sessionId"`
	Spec      MonitorSpec `json:"spec"`
}

// MonitorStopParams stops a monitor.
type MonitorStopParams struct {
	Mutation
	SessionID SessionID `json:"sessionId"`
	MonitorID string    `json:"monitorId"`
	Reason    string    `json:"reason,omitempty"`
}

// MonitorResult is a monitor after a change.
type MonitorResult struct {
	Monitor  Monitor `json:"monitor"`
	Existing bool    `json:"existing,omitempty"` // it was already running
	Seq      Seq     `json:"seq"`
	Replayable
}

// MonitorStatusResult lists the monitors of a session, sorted by id.
type MonitorStatusResult struct {
	Revision    int64     `json:"revision"` // increases with every change except lines and wakes
	ActiveCount int       `json:"activeCount"`
	Data        []Monitor `json:"data"`
}

// MonitorUpdatesResult holds the updates since the last monitor/updates call of the session, at most the newest 128. Each update is
// returned once. A gap in the sequence means that updates were dropped; the session's events still have them.
type MonitorUpdatesResult struct {
	Revision    int64           `json:"revision"`
	ActiveCount int             `json:"activeCount"`
	Events      []MonitorUpdate `json:"events"`
}

// MonitorAckParams acknowledges the wakes of monitors.
type MonitorAckParams struct {
	Mutation
	SessionID  SessionID `json:"sessionId"`
	MonitorIDs []string  `json:"monitorIds"`
}
