package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Config holds the settings of a session. The head and every frame have one.
type Config struct {
	Driver     string             `json:"driver"`
	Model      ModelSpec          `json:"model"`
	Budget     Budget             `json:"budget"`
	Prompt     string             `json:"prompt,omitempty"` // the session's own part of the system prompt
	Generation GenerationOptions  `json:"generation,omitzero"`
	Approval   ApprovalConfig     `json:"approval,omitzero"`
	Options    PluginOptions      `json:"options,omitempty"` // by plugin id
	Unknown    UnknownOutcomeRule `json:"unknownOutcome,omitzero"`
	Drain      DrainPolicy        `json:"drain,omitempty"` // absent: merge
}

// DrainPolicy says whether wakes with the same merge key share a turn.
type DrainPolicy string

const (
	DrainMerge DrainPolicy = "merge" // up to 64 queued wakes with the same merge key that arrived within 30 seconds share a turn
	DrainOne   DrainPolicy = "one"   // each wake gets its own turn
)

// TurnOptions are options for the session's driver. Only the driver understands the payload.
type TurnOptions struct {
	SchemaVersion int             `json:"schemaVersion"` // version of the payload's format, starting at 1
	Payload       json.RawMessage `json:"payload"`       // at most 64 KiB
}

// MaxTurnOptions is the maximum size of a TurnOptions payload, in bytes.
const MaxTurnOptions = 64 << 10

// PluginOptions maps plugin ids to settings that only that plugin understands.
type PluginOptions map[string]json.RawMessage

// ModelSpec names a model and states its abilities. It comes from the configuration; lashd infers nothing from the name.
type ModelSpec struct {
	Provider      string         `json:"provider"`
	ID            string         `json:"id"`
	ContextWindow int64          `json:"contextWindow,omitempty"` // tokens; 0: unknown
	OutputLimit   int64          `json:"outputLimit,omitempty"`   // tokens; 0: unknown
	Inputs        []Modality     `json:"inputs,omitempty"`        // what the model reads besides text; absent: unknown, and lashd sends it images
	Reasoning     *ReasoningSpec `json:"reasoning,omitempty"`     // absent: not configurable
	Effort        string         `json:"effort,omitempty"`        // one of reasoning.efforts
	Cache         CacheRetention `json:"cache,omitempty"`         // absent: short
	Idempotent    bool           `json:"idempotent,omitempty"`    // a failed call may be repeated even after output began
	PinnedOptions bool           `json:"pinnedSampling,omitempty"`
}

// WithEffort returns m with another reasoning effort. An empty effort changes nothing.
func (m ModelSpec) WithEffort(effort string) ModelSpec {
	m.Effort = cmp.Or(effort, m.Effort)
	return m
}

// UsedEffort returns the reasoning effort of a call, "" if the model shall use its own default. If the settings do not allow the
// effort, code is effort_not_configurable, effort_required or unsupported_effort, and problem says what is wrong.
func (m *ModelSpec) UsedEffort() (effort, code, problem string) {
	r := m.Reasoning
	if r == nil && m.Effort != "" {
		return "", "effort_not_configurable", fmt.Sprintf("model %s does not take a reasoning effort", m.ID)
	}
	if r == nil {
		return "", "", ""
	}
	effort = cmp.Or(m.Effort, r.Default)
	switch known := strings.Join(r.Efforts, ", "); {
	case effort == "" && r.Mandatory:
		return "", "effort_required", fmt.Sprintf("model %s needs a reasoning effort, one of %s", m.ID, known)
	case effort != "" && !slices.Contains(r.Efforts, effort):
		return "", "unsupported_effort", fmt.Sprintf("model %s has no reasoning effort %q, only %s", m.ID, effort, known)
	}
	return effort, "", ""
}

// Modality is a kind of attachment that a model can read.
type Modality string

const (
	ModalityImage Modality = "image"
	ModalityPDF   Modality = "pdf"
	ModalityText  Modality = "text" // in a list alone: the model reads text only
)

