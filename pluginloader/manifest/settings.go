package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"lashd/engine/param"
	"lashd/internal/strictjson"
	"lashd/pluginloader/layout"
	"lashd/rpc/protocol"
)

// settings are the parts of a settings.json that lashd uses.
type settings struct {
	Hooks       json.RawMessage `json:"hooks"`
	NoHooks     bool            `json:"disableAllHooks"`
	NoServers   []string        `json:"disabledMcpjsonServers"`
	Permissions permissions     `json:"permissions"`
}

// permissions are lists of rules such as Bash(git push:*). Those that allow have no effect: a file must not weaken what the user decides in
// lashd.
type permissions struct {
	Deny []string `json:"deny"`
	Ask  []string `json:"ask"`
}

// served are the fields of settings.json that have an effect, and those that need none.
var served = []string{"$schema", "hooks", "disableAllHooks", "disabledMcpjsonServers", "permissions", "permissions/deny", "permissions/ask"}

// settings reads the settings of a layout. A missing file has none.
func (l *loading) settings(name string) {
	if !l.exists(name) {
		return
	}
	data, ok := l.once(name, true)
	if !ok {
		return
	}
	var f settings
	if err := json.Unmarshal(data, &f); err != nil {
		l.fail(name, "is not valid: %v", err)
		return
	}
	if len(f.Hooks) > 0 && !f.NoHooks {
		l.inlineHooks(&source{file: name, data: alone(data, "/hooks"), foreign: true, newer: true})
	}
	l.disabled = append(l.disabled, f.NoServers...)
	l.permissions(name, f.Permissions)
	l.warnFields(name, data)
}

// permissions adds the rules of a file.
func (l *loading) permissions(name string, p permissions) {
	l.rules(name, p.Deny, protocol.ApproveDeny)
	l.rules(name, p.Ask, protocol.ApproveAsk)
}

// Permissions reads only the rules in the settings of the user's layout. They hold even if lashd cannot load the rest of it; what cannot be
// read has none.
func Permissions(root *os.Root) []protocol.ApprovalRule {
	l, name := newLoading(root), layout.Settings+".json"
	l.noLinks = true
	if !l.exists(name) {
		return nil
	}
	var f struct{ Permissions permissions }
	if data, ok := l.read(name, true); ok && json.Unmarshal(data, &f) == nil {
		l.permissions(name, f.Permissions)
	}
	return l.plugin.Rules
}

// warnFields warns once about all fields of settings that have no effect.
func (l *loading) warnFields(name string, data []byte) {
	var f map[string]json.RawMessage
	var p struct {
		Permissions map[string]json.RawMessage `json:"permissions"`
	}
	if json.Unmarshal(data, &f) != nil || json.Unmarshal(data, &p) != nil {
		return
	}
	fields := slices.Collect(maps.Keys(f))
	for key := range p.Permissions {
		fields = append(fields, "permissions/"+key)
	}
	slices.Sort(fields)
	fields = slices.DeleteFunc(fields, func(key string) bool { return slices.Contains(served, key) })
	if len(fields) == 0 {
		return
	}
	for i := range fields {
		fields[i] = strictjson.Quote(strings.ReplaceAll(fields[i], "/", "."))
	}
	l.warn(name, "these have no effect in lashd: %s", strings.Join(fields[:min(len(fields), 40)], ", "))
}

// warn records a warning that concerns a file as a whole.
func (l *loading) warn(file, format string, args ...any) {
	l.found = append(l.found, Problem{File: file, Message: fmt.Sprintf(format, args...), Warning: true})
}

// maxRules is the number of permissions of a file that lashd uses. Beyond it the file is a mistake, because a rule that denies must not be
// dropped.
const maxRules = 1000

// rules adds permissions as rules of lashd.
func (l *loading) rules(file string, entries []string, action protocol.ApprovalMode) {
	if len(entries) > maxRules {
		l.fail(file, "has more than %d permissions that %s", maxRules, action)
		return
	}
	for _, entry := range entries {
		rules := permission(entry)
		if len(rules) == 0 {
			l.warn(file, "the permission %s is about no tool of lashd", strictjson.Quote(entry))
		}
		if len(rules) > 0 && broader(entry) {
			l.warn(file, "the permission %s covers all calls of the rule %s", strictjson.Quote(entry), ruleText(rules[0]))
		}
		for _, r := range rules {
			r.Action = action
			if err := param.CheckRule("", r); err != nil {
				l.fail(file, "the permission %s: %v", strictjson.Quote(entry), err)
				return
			}
			l.plugin.Rules = append(l.plugin.Rules, r)
		}
	}
}

// permission translates a permission of Claude Code. Where lashd has no such rule, the result covers more calls: it only tightens.
func permission(entry string) (rules []protocol.ApprovalRule) {
	name, limit := layout.Call(entry)
	switch {
	case strings.HasPrefix(name, "mcp__"):
		if strings.Count(name, "__") == 1 {
			name += "__*"
		}
		return []protocol.ApprovalRule{{Tool: name}}
	case name == "WebFetch":
		if host, is := strings.CutPrefix(limit, "domain:"); is && host != "" {
			return []protocol.ApprovalRule{{Host: host}}
		}
		return nil
	case name == "Bash" && firstWords(limit) != "":
		return []protocol.ApprovalRule{{Command: firstWords(limit)}}
	case name == "Read" && limit != "" && limit != "*":
		return []protocol.ApprovalRule{{Path: pathOf(limit)}}
	}
	own := layout.Tools(name)
	if name == "Edit" || name == "Write" {
		own = []string{"write", "edit", "patch"}
	}
	for _, tool := range own {
		r := protocol.ApprovalRule{Tool: tool}
		if (name == "Edit" || name == "Write") && limit != "" && limit != "*" {
			r.Path = pathOf(limit)
		}
		rules = append(rules, r)
	}
	return rules
}

// broader reports whether a limit of a permission, or its part after a wildcard, is lost in translation.
func broader(entry string) bool {
	name, limit := layout.Call(entry)
	switch name {
	case "Bash":
		before, after, _ := strings.Cut(strings.ReplaceAll(limit, ":*", "*"), "*")
		return strings.TrimSpace(after) != "" || before == "" && limit != "" && limit != "*"
	case "Read", "Edit", "Write", "WebFetch":
		return false
	}
	return limit != "" && limit != "*"
}

// ruleText returns what a translated rule covers, for people.
func ruleText(r protocol.ApprovalRule) string {
	if r.Command != "" {
		return "command " + r.Command
	}
	return "tool " + r.Tool
}

// firstWords returns the words of a command pattern before its first wildcard. A rule of lashd covers all commands that begin with them.
func firstWords(pattern string) string {
	pattern, _ = strings.CutSuffix(pattern, ":*")
	before, _, _ := strings.Cut(pattern, "*")
	return strings.TrimSpace(before)
}

// pathOf translates a path pattern in the format of gitignore. A single slash begins in the directory of the layout, two in the root directory.
func pathOf(pattern string) string {
	switch rest, absolute := strings.CutPrefix(pattern, "//"); {
	case absolute:
		return "/" + rest
	case strings.HasPrefix(pattern, "~/"):
		return pattern
	case !strings.Contains(strings.TrimSuffix(pattern, "/"), "/") && pattern != ".":
		return "**/" + pattern
	}
	return path.Clean(strings.TrimPrefix(pattern, "/"))
}
