package command

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// edited is the change of a file in the format of other agents: the whole content, one replacement,
// or several.
type edited struct {
	Path    string `json:"file_path"`
	Content string `json:"content,omitempty"` // of a new file
	*replaced
	Edits []replaced `json:"edits,omitempty"`
}

// replaced is the replacement of one text by another.
type replaced struct {
	Old string `json:"old_string"`
	New string `json:"new_string"`
	All bool   `json:"replace_all,omitempty"`
}

// one returns a call in the format of an agent that presents it as a single call. Hooks cannot
// change it, because back is not set.
func one(tool string, input any) (format, error) {
	data, err := encode(input)
	return format{{tool: tool, input: data}}, err
}

// change holds the arguments of lashd's write and edit tools.
type change struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Old     string `json:"old"`
	New     string `json:"new"`
	All     bool   `json:"replaceAll"`
}

// change decodes the arguments of write and edit.
func (c call) change() (ch change, err error) {
	err = json.Unmarshal(c.args, &ch)
	return ch, err
}

// at returns an absolute path, as other agents use it.
func (c call) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(c.cwd, path)
}

// editAsEdits presents an edit as a MultiEdit call with one replacement.
func editAsEdits(c call) (format, error) {
	ch, err := c.change()
	if err != nil {
		return nil, err
	}
	return one("MultiEdit", edited{Path: c.at(ch.Path), Edits: []replaced{{ch.Old, ch.New, ch.All}}})
}

// writeAsPatch presents a write as a patch that adds the file, as the patch tool of Codex expects
// it.
func writeAsPatch(c call) (format, error) {
	ch, err := c.change()
	if err != nil {
		return nil, err
	}
	return asPatch("*** Add File: "+ch.Path+"\n"+prefixed("+", ch.Content), nil)
}

// editAsPatch presents an edit as a patch with one hunk. The hunk has no context lines.
func editAsPatch(c call) (format, error) {
	ch, err := c.change()
	return asPatch("*** Update File: "+ch.Path+"\n@@\n"+prefixed("-", ch.Old)+prefixed("+", ch.New), err)
}

// asPatch returns an apply_patch call with one section. It passes an earlier error on.
func asPatch(section string, err error) (format, error) {
	if err != nil {
		return nil, err
	}
	return one("apply_patch", map[string]string{"command": "*** Begin Patch\n" + section + "*** End Patch"})
}

// prefixed puts mark before each line of a text.
func prefixed(mark, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(mark + strings.TrimSuffix(line, "\n") + "\n")
	}
	return b.String()
}

// Arguments of lashd's plan tool, and of the same tool of other agents.
type (
	planned struct {
		Steps []step `json:"steps"`
	}
	step struct {
		Text   string `json:"text"`
		Status string `json:"status"`
	}
	todos struct {
		Todos []todo `json:"todos"`
	}
	todo struct {
		Content string `json:"content"`
		Status  string `json:"status"`
		Active  string `json:"activeForm"`
	}
)

// planAsTodos presents a plan as a list of todos. A hook may change the list, which todosAsPlan
// converts back.
func planAsTodos(c call) (format, error) {
	var p planned
	if err := json.Unmarshal(c.args, &p); err != nil {
		return nil, err
	}
	list := todos{Todos: []todo{}}
	for _, s := range p.Steps {
		list.Todos = append(list.Todos, todo{s.Text, strings.Replace(s.Status, "inProgress", "in_progress", 1), s.Text})
	}
	t, err := one("TodoWrite", list)
	if err == nil {
		t[0].back = todosAsPlan
	}
	return t, err
}

// todosAsPlan converts changed todos back to a plan.
func todosAsPlan(updated json.RawMessage) (json.RawMessage, error) {
	var list todos
	if err := json.Unmarshal(updated, &list); err != nil {
		return nil, err
	}
	p := planned{Steps: []step{}}
	for _, t := range list.Todos {
		p.Steps = append(p.Steps, step{t.Content, strings.Replace(t.Status, "in_progress", "inProgress", 1)})
	}
	return json.Marshal(p)
}