// Takes reports whether lashd sends the model attachments of a media type as they are. Text files are sent as text to every model.
func (m *ModelSpec) Takes(mediaType string) bool {
	switch {
	case strings.HasPrefix(mediaType, "image/"):
		return len(m.Inputs) == 0 || slices.Contains(m.Inputs, ModalityImage)
	case mediaType == "application/pdf":
		return slices.Contains(m.Inputs, ModalityPDF)
	}
	return false
}

// CacheRetention says how long a server may keep the beginning of a prompt, for APIs in which the caller decides. Servers that
// cache by themselves ignore it.
type CacheRetention string

const (
	CacheNone  CacheRetention = "none"
	CacheShort CacheRetention = "short" // about five minutes
	CacheLong  CacheRetention = "long"  // about an hour, at a higher price for writing
)

// ReasoningSpec lists the reasoning efforts of a model. The effort "off" turns reasoning off.
type ReasoningSpec struct {
	Efforts   []string          `json:"efforts"`
	Default   string            `json:"default,omitempty"`
	Mandatory bool              `json:"mandatory,omitempty"`
	Encoding  ReasoningEncoding `json:"encoding,omitempty"` // absent: effort
	Budgets   map[string]int64  `json:"budgets,omitempty"`  // tokens by effort, for the encoding budget; absent: low 2048, medium 8192, high 24576
}

// ReasoningEncoding says how a request tells the model the effort. An API ignores encodings that it does not have.
type ReasoningEncoding string

const (
	EncodeEffort ReasoningEncoding = "effort" // the effort's name
	EncodeBudget ReasoningEncoding = "budget" // a number of tokens
)

// Budget returns the tokens that an effort stands for; 0 if it stands for none.
func (r *ReasoningSpec) Budget(effort string) int64 {
	if tokens, ok := r.Budgets[effort]; ok {
		return tokens
	}
	return map[string]int64{"minimal": 1024, "low": 2048, "medium": 8192, "high": 24576, "xhigh": 32000, "max": 32000}[effort]
}

