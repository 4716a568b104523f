package protocol

import (
	"cmp"
	"encoding/json"
)

// Config is the settings of a session, as its head and its frames carry them.
type Config struct {
	Driver     string             `json:"driver"`
	Model      ModelSpec          `json:"model"`
	Budget     Budget             `json:"budget"`
	Prompt     string             `json:"prompt,omitempty"` // the session's own layer of the system prompt
	Generation GenerationOptions  `json:"generation,omitzero"`
	Approval   ApprovalConfig     `json:"approval,omitzero"`
	Options    PluginOptions      `json:"options,omitempty"` // by plugin id
	Unknown    UnknownOutcomeRule `json:"unknownOutcome,omitzero"`
	Drain      DrainPolicy        `json:"drain,omitempty"` // default merge
}

// DrainPolicy is how many wakes that may share a turn do.
type DrainPolicy string

const (
	DrainMerge DrainPolicy = "merge" // those of one merge key that wait together and have come within half a minute, at most 64
	DrainOne   DrainPolicy = "one"   // none: each has its own
)

// TurnOptions are what a protocol is asked to do in a turn, in words that only the protocol understands.
type TurnOptions struct {
	SchemaVersion int             `json:"schemaVersion"` // of the payload, from 1
	Payload       json.RawMessage `json:"payload"`       // at most 64 KiB
}

// MaxTurnOptions is how many bytes the payload of turn options has at most.
const MaxTurnOptions = 64 << 10

// PluginOptions are settings that only their plugin understands.
type PluginOptions map[string]json.RawMessage

// ModelSpec names a model and says what it can do. It is configuration: nothing is guessed from a name.
type ModelSpec struct {
	Provider      string         `json:"provider"`
	ID            string         `json:"id"`
	ContextWindow int64          `json:"contextWindow,omitempty"` // tokens; 0: not known
	OutputLimit   int64          `json:"outputLimit,omitempty"`   // tokens; 0: not known
	Reasoning     *ReasoningSpec `json:"reasoning,omitempty"`     // absent: not configurable
	Effort        string         `json:"effort,omitempty"`        // one of Reasoning.Efforts
	Idempotent    bool           `json:"idempotent,omitempty"`    // a call may be repeated after output began
	PinnedOptions bool           `json:"pinnedSampling,omitempty"`
}

// ReasoningSpec says how a model's reasoning is controlled.
type ReasoningSpec struct {
	Efforts   []string `json:"efforts"`
	Default   string   `json:"default,omitempty"`
	Mandatory bool     `json:"mandatory,omitempty"`
}

// GenerationOptions are asked of the model; each call record says what became of them.
type GenerationOptions struct {
	MaxOutput   int64    `json:"maxOutput,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        []string `json:"stop,omitempty"`
}

// OverlayMode is what becomes of what a setting does not say.
type OverlayMode string

const (
	OverlayReplace OverlayMode = "replace" // it is not set any more
	OverlayMerge   OverlayMode = "merge"   // it stays as it was
)

// Over is these options laid over others.
func (o GenerationOptions) Over(other GenerationOptions) GenerationOptions {
	o.MaxOutput = cmp.Or(o.MaxOutput, other.MaxOutput)
	o.Temperature, o.Seed = cmp.Or(o.Temperature, other.Temperature), cmp.Or(o.Seed, other.Seed)
	if o.Stop == nil {
		o.Stop = other.Stop
	}
	return o
}

// Budget bounds a turn.
type Budget struct {
	Iterations int `json:"iterations"`           // model calls a turn may make; -1: no bound
	NoProgress int `json:"noProgress,omitempty"` // attempts without an error-free execution; 0: 12
}

// ApprovalMode is what happens to a tool call that no rule matches.
type ApprovalMode string

const (
	ApproveAllow ApprovalMode = "allow"
	ApproveAsk   ApprovalMode = "ask"
	ApproveDeny  ApprovalMode = "deny"
)

// ApprovalConfig decides which tool calls a person is asked about.
type ApprovalConfig struct {
	Mode       ApprovalMode   `json:"mode,omitempty"` // default ask for tools that change things, allow for the rest
	Rules      []ApprovalRule `json:"rules,omitempty"`
	DeadlineMs int64          `json:"deadlineMs,omitempty"` // how long a question stays open; 0: ten minutes
	Default    ApprovalMode   `json:"default,omitempty"`    // what a passed deadline means; deny unless set to allow
}

// ApprovalRule decides for the tools and arguments it matches. The strictest of all rules that match counts. One that asks or
// denies also matches tools that say that they are like one that it names.
//
// A prefix is compared with what a call is about: its command, or paths, of a patch all that it names. A rule that asks or denies
// matches if it is about one of them; a rule that allows, if about all.
//
// A command is parsed as a shell does, and the words of the prefix are compared with each simple command in it, also with those that
// env, sudo, sh -c and the like run. A rule that allows must match all of them, and the line must hold only literal words. A rule that
// denies asks if it cannot be known what the command runs. A prefix with a slash names a program, or a directory of programs.
//
// A path must be that of the rule, or lie below; both are absolute or from the workspace on. They are looked at as they are written,
// and as symbolic links lead: to ask or deny one is enough, in whatever case; to allow it takes both.
type ApprovalRule struct {
	Tool   string       `json:"tool"`             // a name, or a pattern with *
	Prefix string       `json:"prefix,omitempty"` // how the command must begin, or where the path must be
	Action ApprovalMode `json:"action"`
}

// UnknownOutcomeRule says how long the question about a call of unknown outcome stays open before the model is told
// that nobody knows.
type UnknownOutcomeRule struct {
	DeadlineMs *int64 `json:"deadlineMs,omitempty"` // absent: ten minutes; 0: the model is told at once
}
