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
		s.otherType(here+"/type", e, h.Type)
		return CommandHook{}, false
	}
	if strings.TrimSpace(h.Command) == "" {
		s.at(here, `a hook of the type "command" needs a "command"`)
	}
	switch outside := h.Timeout < 0 || h.Timeout > maxTimeout; {
	case outside && s.newer:
		s.warn(here+"/timeout", "the timeout is not between 0 and %d seconds, so lashd uses its own", maxTimeout)
		h.Timeout = 0
	case outside:
		s.at(here+"/timeout", "the timeout must be between 0 and %d seconds", maxTimeout)
	}
	if h.OnError == OnErrorDeny && !e.Slot.refuses() && e.Slot != "" {
		s.at(here+"/onError", "a hook of %s cannot deny anything; use allow or fail", e.Name)
	}
	return s.commandHook(here, e, h), e.Slot != ""
}

// otherType reports a handler that lashd does not run. In settings, a type that no known agent has is no mistake: it would switch off the
// rules and the other hooks of the file. People must know that calls which the handler would refuse are not refused.
func (s *source) otherType(pointer string, e Event, name string) {
	if !s.newer && !slices.Contains(handlerTypes, name) {
		s.word(pointer, name, append(slices.Clone(handlerTypes), "command"))
		return
	}
	lost := ""
	if e.Slot == SlotBeforeToolCall {
		lost = "; calls that it would refuse are not refused"
	}
	s.warn(pointer, "lashd does not run hooks of the type %s%s", strictjson.Quote(name), lost)
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
