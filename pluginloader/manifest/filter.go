package manifest

import (
	"encoding/json"

	"lashd/engine/param"
	"lashd/internal/strictjson"
	"lashd/pluginloader/layout"
	"lashd/rpc/protocol"
)

// Filter restricts a command hook to calls that a permission of Claude Code is about. It is translated like a permission that asks, so it
// may cover more calls than the text says, but not fewer.
type Filter struct {
	Permission string                  `json:"permission"` // as written
	Tools      []string                `json:"tools"`      // lashd's tools that the permission names
	Rules      []protocol.ApprovalRule `json:"rules"`      // a call matches if one of them is about it
}

// String returns the filter for people; empty without one.
func (f *Filter) String() string {
	if f == nil {
		return ""
	}
	return "if " + f.Permission
}

// permissionSyntax is a tool, optionally with a limit in parentheses.
var permissionSyntax = lazy(`(?s)^[A-Za-z_][A-Za-z0-9_-]*(__\*)?(\(.*\))?$`)

// filter parses the "if" of a hook. A text that lashd cannot use gives a warning, and the hook then has no filter: it runs for every call,
// because it may be there to refuse some of them.
func (s *source) filter(here string, e Event, raw json.RawMessage) *Filter {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if e.Matcher != "tool" {
		s.warn(here, `"if" has no effect on %s: the hook always runs`, e.Name)
		return nil
	}
	entry, isText := strictjson.Text(raw)
	f := newFilter(entry)
	switch {
	case !isText || !permissionSyntax().MatchString(entry):
		s.warn(here, `"if" is not a permission such as "Bash(git push *)", so the hook runs for all calls of its matcher`)
		return nil
	case f == nil:
		s.warn(here, "lashd cannot compare calls with %s, so the hook runs for all calls of its matcher", strictjson.Quote(entry))
	case broader(entry):
		s.warn(here, `"if" covers all calls of the rule %s`, ruleText(f.Rules[0]))
	}
	return f
}

// newFilter translates a permission; nil if it is about no tool of lashd.
func newFilter(entry string) *Filter {
	name, _ := layout.Call(entry)
	f := &Filter{Permission: entry, Tools: layout.Tools(name)}
	for _, r := range permission(entry) {
		r.Action = protocol.ApproveAsk
		if param.CheckRule("", r) != nil {
			return nil
		}
		f.Rules = append(f.Rules, r)
	}
	if len(f.Rules) == 0 {
		return nil
	}
	return f
}
