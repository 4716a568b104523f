package audit

import (
	"lashd/engine/authority"
	"lashd/engine/change"
	"lashd/engine/plugin"
	"lashd/rpc/protocol"
)

// Programs are the programs of plugins that a loaded session has records of. The session's actor owns it; the zero value has none.
type Programs struct{ recorded map[plugin.Program]bool }

// Add adds the records of programs that run outside a sandbox for a session that has one. It is called when the session gets its
// plugins, which starts their programs at the latest when they are used. Each program has one record for as long as the session is loaded.
func (p *Programs) Add(c *change.Change, row *protocol.Session, plugins *plugin.Session) {
	for _, program := range plugins.Outside(authority.SandboxOf(row.Config.Approval, row.Authority.Ceiling)) {
		if p.recorded[program] {
			continue
		}
		c.TellOf(protocol.Event{Type: protocol.EventAuditRecorded, Audit: &protocol.AuditRecord{
			Kind: protocol.AuditOutside, Tool: program.Tool, Subject: program.Command, Why: protocol.ApprovalReason{By: protocol.DecidedByTrust, Text: program.Why},
		}})
		c.Then(func() {
			if p.recorded == nil {
				p.recorded = map[plugin.Program]bool{}
			}
			p.recorded[program] = true
		})
	}
}

// AddCell adds the record of a code cell that a client runs, if it runs outside a sandbox: its executor is a program without one.
func AddCell(c *change.Change, id protocol.CallID, source string, plugins *plugin.Session) {
	if plugins.ExecutorConfined() || plugins.ExecutorSandboxed() {
		return
	}
	c.TellOf(protocol.Event{Type: protocol.EventAuditRecorded, Audit: &protocol.AuditRecord{
		Kind: protocol.AuditOutside, CallID: id, Tool: "code", Subject: source[:min(len(source), mostSource)],
		Why: protocol.ApprovalReason{By: protocol.DecidedByClient, Text: "A client ran the code itself."},
	}})
}

// mostSource limits the source of a cell in its record, in bytes.
const mostSource = 2000
