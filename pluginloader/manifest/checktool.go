package manifest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// tools checks the rules that involve several fields of a tool, and that tool names are unique.
func (s *source) tools(at string, tools []Tool) {
	seen := map[string]bool{}
	for i, t := range tools {
		here := fmt.Sprint(at, "/", i)
		if seen[t.Name] {
			s.at(here+"/name", "another tool has the name %q", t.Name)
		}
		seen[t.Name] = true
		if len(t.Command) == 0 {
			s.processTool(here, t)
		} else {
			s.commandTool(here, t)
		}
	}
}

// processTool checks a tool that the process runs.
func (s *source) processTool(here string, t Tool) {
	for _, part := range []struct {
		name  string
		there bool
	}{{"parameters", len(t.Parameters) > 0}, {"shell", t.Shell}, {"in", t.In != ""}, {"env", len(t.Env) > 0}, {"passEnv", len(t.PassEnv) > 0}} {
		if part.there {
			s.atKey(here+"/"+part.name, `%q is only for a tool with a "command"`, part.name)
		}
	}
	s.schema(here+"/input", t.Input)
	s.schema(here+"/output", t.Output)
}

// commandTool checks a tool that runs a command.
func (s *source) commandTool(here string, t Tool) {
	if len(t.Input) > 0 {
		s.atKey(here+"/input", `a tool with a "command" has "parameters" instead of "input"`)
	}
	if len(t.Output) > 0 {
		s.atKey(here+"/output", `"output" is only for a tool of the process`)
	}
	s.parameters(here+"/parameters", t.Parameters)
	if t.Shell {
		if len(t.Command) > 1 {
			s.at(here+"/command/1", "a shell takes one script: the command must have one element")
		}
		return
	}
	s.program(here+"/command/0", t.Command[0])
	s.placeholders(here, t)
}

// placeholders checks that every {name} in the command is a parameter, and that every parameter is
// used.
func (s *source) placeholders(here string, t Tool) {
	used := map[string]bool{}
	for i, element := range t.Command {
		s.substitutions(fmt.Sprint(here, "/command/", i), element, substYes)
		pieces := Pieces(element)
		for _, p := range pieces {
			if p.Parameter != "" {
				used[p.Parameter] = true
				s.placeholder(fmt.Sprint(here, "/command/", i), p.Parameter, len(pieces) == 1, t)
			}
		}
		if i == 0 && len(used) > 0 {
			s.at(here+"/command/0", "the program cannot be a parameter")
		}
	}
	for i, p := range t.Parameters {
		if !used[p.Name] {
			s.at(fmt.Sprint(here, "/parameters/", i, "/name"), "the command does not use {%s}", p.Name)
		}
	}
}

// placeholder checks one {name}. alone means that it is a whole element of the command.
func (s *source) placeholder(at, name string, alone bool, t Tool) {
	i := slices.IndexFunc(t.Parameters, func(p Parameter) bool { return p.Name == name })
	switch {
	case i < 0:
		s.at(at, "unknown parameter %q; for the literal text, write {{%s}}", name, name)
	case t.Parameters[i].Type == TypeArray && !alone:
		s.at(at, "{%s} is a list: it must be an element of its own", name)
	}
}

// parameters checks each parameter. Names must differ in more than case.
func (s *source) parameters(at string, parameters []Parameter) {
	seen := map[string]bool{}
	for i, p := range parameters {
		here := fmt.Sprint(at, "/", i)
		if seen[strings.ToLower(p.Name)] {
			s.at(here+"/name", "another parameter has the name %q", p.Name)
		}
		seen[strings.ToLower(p.Name)] = true
		s.parameter(here, p)
	}
}

// parameter checks that the constraints of a parameter suit its type.
func (s *source) parameter(here string, p Parameter) {
	texts := p.Type == TypeString || p.Type == TypeArray
	if _, err := regexp.Compile(p.Pattern); err != nil {
		s.at(here+"/pattern", "%v", err)
	}
	for _, part := range []struct {
		name  string
		there bool
	}{{"enum", len(p.Enum) > 0}, {"pattern", p.Pattern != ""}, {"dash", p.Dash}} {
		if part.there && !texts {
			s.atKey(here+"/"+part.name, "%q is only for a string or an array", part.name)
		}
	}
	if p.Min != nil && p.Max != nil && *p.Min > *p.Max {
		s.at(here+"/max", "the maximum is less than the minimum")
	}
	if p.Type == TypeBoolean && (p.Min != nil || p.Max != nil) {
		s.at(here, `a boolean has neither "min" nor "max"`)
	}
	s.standard(here, p)
}

// standard checks the default of a parameter.
func (s *source) standard(here string, p Parameter) {
	if len(p.Default) == 0 {
		return
	}
	if p.Required {
		s.atKey(here+"/default", "a required parameter cannot have a default")
	}
	if !p.Type.holds(p.Default) {
		s.at(here+"/default", "the default is not of the type %s", p.Type)
	}
}

// holds reports whether a JSON value has the type. A type that is unknown has been reported
// already.
func (t ParameterType) holds(raw json.RawMessage) bool {
	if string(raw) == "null" {
		return false
	}
	into := map[ParameterType]any{TypeString: new(string), TypeInteger: new(int64), TypeNumber: new(float64), TypeBoolean: new(bool), TypeArray: new([]string)}[t]
	return into == nil || json.Unmarshal(raw, into) == nil
}
