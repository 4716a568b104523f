package rulebook

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pelletier/go-toml/v2"

	"lashd/engine/param"
	"lashd/rpc/protocol"
)

// Name is the file of a workspace that has rules, relative to the workspace.
const Name = ".agents/rules.toml"

// maxFile is the largest file with rules, in bytes.
const maxFile = 256 << 10

// file has the rules of a workspace: those in its file, as of stamp, and those in the store.
type file struct {
	stamp    stamp
	rules    []protocol.ApprovalRule
	problems []string // what is wrong with the file
	broken   bool     // nothing in the file counts: lashd asks about every call
	stored   []protocol.ApprovalRule
}

// stamp identifies a version of a file. The zero value is that of a missing file.
type stamp struct {
	modified time.Time
	size     int64
	mode     fs.FileMode
}

// owner completes the sentence "The rule … of OWNER decides".
func (f *file) owner() string {
	if f.broken {
		return "the file " + Name + ", which has an error,"
	}
	return "the file " + Name
}

// fileLocked returns the rules of a workspace. It reads the file again after a change.
func (b *Book) fileLocked(cwd string) *file {
	name, now := filepath.Join(cwd, Name), stamp{}
	if info, err := os.Lstat(name); err == nil {
		now = stamp{info.ModTime(), info.Size(), info.Mode()}
	}
	if f := b.files[cwd]; f != nil && f.stamp == now {
		return f
	}
	f := &file{stamp: now, stored: rulesOf(b.stored[cwd])}
	if now != (stamp{}) {
		f.read(name)
	}
	b.files[cwd] = f
	return f
}

// read reads the rules from the file. A rule that allows is an error and asks instead: a workspace may only tighten what its user
// allows. If the file cannot be read, lashd asks about every call.
func (f *file) read(name string) {
	rules, err := parse(name, f.stamp)
	if err != nil {
		f.broken, f.problems = true, []string{fmt.Sprintf("%s: %v. lashd asks about every call until this is corrected.", Name, err)}
		f.rules = []protocol.ApprovalRule{{Tool: "*", Action: protocol.ApproveAsk}}
		return
	}
	for _, r := range rules {
		if r.Action == protocol.ApproveAllow {
			f.problems = append(f.problems, fmt.Sprintf("%s: the rule %q is treated as ask, because a file of the workspace can only ask or deny.", Name, r))
			r.Action = protocol.ApproveAsk
		}
		f.rules = append(f.rules, r)
	}
}

// parse reads the file. Its errors do not quote the file.
func parse(name string, s stamp) ([]protocol.ApprovalRule, error) {
	switch {
	case !s.mode.IsRegular():
		return nil, errors.New("this is not a regular file")
	case s.size > maxFile:
		return nil, fmt.Errorf("the file has more than %d bytes", maxFile)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, errors.New("the file cannot be read")
	}
	var doc struct {
		Rules []Entry `toml:"rules"`
	}
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&doc); err != nil {
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := at.Position()
			return nil, fmt.Errorf("line %d is not valid", line)
		}
		return nil, errors.New("it has keys other than tool, command, path, host and action of [[rules]]")
	}
	var all []protocol.ApprovalRule
	for i, e := range doc.Rules {
		if wrong := param.CheckRule("", e.Rule()); wrong != nil {
			return nil, fmt.Errorf("rule %d: %w", i+1, wrong)
		}
		all = append(all, e.Rule())
	}
	return all, nil
}

// Entry is a rule as [[rules]] of a TOML file has it.
type Entry struct {
	Tool    string                `toml:"tool"`                   // tool name, or a pattern with *; all tools if missing
	Command string                `toml:"command"`                // first words of the commands
	Path    string                `toml:"path"`                   // file, directory or pattern such as **/.env
	Host    string                `toml:"host"`                   // host, or *.domain for all hosts below it
	Action  protocol.ApprovalMode `toml:"action" required:"true"` // allow, ask or deny
}

// Rule returns the entry as a rule.
func (e Entry) Rule() protocol.ApprovalRule {
	return protocol.ApprovalRule{Tool: e.Tool, Command: e.Command, Path: e.Path, Host: e.Host, Action: e.Action}
}
