package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// CallTitle names a call for people, as one line: a form of the verb, the subject, the detail. For returns the
// form that fits.
type CallTitle struct {
	Kind    ToolKind `json:"kind"`
	Verb    string   `json:"verb"`              // of a call that waits for an answer, failed or was cancelled, such as: Run
	Running string   `json:"running"`           // of a call that runs, such as: Running
	Done    string   `json:"done"`              // of a call that is done, such as: Ran
	Subject string   `json:"subject,omitempty"` // the file, command, pattern or foreign tool, at most 200 characters without control characters
	Detail  string   `json:"detail,omitempty"`  // words that follow the subject, such as: in src
	Foreign bool     `json:"foreign,omitempty"` // the tool is not lashd's own: its provider has chosen what it is called
}

// For returns the form of the verb for an item with this status.
func (t *CallTitle) For(s ItemStatus) string {
	switch s {
	case ItemInProgress:
		return t.Running
	case ItemDone:
		return t.Done
	}
	return t.Verb
}

// Line returns the title as one line for an item with this status.
func (t *CallTitle) Line(s ItemStatus) string {
	return strings.Join(strings.Fields(t.For(s)+" "+t.Subject+" "+t.Detail), " ")
}

// TitleOf returns the title of a call of one of lashd's own tools, of a tool of an MCP server, or of another tool with a title; nil for others.
// Arguments that it cannot read leave the title of an own tool without subject. The arguments are those of the model, so the subject may name
// a file or a command that does not exist.
func TitleOf(c ToolCall) *CallTitle {
	form, ok := titles[c.Name]
	if !ok {
		return titleOfOthers(c)
	}
	var a titleArgs
	_ = json.Unmarshal(c.Args, &a) // an argument of another type is left out
	t := &CallTitle{Kind: form.kind, Verb: form.verb, Running: form.running, Done: form.done}
	if form.about != nil && len(c.Args) > 0 {
		t.Subject, t.Detail = form.about(&a)
	}
	t.Subject, t.Detail = brief(t.Subject), brief(t.Detail)
	return t
}

// titleOfOthers returns the title of a call of a tool that is not lashd's own: the tool with its MCP server, and the arguments.
func titleOfOthers(c ToolCall) *CallTitle {
	name := brief(c.ToolTitle)
	if of, ok := strings.CutPrefix(c.Name, "mcp__"); ok {
		server, tool, _ := strings.Cut(of, "__")
		name = server + ": " + cmp.Or(name, tool)
	}
	if name == "" {
		return nil
	}
	return &CallTitle{Kind: ToolKindOther, Verb: "Call", Running: "Calling", Done: "Called", Subject: brief(name), Detail: brief(plainArgs(c.Args)), Foreign: true}
}

// plainArgs returns the arguments that are neither objects nor lists: a single one by its value, several as name=value.
func plainArgs(args json.RawMessage) string {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(args, &all) // other arguments have no names to show
	var words []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := string(all[name])
		if strings.HasPrefix(value, "{") || strings.HasPrefix(value, "[") {
			continue
		}
		_ = json.Unmarshal(all[name], &value) // a number stays as it is written
		if len(all) > 1 {
			value = name + "=" + value
		}
		words = append(words, value)
	}
	return strings.Join(words, " ")
}

// titleForm is how calls of a tool are named. A nil about means that the verb says it all.
type titleForm struct {
	kind                ToolKind
	verb, running, done string
	about               func(*titleArgs) (subject, detail string)
}

