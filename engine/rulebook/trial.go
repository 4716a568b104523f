package rulebook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"lashd/engine/approval"
	"lashd/engine/authority"
	"lashd/engine/param"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// kinds are the tools that ship with lashd, as far as a call can be judged without a session.
var kinds = map[string]protocol.ToolKind{
	"shell": protocol.ToolKindExecute, "start_command": protocol.ToolKindExecute, "start_monitor": protocol.ToolKindExecute,
	"read": protocol.ToolKindRead, "list": protocol.ToolKindRead, "glob": protocol.ToolKindSearch, "grep": protocol.ToolKindSearch,
	"write": protocol.ToolKindEdit, "edit": protocol.ToolKindEdit, "patch": protocol.ToolKindEdit,
}

// ErrOtherTool means that only a session has the tool.
var ErrOtherTool = errors.New("only lashd's own tools can be judged without a session; name the session of the tool")

// judgedTool provides a tool that never runs.
type judgedTool struct{ tool protocol.ToolManifest }

// Tools implements tool.Provider.
func (t judgedTool) Tools() []tool.Tool {
	return []tool.Tool{{Manifest: t.tool, Contract: protocol.ToolContract{Replay: protocol.ReplayNever}}}
}

// Execute implements tool.Provider.
func (judgedTool) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{}, errors.New("this tool is only judged")
}

// Subjects implements tool.Subjecter for the arguments of lashd's own tools.
func (judgedTool) Subjects(_ string, args json.RawMessage) (all []tool.Subject) {
	var a struct {
		Command, Workdir, Cwd, Path string
		Hosts                       []string
	}
	if json.Unmarshal(args, &a) != nil {
		return nil
	}
	if a.Command != "" {
		all = append(all, tool.Subject{Command: a.Command, Dir: a.Workdir + a.Cwd})
	}
	if a.Path != "" {
		all = append(all, tool.Subject{Path: a.Path})
	}
	for _, h := range a.Hosts {
		all = append(all, tool.Subject{Host: h})
	}
	return all
}

// trial returns the request for a call of one of lashd's own tools in a new session in cwd. confines means that the system has a
// sandbox.
func (b *Book) trial(cwd string, a protocol.ApprovalConfig, confines bool, name string, args json.RawMessage) (*approval.Request, error) {
	kind, ok := kinds[name]
	if !ok {
		return nil, ErrOtherTool
	}
	m := protocol.ToolManifest{Name: name, Kind: kind}
	r := tool.NewRegistry(nil, nil, protocol.ToolState{})
	if err := r.Upsert("trial", judgedTool{m}); err != nil {
		return nil, err
	}
	p := approval.Policy{Policy: protocol.Policy{Approval: a, Cwd: cwd}, Own: true}
	p.Rules = b.For(cwd, p.Owner(), a.Rules)
	q := &approval.Request{Call: approval.SubjectsOf(cwd, r.Same(m), args), Kind: kind, Ships: true, Policies: []approval.Policy{p}, Ceiling: protocol.Ceiling{}}
	if kind == protocol.ToolKindExecute {
		q.Programs = tool.ProgramsOutside
		var asked struct{ Outside bool }
		if json.Unmarshal(args, &asked) == nil && !asked.Outside && confines && authority.SandboxOf(a).Confines() {
			q.Programs = tool.ProgramsInside
		}
	}
	return q, nil
}

// callOf returns the tool and the arguments of a call to judge.
func callOf(p *protocol.RuleTestParams) (name string, args json.RawMessage, err error) {
	args = p.Args
	switch {
	case p.Command != "" && p.Path != "" || len(p.Args) > 0 && p.Command+p.Path != "":
		return "", nil, param.Bad("/args", "must be the only one of args, command and path")
	case p.Command != "":
		args = json.RawMessage(encode(map[string]string{"command": p.Command}))
	case p.Path != "":
		args = json.RawMessage(encode(map[string]string{"path": p.Path}))
		if p.Tool == "" {
			return "", nil, param.Bad("/tool", "is missing: name the tool that gets the path, such as read or write")
		}
	case len(p.Args) == 0:
		return "", nil, param.Bad("/args", "is missing: give args, command or path")
	}
	return cmp.Or(p.Tool, "shell"), args, nil
}

// result judges a request for a client.
func result(q *approval.Request, answers approval.Answers) *protocol.RuleTestResult {
	v := q.Judge(answers)
	r := &protocol.RuleTestResult{Decision: v.Mode, Reason: v.Why, Commands: q.Deciding(v, answers)}
	if q.Programs == tool.ProgramsInside {
		r.Sandbox = q.Sandbox()
	}
	return r
}
