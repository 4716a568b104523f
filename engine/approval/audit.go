package approval

import (
	"strings"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// mostSubject limits the subject of an audit record, in bytes.
const mostSubject = 2000

// Started returns the audit record of a call that is about to run, without its id; nil if it needs none. answer is nil if lashd
// did not ask. A call needs one if a program starts outside a sandbox, or if something else than its harmlessness allows it.
func (q *Request) Started(v Verdict, answer *protocol.DecisionAnswer) *protocol.AuditRecord {
	harmless := v.Why.By == protocol.DecidedBySandbox || v.Why.By == protocol.DecidedByMode && Reads(q.Kind)
	switch {
	case q.outside():
		return q.record(protocol.AuditOutside, v.Why, answer)
	case answer != nil || v.Why.By != "" && !harmless:
		r := q.record(protocol.AuditAllowed, v.Why, answer)
		r.Granted = q.Hosts()
		return r
	}
	return nil
}

// Refused returns the audit record of a call that did not run.
func (q *Request) Refused(v Verdict, answer *protocol.DecisionAnswer) *protocol.AuditRecord {
	return q.record(protocol.AuditRefused, v.Why, answer)
}

// RefusedInside returns the audit record of a call to which the sandbox refused something.
func (q *Request) RefusedInside(r *protocol.SandboxRefusal) *protocol.AuditRecord {
	record := q.record(protocol.AuditRefused, because(protocol.DecidedBySandbox, r.What), nil)
	record.Hosts = r.Hosts
	return record
}

// RefusedTask returns the audit record of a background command to which the sandbox refused something, without its ids and its tool.
func RefusedTask(s *protocol.TaskShell, r *protocol.SandboxRefusal) *protocol.AuditRecord {
	return &protocol.AuditRecord{
		Kind: protocol.AuditRefused, Subject: short(s.Script), Dir: s.Workdir, Sandbox: r.Mode, Hosts: r.Hosts, Why: because(protocol.DecidedBySandbox, r.What),
	}
}

// Declared returns the audit record of a monitor of a plugin that is about to start outside a sandbox.
func Declared(m *protocol.Monitor, s *protocol.TaskShell) *protocol.AuditRecord {
	return &protocol.AuditRecord{
		Kind: protocol.AuditOutside, TaskID: m.TaskID, Tool: "monitor", Subject: short(s.Script), Dir: s.Workdir,
		Why: because(protocol.DecidedByTrust, "The plugin "+m.Plugin+", which a person trusts, declares the monitor "+m.Spec.ID+"."),
	}
}

// outside reports whether the call starts programs outside a sandbox, or gives input to one that may run there.
func (q *Request) outside() bool {
	return q.Programs == tool.ProgramsOutside || q.Programs == tool.ProgramsInside && q.Sandbox() == "" && q.Call.command() != nil
}

// record returns a record about the call.
func (q *Request) record(kind protocol.AuditKind, why protocol.ApprovalReason, answer *protocol.DecisionAnswer) *protocol.AuditRecord {
	r := &protocol.AuditRecord{Kind: kind, Tool: q.Call.entry.Manifest.Name, Why: why, Subject: short(q.Call.subject())}
	if c := q.Call.command(); c != nil {
		r.Dir = c.Dir
	}
	if q.Programs == tool.ProgramsInside {
		r.Sandbox = q.Sandbox()
	}
	if answer != nil {
		r.Choice, r.By = answer.Choice, answer.By
	}
	return r
}

// short cuts a subject at mostSubject.
func short(s string) string {
	if len(s) <= mostSubject {
		return s
	}
	return strings.ToValidUTF8(s[:mostSubject-3], "") + "…"
}

// subject returns the command of the call, or its paths and hosts.
func (s *Subjects) subject() string {
	if c := s.command(); c != nil {
		return c.Command
	}
	var all []string
	for _, about := range s.all {
		if name := about.Path + about.Host; name != "" { // a subject has one of them
			all = append(all, name)
		}
	}
	return strings.Join(all, ", ")
}
