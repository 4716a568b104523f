package manifest

import (
	"slices"
	"strings"

	"lashd/internal/strictjson"
)

// handler checks one handler of an event. ok is true if it becomes a hook: lashd runs commands
// only, and only at events with a slot.
func (s *source) handler(here string, e Event, h hookHandler) (CommandHook, bool) {
	if h.Type != "command" {
		if slices.Contains(handlerTypes, h.Type) {
			s.warn(here+"/type", "lashd does not run hooks of the type %q", h.Type)
		} else {
			s.word(here+"/type", h.Type, append(slices.Clone(handlerTypes), "command"))
		}
		return CommandHook{}, false
	}
	if strings.TrimSpace(h.Command) == "" {
		s.at(here, `a hook of the type "command" needs a "command"`)
	}
	if h.Timeout < 0 || h.Timeout > maxTimeout {
		s.at(here+"/timeout", "the timeout must be between 0 and %d seconds", maxTimeout)
	}
	if h.OnError == OnErrorDeny && !e.Slot.refuses() && e.Slot != "" {
		s.at(here+"/onError", "a hook of %s cannot deny anything; use allow or fail", e.Name)
	}
	return s.commandHook(here, e, h), e.Slot != ""
}

// commandHook converts a handler to a hook. A failing hook is ignored, as in other agents, except
// before a tool call, where that would allow the call.
func (s *source) commandHook(here string, e Event, h hookHandler) CommandHook {
	_, at := strictjson.Find(s.data, here)
	line, _ := place(s.data, at)
	hook := CommandHook{Event: e.Name, Slot: e.Slot, If: s.filter(here+"/if", e, h.If), Command: h.Command, TimeoutMs: int64(h.Timeout * 1000), OnError: h.OnError, File: s.file, Line: line}
	if hook.OnError == "" {
		hook.OnError = OnErrorAllow
		if e.Slot == SlotBeforeToolCall {
			hook.OnError = OnErrorDeny
		}
	}
	if h.Args != nil {
		hook.Command, hook.PassEnv = s.put(h.Command, hook.PassEnv)
		hook.Args = make([]string, len(h.Args))
		for i, a := range h.Args {
			hook.Args[i], hook.PassEnv = s.put(a, hook.PassEnv)
		}
	}
	return hook
}

// put rewrites the variables of another agent to lashd's, and adds the names of those that come
// from the environment to names.
func (s *source) put(text string, names []string) (string, []string) {
	text, more := environment(text)
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return text, names
}