// titles has the forms of lashd's own tools, by name.
var titles = map[string]titleForm{
	"read":  {ToolKindRead, "Read", "Reading", "Read", (*titleArgs).lines},
	"write": {ToolKindEdit, "Write", "Writing", "Wrote", (*titleArgs).file},
	"edit":  {ToolKindEdit, "Edit", "Editing", "Edited", (*titleArgs).file},
	"patch": {ToolKindEdit, "Edit", "Editing", "Edited", (*titleArgs).patched},
	"list":  {ToolKindRead, "List", "Listing", "Listed", (*titleArgs).directory},
	"glob":  {ToolKindSearch, "List", "Listing", "Listed", (*titleArgs).matches},
	"grep":  {ToolKindSearch, "Search for", "Searching for", "Searched for", (*titleArgs).matches},

	"shell":          {ToolKindExecute, "Run", "Running", "Ran", (*titleArgs).command},
	"start_command":  {ToolKindExecute, "Start", "Starting", "Started", (*titleArgs).command},
	"start_monitor":  {ToolKindExecute, "Monitor", "Starting to monitor", "Started to monitor", (*titleArgs).command},
	"stop_monitor":   {ToolKindOther, "Stop monitor", "Stopping monitor", "Stopped monitor", (*titleArgs).named},
	"list_monitors":  {ToolKindRead, "List monitors", "Listing monitors", "Listed monitors", nil},
	"write_stdin":    {ToolKindExecute, "Write to command", "Writing to command", "Wrote to command", (*titleArgs).named},
	"read_output":    {ToolKindRead, "Read output of", "Reading output of", "Read output of", (*titleArgs).named},
	"list_processes": {ToolKindRead, "List commands", "Listing commands", "Listed commands", nil},
	"stop_command":   {ToolKindExecute, "Stop command", "Stopping command", "Stopped command", (*titleArgs).named},

	"spawn_agent": {ToolKindThink, "Start agent", "Starting agent", "Started agent", (*titleArgs).named},
	"send_agent":  {ToolKindThink, "Send task to agent", "Sending task to agent", "Sent task to agent", (*titleArgs).named},
	"wait_agents": {ToolKindThink, "Wait for agents", "Waiting for agents", "Waited for agents", nil},
	"list_agents": {ToolKindThink, "List agents", "Listing agents", "Listed agents", nil},
	"close_agent": {ToolKindThink, "Close agent", "Closing agent", "Closed agent", (*titleArgs).named},

	"update_plan": {ToolKindThink, "Update plan", "Updating plan", "Updated plan", nil},
	"tool_search": {ToolKindSearch, "Search tools for", "Searching tools for", "Searched tools for", (*titleArgs).named},
	"skill":       {ToolKindRead, "Read skill", "Reading skill", "Read skill", (*titleArgs).named},
	"llm_query":   {ToolKindThink, "Ask model", "Asking model", "Asked model", (*titleArgs).named},
	"batch":       {ToolKindThink, "Run several calls", "Running several calls", "Ran several calls", nil},
}

// titleArgs are the arguments of lashd's own tools that titles show.
type titleArgs struct {
	Path, Pattern, Include, Patch     string
	Command, Workdir, Cwd             string
	Outside                           bool
	Hosts                             []string
	Name, File, Task, ID, Query, Type string
	Offset, Limit                     int
}

// file is the one file of a call.
func (a *titleArgs) file() (subject, detail string) { return a.Path, "" }

// directory is the directory of a call, the workspace if it names none.
func (a *titleArgs) directory() (subject, detail string) { return cmp.Or(a.Path, "."), "" }

// lines is the file of a read with the lines that it asks for.
func (a *titleArgs) lines() (subject, detail string) {
	first := max(a.Offset, 1)
	switch {
	case a.Limit == 1:
		return a.Path, fmt.Sprintf("line %d", first)
	case a.Limit > 1:
		return a.Path, fmt.Sprintf("lines %d-%d", first, first+a.Limit-1)
	case first > 1:
		return a.Path, fmt.Sprintf("from line %d", first)
	}
	return a.Path, ""
}

// matches is the pattern of a search with the place that it looks at.
func (a *titleArgs) matches() (subject, detail string) {
	var where []string
	if a.Path != "" && a.Path != "." {
		where = append(where, "in "+a.Path)
	}
	if a.Include != "" {
		where = append(where, "in files "+a.Include)
	}
	return a.Pattern, strings.Join(where, ", ")
}

// command is the command of a call with the directory, the hosts and the lack of a sandbox that it asks for.
func (a *titleArgs) command() (subject, detail string) {
	var how []string
	if dir := cmp.Or(a.Workdir, a.Cwd); dir != "" && dir != "." {
		how = append(how, "in "+dir)
	}
	if len(a.Hosts) > 0 {
		how = append(how, "with access to "+strings.Join(a.Hosts, ", "))
	}
	if a.Outside {
		how = append(how, "outside the sandbox")
	}
	return a.Command, strings.Join(how, ", ")
}

// named is the agent, task, skill or query of a call.
func (a *titleArgs) named() (subject, detail string) {
	return cmp.Or(a.Name, a.ID, a.Query, a.Task), cmp.Or(a.File, a.Type)
}

// patched is the first file of a patch with the number of the others. It reads the headers of the patch tool's format.
func (a *titleArgs) patched() (subject, detail string) {
	others := -1
	for line := range strings.Lines(a.Patch) {
		name, ok := strings.CutPrefix(line, "*** ")
		verb, name, named := strings.Cut(name, " File: ")
		if !ok || !named || verb != "Add" && verb != "Update" && verb != "Delete" {
			continue
		}
		subject = cmp.Or(subject, strings.TrimSpace(name))
		others++
	}
	switch {
	case others == 1:
		detail = "and 1 other file"
	case others > 1:
		detail = fmt.Sprintf("and %d other files", others)
	}
	return subject, detail
}

// maxBrief is the length of a subject in characters.
const maxBrief = 200

// brief returns text on one line, cut, without control characters and marks that change the direction of text.
func brief(text string) string {
	var b strings.Builder
	n, space := 0, false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = n > 0
			continue
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			continue
		case n >= maxBrief:
			return b.String() + "…"
		}
		if space {
			b.WriteByte(' ')
			space, n = false, n+1
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}
