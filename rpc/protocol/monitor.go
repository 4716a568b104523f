package protocol

// MonitorArm says when a monitor starts.
type MonitorArm string

const (
	ArmManual  MonitorArm = "manual"       // on monitor/start; the default
	ArmSession MonitorArm = "sessionStart" // once per session, at its first turn or at monitor/status or monitor/updates
)

// MonitorWake says what a line on a monitor's standard output does. A line on its standard error only produces an event.
type MonitorWake string

const (
	WakeTurn   MonitorWake = "queueTurn" // wakes the session, unless an earlier wake is not acknowledged yet; the default
	WakeNotify MonitorWake = "notify"    // only produces an event
)

// MonitorSpec configures a monitor.
type MonitorSpec struct {
	ID         string            `json:"monitorId"`            // letters, digits, dots, dashes and underscores; for a monitor of a plugin, preceded by the plugin's name and a colon
	Command    string            `json:"command"`              // run by sh
	Cwd        string            `json:"cwd,omitempty"`        // relative to the session's directory; absent: the session's directory
	Env        map[string]string `json:"env,omitempty"`        // additional environment variables
	Sandbox    SandboxMode       `json:"sandbox,omitempty"`    // absent: the command runs outside a sandbox
	Network    *NetworkAccess    `json:"network,omitempty"`    // hosts that the command reaches from its sandbox; absent: none
	Persistent bool              `json:"persistent,omitempty"` // no time limit
	TimeoutMs  int64             `json:"timeoutMs,omitempty"`  // time limit, after which lashd stops the monitor as failed; 0: 300000; at most 3600000
	ArmOn      MonitorArm        `json:"armOn,omitempty"`
	Wake       MonitorWake       `json:"wake,omitempty"`
	Restart    bool              `json:"restartOnRestore,omitempty"` // restart it after a restart of the daemon, and when its session is restored or forked
}

// MonitorState is the state of a monitor.
type MonitorState string

const (
	MonitorIdle    MonitorState = "idle" // not started, or interrupted by a restart of the daemon
	MonitorRunning MonitorState = "running"
	MonitorStopped MonitorState = "stopped" // stopped on request
	MonitorExited  MonitorState = "exited"  // exited with code 0
	MonitorFailed  MonitorState = "failed"  // ended in any other way
)

// Monitor is the current state of a monitor.
type Monitor struct {
	Spec            MonitorSpec  `json:"spec"`
	Plugin          string       `json:"plugin,omitempty"` // the plugin that declares it
	Armed           bool         `json:"armed"`            // it is running, or starts at the next turn, monitor/status or monitor/updates
	State           MonitorState `json:"state"`
	TaskID          TaskID       `json:"taskId,omitempty"`       // its newest run
	LastEvent       string       `json:"lastEvent,omitempty"`    // the start of its newest line
	LastError       string       `json:"lastError,omitempty"`    // why its newest run failed
	LastExitCode    *int         `json:"lastExitCode,omitempty"` // exit code of its newest run
	EventCount      int64        `json:"eventCount"`             // lines reported
	DroppedCount    int64        `json:"droppedCount,omitempty"` // lines not reported because they came too fast
	WakeOutstanding bool         `json:"wakeOutstanding,omitempty"`
}

// MonitorStream is the output stream of a line.
type MonitorStream string

const (
	MonitorStdout MonitorStream = "stdout"
	MonitorStderr MonitorStream = "stderr"
)

// MonitorUpdate is a line of a monitor or the end of a run.
type MonitorUpdate struct {
	Sequence  int64         `json:"sequence"` // increases within the session and never restarts
	MonitorID string        `json:"monitorId"`
	AtMs      int64         `json:"atMs"`
	Stream    MonitorStream `json:"stream,omitempty"` // set for a line
	State     MonitorState  `json:"state,omitempty"`  // set at the end of a run: the monitor's new state
	Message   string        `json:"message"`
	Cut       bool          `json:"cut,omitempty"`     // the line was truncated
	Dropped   int64         `json:"dropped,omitempty"` // number of lines after this one that were not reported because they came too fast
	Wakes     bool          `json:"wakes,omitempty"`   // the line is part of a wake
}
