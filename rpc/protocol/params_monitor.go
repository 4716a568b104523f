package protocol

// MonitorStartParams starts a monitor. Without a command it is the one that is known by the id.
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
	Existing bool    `json:"existing,omitempty"` // it ran already
	Seq      Seq     `json:"seq"`
	Replayable
}

// MonitorStatusResult are the monitors of a session, by id.
type MonitorStatusResult struct {
	Revision    int64     `json:"revision"` // grows with each change but lines and wakes
	ActiveCount int       `json:"activeCount"`
	Data        []Monitor `json:"data"`
}

// MonitorUpdatesResult is what was told since somebody asked before: the newest 128 at most. Who asks gets each once; a gap in
// the sequence are those that are lost to this list. The events of the session hold all.
type MonitorUpdatesResult struct {
	Revision    int64           `json:"revision"`
	ActiveCount int             `json:"activeCount"`
	Events      []MonitorUpdate `json:"events"`
}

// MonitorAckParams says that the wakes of monitors were taken notice of.
type MonitorAckParams struct {
	Mutation
	SessionID  SessionID `json:"sessionId"`
	MonitorIDs []string  `json:"monitorIds"`
}
