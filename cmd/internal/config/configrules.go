package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2/unstable"

	"lashd/engine/param"
	"lashd/rpc/protocol"
)

// ruleConfig is an approval rule of the user. It has at most one of command, path and host.
type ruleConfig struct {
	Action  protocol.ApprovalMode `toml:"action" required:"true"` // allow, ask or deny
	Tool    string                `toml:"tool"`                   // tool name, or a pattern with *; without it, all tools that have such a command, path or host
	Command string                `toml:"command"`                // first words of the commands
	Path    string                `toml:"path"`                   // file, directory, or pattern such as **/.env; relative to the workspace
	Host    string                `toml:"host"`                   // host, or *.domain for all hosts below it
}

// rule returns the setting as a rule.
func (c ruleConfig) rule() protocol.ApprovalRule {
	return protocol.ApprovalRule{Tool: c.Tool, Command: c.Command, Path: c.Path, Host: c.Host, Action: c.Action}
}

// approvalRules returns the rules of the user.
func (c Config) approvalRules() (all []protocol.ApprovalRule) {
	for _, r := range c.Rules {
		all = append(all, r.rule())
	}
	return all
}

// badRules finds rules that name nothing or too much. A wrong action is found before.
func (c Config) badRules() (bad []badValue) {
	for i, r := range c.approvalRules() {
		wrong, ok := errors.AsType[*param.Error](param.CheckRule("", r))
		if ok && wrong.Pointer != "/action" {
			bad = append(bad, badValue{[]string{"rules", strings.TrimPrefix(wrong.Pointer, "/")}, i, "rules: the rule " + wrong.Reason})
		}
	}
	return bad
}

// liveRules are the rules of config.toml as it is now. It implements rulebook.UserRules and is safe for concurrent use.
type liveRules struct {
	home string // data directory

	mu      sync.Mutex
	seen    os.FileInfo // of the file when it was last read; nil: there was none
	rules   []protocol.ApprovalRule
	version int
	problem string
}

// NewLiveRules returns the rules of a configuration that was just read.
func NewLiveRules(home string) *liveRules { return &liveRules{home: home, version: -1} }

// Rules implements rulebook.UserRules.
func (l *liveRules) Rules() ([]protocol.ApprovalRule, int, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := os.Stat(File(l.home))
	if err != nil {
		info = nil
	}
	if l.version < 0 || !sameFile(info, l.seen) {
		l.seen = info
		l.version++
		l.readLocked()
	}
	return l.rules, l.version, l.problem
}

// sameFile reports whether two looks at a file show the same content, as far as that is known without reading it.
func sameFile(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// readLocked reads the file. With an error in it, the rules stay as they were.
func (l *liveRules) readLocked() {
	data, err := os.ReadFile(File(l.home))
	if errors.Is(err, os.ErrNotExist) {
		data, err = nil, nil
	}
	var c Config
	if err == nil {
		c, err = Parse(data)
	}
	if l.problem = ""; err != nil {
		l.problem = fmt.Sprintf("config.toml: %v. The rules from before the error apply.", err)
		return
	}
	l.rules = c.approvalRules()
}

// Add implements rulebook.UserRules.
func (l *liveRules) Add(ctx context.Context, r protocol.ApprovalRule) error {
	return l.edit(ctx, func(data []byte) ([]byte, error) { return withRule(data, r), nil })
}

// Remove implements rulebook.UserRules.
func (l *liveRules) Remove(ctx context.Context, r protocol.ApprovalRule) error {
	return l.edit(ctx, func(data []byte) ([]byte, error) { return withoutRule(data, r) })
}

// edit changes the file, unless the result has an error.
func (l *liveRules) edit(ctx context.Context, change func([]byte) ([]byte, error)) error {
	return Edit(ctx, l.home, func(e *Editor) error {
		data, err := e.Read()
		if err != nil {
			return err
		}
		if data, err = change(data); err != nil {
			return err
		}
		if _, err := Parse(data); err != nil {
			return fmt.Errorf("config.toml was not changed, because it has an error: %w", err)
		}
		return e.Write(data)
	})
}

// withRule returns a config.toml with one more rule at its end; all other bytes stay.
func withRule(data []byte, r protocol.ApprovalRule) []byte {
	out := bytes.NewBuffer(slices.Clone(data))
	if len(data) > 0 && data[len(data)-1] != '\n' {
		out.WriteByte('\n')
	}
	if len(data) > 0 {
		out.WriteByte('\n')
	}
	out.WriteString("[[rules]]\n")
	for _, part := range [][2]string{{"action", string(r.Action)}, {"tool", r.Tool}, {"command", r.Command}, {"path", r.Path}, {"host", r.Host}} {
		if part[1] != "" {
			out.WriteString(part[0] + " = " + tomlString(part[1]) + "\n")
		}
	}
	return out.Bytes()
}

// tomlString returns a text as a string of TOML.
func tomlString(text string) string {
	if !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == '\'' || c == 0x7f }) {
		return "'" + text + "'"
	}
	quoted := strconv.QuoteToGraphic(text)
	return strings.NewReplacer(`\x`, `\u00`, `\a`, `\u0007`, `\v`, `\u000b`).Replace(quoted)
}

// errNoSuchRule means that the file changed since the rules were listed.
var errNoSuchRule = errors.New("config.toml does not have this rule; list the rules again")

// withoutRule returns a config.toml without a rule; all other bytes stay, except comments inside the table of the rule.
func withoutRule(data []byte, r protocol.ApprovalRule) ([]byte, error) {
	c, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("config.toml was not changed, because it has an error: %w", err)
	}
	nth := slices.Index(c.approvalRules(), r)
	if nth < 0 {
		return nil, errNoSuchRule
	}
	from, to := tableRange(data, "rules", nth)
	if to == 0 {
		return nil, errors.New("config.toml has its rules in one line; remove the rule there")
	}
	for from > 1 && data[from-1] == '\n' && data[from-2] == '\n' {
		from-- // the blank lines before the table
	}
	return slices.Concat(data[:from], data[to:]), nil
}

// tableRange returns where the nth table of an array begins and ends, in whole lines. to is 0 if there is no such table. Comments after
// its last key belong to what follows.
func tableRange(data []byte, name string, nth int) (from, to int) {
	var p unstable.Parser
	p.Reset(data)
	inside := false
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.KeyValue {
			if inside {
				value := e.Value()
				to = max(to, afterLine(data, int(value.Raw.Offset+value.Raw.Length)))
			}
			continue
		}
		if inside {
			return from, to
		}
		it := e.Key()
		it.Next()
		if _, key := keyOf(&p, e); e.Kind == unstable.ArrayTable && slices.Equal(key, []string{name}) {
			if inside = nth == 0; inside {
				at := int(it.Node().Raw.Offset)
				from, to = bytes.LastIndexByte(data[:at], '\n')+1, afterLine(data, at)
			}
			nth--
		}
	}
	return from, to
}

// afterLine returns the index after the line that at is in.
func afterLine(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(data)
}
