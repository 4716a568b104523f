package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"lashd/internal/strictjson"
	"lashd/pluginloader/layout"
)

// CommandHook is a command that reads an event as JSON on stdin and answers with JSON on stdout, in
// the formats of other agents. The command package runs it.
type CommandHook struct {
	Event     string   `json:"event"`               // event name in the format of other agents
	Slot      Slot     `json:"slot"`                // hook of lashd that calls it
	Matcher   string   `json:"matcher,omitempty"`   // restricts the hook, for example to some tools; "": no restriction
	If        *Filter  `json:"if,omitempty"`        // restricts the hook further, to some calls; nil: no restriction
	Command   string   `json:"command"`             // a command line for sh; with Args, a program
	Args      []string `json:"args,omitempty"`      // if not nil: arguments of the program, which then runs without a shell
	PassEnv   []string `json:"passEnv,omitempty"`   // names of variables that command and arguments use
	TimeoutMs int64    `json:"timeoutMs,omitempty"` // 0: the default of the command package
	OnError   OnError  `json:"onError"`             // effect of a failure
	File      string   `json:"file"`                // file and line that define the hook, for messages
	Line      int      `json:"line"`
}

// hooksFile is a file in the format of hooks/hooks.json.
type hooksFile struct {
	Schema      string                 `json:"$schema,omitempty" max:"1024"`
	Description string                 `json:"description,omitempty" max:"4096"`
	Hooks       map[string][]hookGroup `json:"hooks" max:"64" each:"256"`
}

// hookGroup is a list of hooks with a common matcher.
type hookGroup struct {
	Matcher string        `json:"matcher,omitempty" max:"1024"`
	Hooks   []hookHandler `json:"hooks" max:"64"`
}

// hookHandler is one entry of a group. lashd runs the type command only. It accepts the fields of
// other types, and warns about fields with the tag slot:"none".
type hookHandler struct {
	Type    string          `json:"type"`
	Command string          `json:"command,omitempty" max:"8192" subst:"own"`
	Args    []string        `json:"args,omitempty" max:"256" each:"8192" subst:"own"`
	Timeout float64         `json:"timeout,omitempty"` // seconds
	OnError OnError         `json:"onError,omitempty"` // only in lashd
	If      json.RawMessage `json:"if,omitempty" max:"8192"`
	Status  string          `json:"statusMessage,omitempty" max:"1024"`
	Name    string          `json:"name,omitempty" max:"256"`
	About   string          `json:"description,omitempty" max:"4096"`

	Async       json.RawMessage `json:"async,omitempty" slot:"none"`
	AsyncRewake json.RawMessage `json:"asyncRewake,omitempty" slot:"none"`
	Once        json.RawMessage `json:"once,omitempty" slot:"none"`
	Shell       json.RawMessage `json:"shell,omitempty" slot:"none"`

	Prompt  json.RawMessage `json:"prompt,omitempty"`
	Model   json.RawMessage `json:"model,omitempty"`
	URL     json.RawMessage `json:"url,omitempty"`
	Headers json.RawMessage `json:"headers,omitempty"`
	EnvVars json.RawMessage `json:"allowedEnvVars,omitempty"`
	Server  json.RawMessage `json:"server,omitempty"`
	Tool    json.RawMessage `json:"tool,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
}

// handlerTypes are the types of other agents that lashd does not run.
var handlerTypes = []string{"agent", "http", "mcp_tool", "prompt"}

// maxTimeout is the longest timeout of a hook in seconds.
const maxTimeout = 3600

// ParseHooks reads a file in the format of hooks/hooks.json. Hooks of events that lashd does not
// support give warnings. With mistakes, the hooks are incomplete.
func ParseHooks(file string, data []byte) ([]CommandHook, Problems) {
	s := &source{file: file, data: data, foreign: true}
	if !s.fits() {
		return nil, s.problems()
	}
	return s.parseHooks(), s.problems()
}

// parseHooks reads the whole source as a hooks file.
func (s *source) parseHooks() []CommandHook {
	var f hooksFile
	if !s.decode(&f) {
		return nil
	}
	s.rules("", reflect.ValueOf(f))
	return s.events("/hooks", f.Hooks)
}

// parseEvents reads hooks that a manifest lists directly by event, without a file around them.
func (s *source) parseEvents() []CommandHook {
	var byName map[string][]hookGroup
	if !s.decode(&byName) {
		return nil
	}
	s.value("", reflect.ValueOf(byName), limits{max: 64, hasMax: true, each: 256})
	return s.events("", byName)
}

// events returns the hooks of all events, sorted by event name.
func (s *source) events(at string, byName map[string][]hookGroup) []CommandHook {
	var hooks []CommandHook
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		here := at + "/" + escape(name)
		e, known := eventNamed(name)
		if !known {
			s.unknownEvent(here, name)
			continue
		}
		if e.Slot == "" {
			s.warn(here, "lashd does not run hooks of the event %q", name)
		}
		for i, g := range byName[name] {
			hooks = append(hooks, s.group(fmt.Sprint(here, "/", i), e, g)...)
		}
	}
	return hooks
}

// unknownEvent reports an event that no known agent has, with the nearest known name. In settings, a new name is no mistake: it would switch
// off the rules and the other hooks of the file.
func (s *source) unknownEvent(here, name string) {
	if near := strictjson.Nearest(name, eventNames()); near != "" {
		s.atKey(here, "unknown event %s; did you mean %q?", strictjson.Quote(name), near)
		return
	}
	if s.newer {
		s.warn(here, "lashd does not know the event %s and does not run its hooks", strictjson.Quote(name))
		return
	}
	s.atKey(here, "unknown event %s; docs/other-agents.md lists the events", strictjson.Quote(name))
}

// group converts one group of hooks. A matcher without effect is dropped with a warning.
func (s *source) group(here string, e Event, g hookGroup) []CommandHook {
	switch {
	case g.Matcher == "" || g.Matcher == "*":
		g.Matcher = ""
	case e.Matcher == "" && e.Slot != "":
		s.warn(here+"/matcher", "the matcher has no effect on %s", e.Name)
		g.Matcher = ""
	default:
		g.Matcher = s.matcher(here+"/matcher", g.Matcher)
		if names := strings.FieldsFunc(g.Matcher, func(r rune) bool { return strings.ContainsRune("|, ", r) }); g.Matcher != "" && e.Matcher == "tool" && !slices.ContainsFunc(names, has) {
			s.warn(here+"/matcher", "lashd has no tool for %s, so it does not call these hooks", strictjson.Quote(g.Matcher))
		}
	}
	var hooks []CommandHook
	for i, h := range g.Hooks {
		if hook, ok := s.handler(fmt.Sprint(here, "/hooks/", i), e, h); ok {
			hook.Matcher = g.Matcher
			hooks = append(hooks, hook)
		}
	}
	return hooks
}

// has reports whether lashd may have a tool of this name.
func has(name string) bool { return len(layout.Tools(name)) > 0 }

// matcher checks a matcher: a regular expression, or names separated by |. In settings, the hooks of one that lashd cannot compile run
// always, because they may be there to refuse something.
func (s *source) matcher(pointer, text string) string {
	switch _, err := regexp.Compile(text); {
	case err != nil && s.newer:
		s.warn(pointer, "%v; expressions use RE2 syntax, without lookaround. The hooks always run", err)
		return ""
	case err != nil:
		s.at(pointer, "%v; expressions use RE2 syntax, without lookaround", err)
	}
	return text
}
