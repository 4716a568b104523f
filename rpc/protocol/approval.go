package protocol

// ApprovalDetail shows what a call will do, and which answers beyond yes and no the decision accepts. A client that ignores it can
// still allow exactly the call in the prompt, or reject it.
type ApprovalDetail struct {
	Title    *CallTitle      `json:"title,omitempty"`    // of the call; absent for tools that lashd does not know
	Command  *CommandDetail  `json:"command,omitempty"`  // the call runs a command
	Files    []FilePreview   `json:"files,omitempty"`    // the call changes these files
	Hosts    []string        `json:"hosts,omitempty"`    // the command wants to reach these hosts
	Why      ApprovalReason  `json:"why"`                // why lashd asks
	Widths   []ApprovalWidth `json:"widths,omitempty"`   // what allowSession and allowAlways can cover besides exactly this call, narrowest first; the first is the proposal
	Editable bool            `json:"editable,omitempty"` // allowOnce may carry changed arguments
}

// CommandDetail is a command that a call runs.
type CommandDetail struct {
	Command string `json:"command"`           // as the model wrote it
	Dir     string `json:"dir"`               // absolute directory that the command starts in, without symbolic links if it exists
	Outside bool   `json:"outside,omitempty"` // the command runs outside the sandbox
}

// PreviewKind is what a call does to a file.
type PreviewKind string

const (
	PreviewCreate PreviewKind = "create"
	PreviewChange PreviewKind = "change"
	PreviewDelete PreviewKind = "delete"
)

// FilePreview is what a call will change in one file. If the file has changed when the call runs, the call fails and changes nothing.
type FilePreview struct {
	Path    string      `json:"path"` // relative to the workspace if it is in it
	Kind    PreviewKind `json:"kind"`
	Hunks   []Hunk      `json:"hunks,omitempty"`
	Added   int         `json:"added,omitempty"`   // lines, including those that are not shown
	Removed int         `json:"removed,omitempty"` // lines, including those that are not shown
	Cut     bool        `json:"cut,omitempty"`     // the diff is too large and incomplete; then hunks cannot be chosen
	Binary  bool        `json:"binary,omitempty"`  // the old or new content is not text; there are no hunks
	Problem string      `json:"problem,omitempty"` // why there is no diff: for example, the file cannot be read
	Before  Digest      `json:"before,omitempty"`  // hash of the content that the diff starts from; absent: no file, or it was not read
}

// Hunk is one region of a diff. Lines count from 1.
type Hunk struct {
	OldStart int    `json:"oldStart"`
	OldLines int    `json:"oldLines"`
	NewStart int    `json:"newStart"`
	NewLines int    `json:"newLines"`
	Text     string `json:"text"` // lines that begin with a space, - or +; after a last line without newline comes a line that begins with a backslash
}

// ApprovalWidth is a set of calls that an answer can cover.
type ApprovalWidth struct {
	Text string        `json:"text"`           // for a person, such as: commands that begin with go test
	Rule *ApprovalRule `json:"rule,omitempty"` // the rule that is stored; absent: exactly this call
}

// DecidedBy names what decided over a call.
type DecidedBy string

const (
	DecidedByRule      DecidedBy = "rule"      // a rule: rule and level
	DecidedByMode      DecidedBy = "mode"      // the approval mode
	DecidedBySandbox   DecidedBy = "sandbox"   // the sandbox makes the call harmless
	DecidedByOutside   DecidedBy = "outside"   // the call goes beyond the sandbox
	DecidedByProtected DecidedBy = "protected" // the call may change a protected file
	DecidedByPlugin    DecidedBy = "plugin"    // a plugin requires an approval
	DecidedByCeiling   DecidedBy = "ceiling"   // whoever requested the work may do no more
	DecidedByAnswer    DecidedBy = "answer"    // an earlier answer of a person covers the call
	DecidedByPreview   DecidedBy = "preview"   // the call could only fail, so lashd refused it without a question
	DecidedByClient    DecidedBy = "client"    // a client makes the call itself
	DecidedByTrust     DecidedBy = "trust"     // a person installed or approved the plugin that has the program
)

// CallDecision is how lashd decided whether a tool call may run. A call that failed before, or that a plugin answered itself, has none.
type CallDecision struct {
	Mode   ApprovalMode   `json:"mode"`             // allow or deny
	Why    ApprovalReason `json:"why"`              // what decided; with a choice, why lashd asked
	Choice DecisionChoice `json:"choice,omitempty"` // the answer, if lashd asked
	By     string         `json:"by,omitempty"`     // who answered: a client id, deadline, or internal:<subject>
	Hunks  []int          `json:"hunks,omitempty"`  // the only changes that the answer allowed; absent: all of the call
	Reason string         `json:"reason,omitempty"` // why the answer denied the call, or the changes that hunks leave out, in the words of who answered
}

// ApprovalReason is why a call is allowed, asked about or denied.
type ApprovalReason struct {
	By    DecidedBy     `json:"by"`
	Rule  *ApprovalRule `json:"rule,omitempty"`  // the rule that decides
	Level RuleLevel     `json:"level,omitempty"` // of the rule, or of the answer
	Text  string        `json:"text"`            // one sentence for people
}
