// Package layout reads the Markdown files of Claude Code's layout: skills, commands and agents. Each has a front matter in YAML and a
// body. Package manifest finds the files and calls the functions of this package. They do no I/O and are safe for concurrent use.
package layout

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind says how a prompt is offered.
type Kind string

const (
	Skill   Kind = "skill"   // to people and, by its description, to the model
	Command Kind = "command" // to people
)

// Prompt is a skill or a command: a text for the model that people can send by a slash command.
type Prompt struct {
	Kind        Kind     `json:"kind"`
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Hint        string   `json:"argumentHint,omitempty"` // what people type after the name
	Arguments   []string `json:"arguments,omitempty"`    // names of the arguments
	File        string   `json:"file"`                   // path in the plugin
	HideModel   bool     `json:"hideFromModel,omitempty"`
	HidePeople  bool     `json:"hideFromPeople,omitempty"`
	Body        string   `json:"-"` // the text without its front matter
}

// Dir returns the directory of a skill, in the plugin.
func (p *Prompt) Dir() string { return path.Dir(p.File) }

// Agent is a kind of subagent.
type Agent struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tools       []string `json:"tools,omitempty"`        // tools it has, by the names of Claude Code or lashd; nil: those of the session that starts it
	Without     []string `json:"withoutTools,omitempty"` // tools it does not have
	Model       string   `json:"model,omitempty"`        // "": that of the session that starts it
	File        string   `json:"file"`
	Body        string   `json:"-"` // its instructions
}

// Limits of what is read.
const (
	MaxFiles       = 256  // skills, commands and agents of a directory, each
	maxDescription = 1536 // bytes
)

// Unserved is a field that has no effect.
type Unserved struct {
	Field  string
	Effect string // what lashd does instead
}

// unservedPrompt are the known fields of skills and commands that lashd does not use.
var unservedPrompt = []Unserved{
	{"agent", "the text runs in the session itself"},
	{"allowed-tools", "lashd decides about each call by its own rules and mode"},
	{"context", "the text runs in the session itself"},
	{"disallowed-tools", "the session keeps its tools"},
	{"effort", "the session keeps its effort"},
	{"hooks", "put hooks into hooks/hooks.json"},
	{"model", "the session keeps its model"},
	{"paths", "the skill is always offered"},
	{"shell", "the model runs commands with its own tool"},
}

// unservedAgent are the known fields of agents that lashd does not use.
var unservedAgent = []Unserved{
	{"background", "the agent that starts it decides whether to wait"},
	{"effort", "it has the effort of the session that starts it"},
	{"hooks", "put hooks into hooks/hooks.json"},
	{"initialPrompt", "its task is what it was started with"},
	{"isolation", "it works in the directory of the session that starts it"},
	{"maxTurns", "it has the budget of the session that starts it"},
	{"mcpServers", "it has the servers of the session that starts it"},
	{"memory", "it keeps no notes"},
	{"permissionMode", "it has the approval settings of the session that starts it"},
	{"skills", "it reads skills when it needs them"},
}

// frontMatter has the fields of skills, commands and agents that lashd uses.
type frontMatter struct {
	Name        text  `yaml:"name"`
	Description text  `yaml:"description"`
	When        text  `yaml:"when_to_use"`
	Hint        text  `yaml:"argument-hint"`
	Arguments   words `yaml:"arguments"`
	HideModel   bool  `yaml:"disable-model-invocation"`
	People      *bool `yaml:"user-invocable"`
	Tools       words `yaml:"tools"`
	Without     words `yaml:"disallowedTools"`
	Model       text  `yaml:"model"`
}

// named is the form of a name. A colon separates the plugin from the name, so it must not be part of one.
var named = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// ParsePrompt reads a skill or a command. Its name is that of its directory or file, unless the front matter of a skill has a valid
// one. unserved lists the fields without effect.
func ParsePrompt(kind Kind, file string, data []byte) (p *Prompt, unserved []Unserved, err error) {
	f, body, unserved, err := parse(data, unservedPrompt)
	if err != nil {
		return nil, nil, err
	}
	p = &Prompt{Kind: kind, File: file, Hint: oneLine(string(f.Hint), 200), Arguments: f.Arguments, Body: body}
	p.Name = strings.TrimSuffix(path.Base(file), ".md")
	if kind == Skill {
		p.Name = path.Base(path.Dir(file))
		if named.MatchString(string(f.Name)) {
			p.Name = string(f.Name)
		}
		p.HideModel, p.HidePeople = f.HideModel, f.People != nil && !*f.People
	}
	p.Description = oneLine(cmp.Or(strings.TrimSpace(string(f.Description)+" "+string(f.When)), heading(body)), maxDescription)
	return p, unserved, checkName(p.Name)
}

// ParseAgent reads a kind of subagent. Its name is that of its front matter, or of its file.
func ParseAgent(file string, data []byte) (a *Agent, unserved []Unserved, err error) {
	f, body, unserved, err := parse(data, unservedAgent)
	if err != nil {
		return nil, nil, err
	}
	a = &Agent{
		Name: cmp.Or(string(f.Name), strings.TrimSuffix(path.Base(file), ".md")), Description: oneLine(string(f.Description), maxDescription),
		Tools: f.Tools, Without: f.Without, Model: string(f.Model), File: file, Body: body,
	}
	if a.Model == "inherit" {
		a.Model = ""
	}
	return a, append(unserved, unservedTools(slices.Concat(f.Tools, f.Without))...), checkName(a.Name)
}

// parse reads a file, and returns those of the fields that are in known.
func parse(data []byte, known []Unserved) (f frontMatter, body string, unserved []Unserved, err error) {
	if !utf8.Valid(data) {
		return f, "", nil, fmt.Errorf("is not UTF-8 text")
	}
	front, rest := split(data)
	fields, err := decode(front, &f)
	if err != nil {
		return f, "", nil, fmt.Errorf("has a front matter that is not valid: %w", err)
	}
	for _, u := range known {
		if slices.Contains(fields, u.Field) {
			unserved = append(unserved, u)
		}
	}
	return f, strings.TrimSpace(string(rest)), unserved, nil
}

// checkName returns an error for a name that cannot be a slash command.
func checkName(name string) error {
	if !named.MatchString(name) {
		return fmt.Errorf("has the name %q, which is not valid: it must be letters, digits, '.', '_' and '-', at most 64, the first a letter or a digit", name)
	}
	return nil
}

// heading returns the first line of a body without its marks. It describes a file without a description.
func heading(body string) string {
	line, _, _ := strings.Cut(body, "\n")
	return strings.TrimSpace(strings.TrimLeft(line, "# "))
}

// oneLine joins the lines of a text and cuts it after n bytes, at the end of a character.
func oneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
