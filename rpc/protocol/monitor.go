package protocol

// MonitorArm is when a monitor is begun.
type MonitorArm string

const (
	ArmManual  MonitorArm = "manual"       // when somebody starts it; this is the default
	ArmSession MonitorArm = "sessionStart" // once in the session, at its first turn or when somebody asks for the monitors
)

// MonitorWake is what a line on the standard output of a monitor does. One on its standard error is only told of.
type MonitorWake string

const (
	WakeTurn   MonitorWake = "queueTurn" // it wakes the session, unless an earlier wake is outstanding; this is the default
	WakeNotify MonitorWake = "notify"    // observers are told
)

// MonitorSpec is a command that is watched, and how.
type MonitorSpec struct {
	ID         string            `json:"monitorId"`            // letters, digits, dots, dashes and underscores; of one that a plugin declares, after the plugin's name and a colon
	Command    string            `json:"command"`              // what sh shall run
	Cwd        string            `json:"cwd,omitempty"`        // relative to that of the session; empty: that
	Env        map[string]string `json:"env,omitempty"`        // variables of its environment
	Persistent bool              `json:"persistent,omitempty"` // it has no time limit
	TimeoutMs  int64             `json:"timeoutMs,omitempty"`  // after which it is stopped and has failed; 0: 300000, at most 3600000
	ArmOn      MonitorArm        `json:"armOn,omitempty"`
	Wake       MonitorWake       `json:"wake,omitempty"`
	Restart    bool              `json:"restartOnRestore,omitempty"` // it is begun again after a restart of the daemon, or where its session is restored or forked
}

// MonitorState is where a monitor is.
type MonitorState string

const (
	MonitorIdle    MonitorState = "idle" // not begun, or cut off by a restart
	MonitorRunning MonitorState = "running"
	MonitorStopped MonitorState = "stopped" // somebody wanted it
	MonitorExited  MonitorState = "exited"  // by itself, with code 0
	MonitorFailed  MonitorState = "failed"  // any other end
)

// Monitor is a monitor of a session, as it is.
type Monitor struct {
	Spec            MonitorSpec  `json:"spec"`
	Plugin          string       `json:"plugin,omitempty"` // that declares it
	Armed           bool         `json:"armed"`            // it runs, or is begun at the next turn or when somebody asks for the monitors
	State           MonitorState `json:"state"`
	TaskID          TaskID       `json:"taskId,omitempty"`       // of its newest run
	LastEvent       string       `json:"lastEvent,omitempty"`    // its newest line, or the beginning of it
	LastError       string       `json:"lastError,omitempty"`    // why its newest run failed
	LastExitCode    *int         `json:"lastExitCode,omitempty"` // of its newest run
	EventCount      int64        `json:"eventCount"`             // lines that were told of
	DroppedCount    int64        `json:"droppedCount,omitempty"` // lines that came too fast to be
	WakeOutstanding bool         `json:"wakeOutstanding,omitempty"`
}

// MonitorStream is where a line was written to.
type MonitorStream string

const (
	MonitorStdout MonitorStream = "stdout"
	MonitorStderr MonitorStream = "stderr"
)

// MonitorUpdate is a line of a monitor, or its end.
type MonitorUpdate struct {
	Sequence  int64         `json:"sequence"` // grows in its session, for ever
	MonitorID string        `json:"monitorId"`
	AtMs      int64         `json:"atMs"`
	Stream    MonitorStream `json:"stream,omitempty"` // of a line
	State     MonitorState  `json:"state,omitempty"`  // of the end of a run: what the monitor is then
	Message   string        `json:"message"`
	Cut       bool          `json:"cut,omitempty"`     // the line was longer
	Dropped   int64         `json:"dropped,omitempty"` // lines after this one came too fast to be told of
	Wakes     bool          `json:"wakes,omitempty"`   // it is part of what woke the session
}
