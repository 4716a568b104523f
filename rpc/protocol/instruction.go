package protocol

// InstructionOrigin says whose file a file of instructions is.
type InstructionOrigin string

const (
	InstructionUser      InstructionOrigin = "user"      // the person's own file, for all workspaces
	InstructionWorkspace InstructionOrigin = "workspace" // a file of the workspace or its repository
)

// InstructionUse says when the model gets a file of instructions.
type InstructionUse string

const (
	InstructionAlways  InstructionUse = "always"  // it is in the prompt of each turn
	InstructionAdded   InstructionUse = "added"   // it was added to the conversation when a file near it was used
	InstructionMatches InstructionUse = "matches" // it will be added when a file is used that matches one of its patterns
	InstructionListed  InstructionUse = "listed"  // the prompt has its description, and the model reads it when it needs it
	InstructionSkipped InstructionUse = "skipped" // the model does not get it; problem says why
)

// InstructionFile is a file of instructions that applies to a session.
type InstructionFile struct {
	Path        string            `json:"path"` // absolute
	Name        string            `json:"name"` // as the model sees it
	Origin      InstructionOrigin `json:"origin"`
	Use         InstructionUse    `json:"use"`
	Bytes       int64             `json:"bytes"`                // size of the file
	Shown       int64             `json:"shownBytes"`           // what the model gets of it
	ImportedBy  string            `json:"importedBy,omitempty"` // name of the file that imports it, or that names it if it is skipped
	Problem     string            `json:"problem,omitempty"`    // why it is skipped, as the end of a sentence
	Description string            `json:"description,omitempty"`
	Patterns    []string          `json:"patterns,omitempty"` // of the files that it is about
}

// InstructionListResult lists the files of instructions of a session: those of the user first, then those of the workspace, the closest last.
type InstructionListResult struct {
	Data     []InstructionFile `json:"data"`
	UserFile string            `json:"userFile"` // where the person's own instructions belong; it may not exist
}

// InstructionsID is the id of the plugin that adds instructions to the prompt, and InstructionsQuery that of its query that lists them.
const (
	InstructionsID    = "promptcontext"
	InstructionsQuery = "promptcontext.files"
)
