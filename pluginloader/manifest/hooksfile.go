package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"lashd/internal/strictjson"
)

// CommandHook is a command that reads what it is asked about as JSON and answers with JSON, in the words of other agents.
type CommandHook struct {
	Event     string   `json:"event"`             // what it waits for, in the words of other agents
	Slot      Slot     `json:"slot"`              // where it is asked
	Matcher   string   `json:"matcher,omitempty"` // what it is asked about; "": everything
	Command   string   `json:"command"`           // a line for sh; with Args, a program
	Args      []string `json:"args,omitempty"`    // if not nil: the arguments of the program, without a shell
	PassEnv   []string `json:"passEnv,omitempty"` // names of variables that are put in in command and arguments
	TimeoutMs int64    `json:"timeoutMs,omitempty"`
	OnError   OnError  `json:"onError"`
	File      string   `json:"file"` // where it stands, for whoever has to look for it
	Line      int      `json:"line"`
}

// hooksFile is a hooks/hooks.json.
type hooksFile struct {
	Schema      string                 `json:"$schema,omitempty" max:"1024"`
	Description string                 `json:"description,omitempty" max:"4096"`
	Hooks       map[string][]hookGroup `json:"hooks" max:"64" each:"256"`
}

type hookGroup struct {
	Matcher string        `json:"matcher,omitempty" max:"1024"`
	Hooks   []hookHandler `json:"hooks" max:"64"`
}

// hookHandler is what is run. Command hooks are; other kinds, and what has the slot none, are only known.
type hookHandler struct {
	Type    string   `json:"type"`
	Command string   `json:"command,omitempty" max:"8192" subst:"own"`
	Args    []string `json:"args,omitempty" max:"256" each:"8192" subst:"own"`
	Timeout float64  `json:"timeout,omitempty"` // seconds
	OnError OnError  `json:"onError,omitempty"` // lashd's own
	Status  string   `json:"statusMessage,omitempty" max:"1024"`
	Name    string   `json:"name,omitempty" max:"256"`
	About   string   `json:"description,omitempty" max:"4096"`

	Async       json.RawMessage `json:"async,omitempty" slot:"none"`
	AsyncRewake json.RawMessage `json:"asyncRewake,omitempty" slot:"none"`
	If          json.RawMessage `json:"if,omitempty" slot:"none"`
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

// handlerTypes are the kinds of hooks that agents have, but commands.
var handlerTypes = []string{"agent", "http", "mcp_tool", "prompt"}

// maxTimeout is the most seconds that a hook may take.
const maxTimeout = 3600

// ParseHooks reads a file like hooks/hooks.json. Hooks of events that are asked nowhere are warnings.
func ParseHooks(file string, data []byte) ([]CommandHook, Problems) {
	s := &source{file: file, data: data, foreign: true}
	if !s.fits() {
		return nil, s.problems()
	}
	return s.parseHooks(), s.problems()
}

func (s *source) parseHooks() []CommandHook {
	var f hooksFile
	if !s.decode(&f) {
		return nil
	}
	s.rules("", reflect.ValueOf(f))
	return s.events("/hooks", f.Hooks)
}

// parseEvents reads hooks that stand in a manifest by the names of their events.
func (s *source) parseEvents() []CommandHook {
	var byName map[string][]hookGroup
	if !s.decode(&byName) {
		return nil
	}
	s.value("", reflect.ValueOf(byName), limits{max: 64, hasMax: true, each: 256})
	return s.events("", byName)
}

// events are the hooks of all events, in the order of their names.
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

func (s *source) unknownEvent(here, name string) {
	if near := strictjson.Nearest(name, eventNames()); near != "" {
		s.atKey(here, "unknown event %s; did you mean %q?", strictjson.Quote(name), near)
		return
	}
	s.atKey(here, "unknown event %s; docs/other-agents.md lists the events", strictjson.Quote(name))
}

func (s *source) group(here string, e Event, g hookGroup) []CommandHook {
	switch {
	case g.Matcher == "" || g.Matcher == "*":
		g.Matcher = ""
	case e.Matcher == "" && e.Slot != "":
		s.warn(here+"/matcher", "the matcher has no effect on %s", e.Name)
		g.Matcher = ""
	default:
		s.matcher(here+"/matcher", g.Matcher)
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

// matcher checks a regular expression, or names with | between them.
func (s *source) matcher(pointer, text string) {
	if _, err := regexp.Compile(text); err != nil {
		s.at(pointer, "%v; expressions use RE2 syntax, without lookaround", err)
	}
}
