package command

// Agents whose hook formats lashd supports.
const (
	claude = "Claude Code"
	codex  = "Codex"
	gemini = "Gemini CLI"
)

// toolMapping describes how another agent presents one of lashd's tools. Hooks written for that agent
// match calls in lashd by the other agent's tool name, and can read the arguments under its names.
type toolMapping struct {
	// own is lashd's name of the tool, tool the other agent's.
	own, agent, tool string
	fields           []field
	unknown          []string                   // their arguments without effect that lashd does not have
	special          func(call) (format, error) // converts the call where renaming arguments is not enough
	about            string                     // describes special in docs/other-agents.md
}

// field is an argument with another name in the other agent's format, or a path, which other agents
// make absolute. Arguments without a field keep their names.
type field struct {
	own, theirs string
	path        bool
}

// toolMappings lists all mappings. Of several mappings of a tool for one agent, the first whose name
// a matcher accepts is used.
var toolMappings = []toolMapping{
	{own: "shell", agent: claude, tool: "Bash", fields: []field{{own: "timeoutMs", theirs: "timeout"}}, unknown: []string{"description"}},
	{own: "shell", agent: gemini, tool: "run_shell_command", fields: []field{{own: "workdir", theirs: "dir_path"}}, unknown: []string{"description"}},
	{own: "start_command", agent: claude, tool: "Bash", fields: []field{{own: "timeoutMs", theirs: "timeout"}, {own: "label", theirs: "description"}}, unknown: []string{"run_in_background"}},
	{own: "start_command", agent: gemini, tool: "run_shell_command", fields: []field{{own: "workdir", theirs: "dir_path"}, {own: "label", theirs: "description"}}, unknown: []string{"is_background"}},
	{own: "start_monitor", agent: claude, tool: "Bash", fields: []field{{own: "timeoutMs", theirs: "timeout"}}, unknown: []string{"description", "run_in_background"}},
	{own: "start_monitor", agent: gemini, tool: "run_shell_command", fields: []field{{own: "cwd", theirs: "dir_path"}}, unknown: []string{"description", "is_background"}},
	{own: "read", agent: claude, tool: "Read", fields: []field{{"path", "file_path", true}}},
	{own: "read", agent: gemini, tool: "read_file", fields: []field{{"path", "file_path", true}}},
	{own: "write", agent: claude, tool: "Write", fields: []field{{"path", "file_path", true}}},
	{own: "write", agent: codex, tool: "apply_patch", special: writeAsPatch, about: "a patch in `command`; cannot be changed"},
	{own: "write", agent: gemini, tool: "write_file", fields: []field{{"path", "file_path", true}}},
	{own: "edit", agent: claude, tool: "Edit", fields: editFields()},
	{own: "edit", agent: claude, tool: "MultiEdit", special: editAsEdits, about: "`file_path` and `edits`; cannot be changed"},
	{own: "edit", agent: codex, tool: "apply_patch", special: editAsPatch, about: "a patch in `command`; cannot be changed"},
	{own: "edit", agent: gemini, tool: "replace", fields: editFields()},
	{own: "patch", agent: claude, tool: "Edit", special: patchAsEdits, about: "called once for each file: `Write` for a new file, else `Edit`; cannot be changed"},
	{own: "patch", agent: claude, tool: "MultiEdit", special: patchAsMultiEdits, about: "called once for each existing file: `file_path` and `edits`; cannot be changed"},
	{own: "patch", agent: codex, tool: "apply_patch", fields: []field{{own: "patch", theirs: "command"}}},
	{own: "list", agent: claude, tool: "LS", fields: []field{{"path", "path", true}}},
	{own: "list", agent: gemini, tool: "list_directory", fields: []field{{"path", "dir_path", true}}},
	{own: "glob", agent: claude, tool: "Glob", fields: []field{{"path", "path", true}}},
	{own: "grep", agent: claude, tool: "Grep", fields: []field{{"path", "path", true}, {own: "include", theirs: "glob"}, {own: "ignoreCase", theirs: "-i"}, {own: "limit", theirs: "head_limit"}}, unknown: []string{"output_mode"}},
	{own: "grep", agent: gemini, tool: "search_file_content", fields: []field{{"path", "dir_path", true}}},
	{own: "grep", agent: gemini, tool: "grep_search", fields: []field{{"path", "dir_path", true}}},
	{own: "update_plan", agent: claude, tool: "TodoWrite", special: planAsTodos, about: "`todos` with `content`, `status` (`in_progress`) and `activeForm`"},
	{own: "spawn_agent", agent: claude, tool: "Agent", fields: taskFields, unknown: unknownTask},
	{own: "spawn_agent", agent: claude, tool: "Task", fields: taskFields, unknown: unknownTask},
	{own: "skill", agent: claude, tool: "Skill", fields: []field{{own: "name", theirs: "skill"}}, unknown: []string{"args"}},
}

// taskFields and unknownTask are the arguments of the tool that starts a subagent, whose name Claude Code has changed.
var (
	taskFields  = []field{{own: "task", theirs: "prompt"}, {own: "type", theirs: "subagent_type"}}
	unknownTask = []string{"description", "run_in_background", "model", "isolation"}
)

// editFields returns the arguments of the edit tool, whose names two agents share.
func editFields() []field {
	return []field{{"path", "file_path", true}, {own: "old", theirs: "old_string"}, {own: "new", theirs: "new_string"}, {own: "replaceAll", theirs: "replace_all"}}
}
