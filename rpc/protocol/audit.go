package protocol

// AuditKind is the kind of an AuditRecord.
type AuditKind string

// Kinds of audit records. A call that was allowed and runs outside a sandbox is outside.
const (
	AuditOutside AuditKind = "outside" // a program starts outside a sandbox
	AuditAllowed AuditKind = "allowed" // a rule, a mode, a client or a person allows the call
	AuditRefused AuditKind = "refused" // a rule, a mode, a limit, a person or the sandbox refuses the call
)

// AuditRecord says who decided over a tool call, and where its programs ran. Calls that need no decision, such as commands in a
// sandbox and tools that only read, have none unless the sandbox refuses something to them.
type AuditRecord struct {
	Kind    AuditKind      `json:"kind"`
	CallID  CallID         `json:"callId,omitempty"` // absent for a background command or monitor that has ended
	TaskID  TaskID         `json:"taskId,omitempty"` // the task of a background command or monitor to which the sandbox refused something, or of a plugin's monitor that ran outside
	Tool    string         `json:"tool"`
	Subject string         `json:"subject,omitempty"` // the command, the paths or the hosts; at most 2,000 bytes
	Dir     string         `json:"dir,omitempty"`     // of the command
	Sandbox SandboxMode    `json:"sandbox,omitempty"` // the mode in which its programs ran
	Granted []string       `json:"granted,omitempty"` // hosts that the call named, for a call that was allowed
	Hosts   []RefusedHost  `json:"hosts,omitempty"`   // each host that the proxy of the command refused
	Why     ApprovalReason `json:"why"`               // what decided; with a choice, why lashd asked
	Choice  DecisionChoice `json:"choice,omitempty"`  // the answer, if lashd asked
	By      string         `json:"by,omitempty"`      // who answered: a client id, deadline, or internal:<subject>
}

// AuditEntry is an audit record with its place in the log of its session.
type AuditEntry struct {
	SessionID SessionID `json:"sessionId"`
	Seq       Seq       `json:"seq"`
	AtMs      int64     `json:"atMs"`
	TurnID    TurnID    `json:"turnId,omitempty"` // absent: a client made the call
	AuditRecord
}

// AuditListParams selects a page of the audit records of a session.
type AuditListParams struct {
	SessionID SessionID `json:"sessionId"`
	Kind      AuditKind `json:"kind,omitempty"`    // absent: all
	SinceMs   int64     `json:"sinceMs,omitempty"` // ms since 1970; absent: from the start
	Cursor    string    `json:"cursor,omitempty"`
	Limit     int       `json:"limit,omitempty"` // 1 to 500; absent: 200
}

// AuditListResult is a page of audit records in order. A page may be empty before the last one.
type AuditListResult struct {
	Data       []AuditEntry `json:"data"`
	NextCursor string       `json:"nextCursor,omitempty"`
}

// AuditVerifyResult says whether the log of a session is complete and unchanged.
type AuditVerifyResult struct {
	Events  int    `json:"events"`            // checked events
	Problem string `json:"problem,omitempty"` // absent: the log is sound
}
