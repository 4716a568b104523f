package rulebook

import (
	"cmp"

	"lashd/engine/approval"
	"lashd/rpc/protocol"
)

// Policies returns all policies that a call must satisfy, each with its compiled rules. The first is own, that of the session. session
// is the ceiling of the session, and inputs that of the inputs of the turn; both may be nil. Policies of inputs are Late: standing
// answers of the session do not satisfy them. A policy without a directory applies in that of the session.
func (b *Book) Policies(own protocol.Policy, session, inputs *protocol.Ceiling) []approval.Policy {
	all := []approval.Policy{{Policy: own, Own: true}}
	if session != nil {
		for _, p := range session.Policies {
			all = append(all, approval.Policy{Policy: p})
		}
	}
	if inputs != nil {
		for _, p := range inputs.Policies {
			all = append(all, approval.Policy{Policy: p, Late: true})
		}
	}
	for i := range all {
		all[i].Rules = b.For(cmp.Or(all[i].Cwd, own.Cwd), all[i].Owner(), all[i].Approval.Rules)
	}
	return all
}