// GenerationOptions are options for a model call. The call's record says which options were applied.
type GenerationOptions struct {
	MaxOutput   int64    `json:"maxOutput,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        []string `json:"stop,omitempty"`
	Verbosity   string   `json:"verbosity,omitempty"` // low, medium or high, for models that take it
}

// OverlayMode says how new generation options combine with the current ones.
type OverlayMode string

const (
	OverlayReplace OverlayMode = "replace" // options that the new value omits are unset
	OverlayMerge   OverlayMode = "merge"   // options that the new value omits keep their value
)

// Over returns o with unset options taken from other.
func (o GenerationOptions) Over(other GenerationOptions) GenerationOptions {
	o.MaxOutput = cmp.Or(o.MaxOutput, other.MaxOutput)
	o.Temperature, o.Seed = cmp.Or(o.Temperature, other.Temperature), cmp.Or(o.Seed, other.Seed)
	o.Verbosity = cmp.Or(o.Verbosity, other.Verbosity)
	if o.Stop == nil {
		o.Stop = other.Stop
	}
	return o
}

// Budget limits a turn.
type Budget struct {
	Iterations int `json:"iterations"`           // maximum number of model calls; -1: no limit
	NoProgress int `json:"noProgress,omitempty"` // maximum number of attempts in a row without a successful tool call or code cell; 0: 12
}

// Within returns the budget with at most n model calls; 0: no limit of its own.
func (b Budget) Within(n int) Budget {
	if n > 0 && (b.Iterations < 0 || n < b.Iterations) {
		b.Iterations = n
	}
	return b
}

// ApprovalMode says what lashd does with a tool call: run it, ask for approval, or reject it.
type ApprovalMode string

const (
	ApproveAllow ApprovalMode = "allow"
	ApproveAsk   ApprovalMode = "ask"
	ApproveDeny  ApprovalMode = "deny"
)

// ApprovalConfig decides which tool calls need an approval.
type ApprovalConfig struct {
	Mode       ApprovalMode   `json:"mode,omitempty"` // for calls that no rule matches; absent: ask for tools that change something, allow others
	Rules      []ApprovalRule `json:"rules,omitempty"`
	DeadlineMs int64          `json:"deadlineMs,omitempty"` // how long an approval stays open; 0: ten minutes
	Default    ApprovalMode   `json:"default,omitempty"`    // the answer after the deadline: allow or deny; absent: deny
	Sandbox    SandboxMode    `json:"sandbox,omitempty"`    // what commands of the session reach; absent in a request: as before, or the default of the daemon
}

// SandboxMode says what the commands of a session reach. Commands in a sandbox run without a question, unless a rule or the approval mode
// says otherwise. Where the system has no sandbox, lashd asks instead.
type SandboxMode string

const (
	SandboxReadOnly   SandboxMode = "readOnly"   // commands read, and write only temporary files; other tools that change something need an approval
	SandboxWorkspace  SandboxMode = "workspace"  // commands also write to the workspace, and so do the file tools without a question
	SandboxFullAccess SandboxMode = "fullAccess" // commands run outside a sandbox
)

// Known reports whether m is one of the modes, or absent.
func (m SandboxMode) Known() bool { return m == "" || m == SandboxFullAccess || m.Confines() }

// Confines reports whether commands run in a sandbox.
func (m SandboxMode) Confines() bool { return m == SandboxReadOnly || m == SandboxWorkspace }

// ApprovalRule decides about the tool calls it matches. If several rules match, the strictest counts: deny, then ask, then allow.
// An ask or deny rule also matches tools that declare themselves to be like the named tool.
//
// At most one of command, path and host limits the rule to some calls of its tools. It is compared with the subjects of a call: its
// command, its paths (for a patch, every path in it) and the hosts that its command wants to reach. An ask or deny rule matches if one
// subject matches. An allow rule for commands or paths matches only if it covers all commands and paths of the call. Hosts need an
// allow rule of their own, unless a rule allows the tool without a limit.
//
// Commands are parsed like a shell does. The words of the rule are compared with each simple command, including commands run by
// env, sudo, sh -c and similar programs. An allow rule must match all of them, and the command line must hold only literal words. If
// lashd cannot know what a command runs, a deny rule asks instead. A first word with a slash names a program or a directory of programs.
//
// A command with an option that makes its program run another one, such as go test -exec, is allowed only if the rule names the option.
//
// A path matches if it equals the rule's path or lies below it. Both may be absolute or relative to the workspace. lashd compares the
// path as written and the path after following symbolic links. For ask and deny, one match is enough and case is ignored; allow needs
// both.
type ApprovalRule struct {
	Tool    string       `json:"tool,omitempty"`    // a tool name, or a pattern with *; absent: all tools that have such a command, path or host
	Command string       `json:"command,omitempty"` // the first words of a command
	Path    string       `json:"path,omitempty"`    // a file, a directory with everything below it, or a pattern for them: * matches within a name, ** across directories
	Host    string       `json:"host,omitempty"`    // a host, or *.domain for every host below it; with :port only that port
	Action  ApprovalMode `json:"action"`
}

// Limited reports whether the rule covers only some calls of its tools.
func (r ApprovalRule) Limited() bool { return r.Command != "" || r.Path != "" || r.Host != "" }

// String returns the rule as lash rules add takes it, such as "deny command git push".
func (r ApprovalRule) String() string {
	var text strings.Builder
	text.WriteString(string(r.Action))
	for _, part := range [][2]string{{"tool", r.Tool}, {"command", r.Command}, {"path", r.Path}, {"host", r.Host}} {
		if part[1] != "" {
			text.WriteString(" " + part[0] + " " + part[1])
		}
	}
	return text.String()
}

// RuleLevel says whose rule it is.
type RuleLevel string

const (
	LevelUser      RuleLevel = "user"      // of config.toml: in all workspaces
	LevelWorkspace RuleLevel = "workspace" // of one directory
	LevelSession   RuleLevel = "session"
)

// UnknownOutcomeRule sets how long lashd asks a person about a tool call of unknown outcome. After that, lashd reports the unknown
// outcome to the model.
type UnknownOutcomeRule struct {
	DeadlineMs *int64 `json:"deadlineMs,omitempty"` // absent: ten minutes; 0: report to the model at once
}
