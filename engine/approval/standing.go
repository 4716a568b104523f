package approval

import (
	"context"
	"encoding/json"
	"slices"

	"lashd/engine/change"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Component is the name under which the store keeps a session's Standing.
const Component = "approvals"

// Standing holds the answers that a person gave in a session and that hold there. It belongs to the session's actor.
type Standing []Answer

// Remember adds what a person allowed beyond the one call to the change that answers a decision, in a session that works in a directory.
// asked tells whether somebody has asked for the session: then policies of others count there, too.
func (s *Standing) Remember(c *change.Change, d protocol.Decision, given *protocol.DecisionAnswer, cwd string, asked bool) {
	if d.Kind != protocol.DecisionApproval {
		return
	}
	answer := answerAbout(d.Call.Name, d.Call.Args, d.Varying, d.Places)
	always := given.Choice == protocol.ChooseAllowAlways
	if always {
		c.Approve = []persistence.Approval{{Cwd: cwd, Tool: answer.Tool, Subject: string(answer.Args), By: given.By}}
	}
	// The askers of the session may be of other workspaces, for which a person has said nothing.
	if given.Choice == protocol.ChooseAllowSession || always && asked {
		next := append(slices.Clip(*s), answer)
		c.Component = append(c.Component, persistence.Component{Name: Component, Body: encode(next)})
		c.Then(func() { *s = next })
	}
}

// Store is where answers are kept that hold for a workspace.
type Store interface {
	Approvals(ctx context.Context, cwd string) ([]persistence.Approval, error)
}

// Answers are the answers of a person that count for a call.
type Answers struct {
	session []Answer            // given in the session
	always  map[string][]Answer // given for a workspace, by its directory
}

// For returns the answers that count for policies: those given in the session, and those given for the workspaces of the policies.
func (s Standing) For(ctx context.Context, store Store, policies []Policy) (Answers, error) {
	a := Answers{session: s, always: map[string][]Answer{}}
	for _, p := range policies {
		if a.always[p.Cwd] != nil {
			continue
		}
		stored, err := store.Approvals(ctx, p.Cwd)
		if err != nil {
			return a, err
		}
		a.always[p.Cwd] = make([]Answer, len(stored))
		for i, known := range stored {
			a.always[p.Cwd][i] = Answer{known.Tool, protocol.Digest(known.Subject)}
		}
	}
	return a, nil
}

// to are the answers that hold for a policy.
func (a Answers) to(p Policy) []Answer {
	return append(slices.Clip(a.session), a.always[p.Cwd]...)
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}

// Answer is an answer of a person that holds beyond its call: for calls of the same tool with the same arguments, for as long as their
// paths lead where they led when the person was asked.
type Answer struct {
	Tool string          `json:"tool"`
	Args protocol.Digest `json:"args"` // of all arguments but those that may vary, and of where paths led
}

// answerAbout is what an answer about a call holds for: other arguments are another call, unless the tool says that they vary.
func answerAbout(name string, args json.RawMessage, varying, places []string) Answer {
	var known map[string]json.RawMessage
	if json.Unmarshal(args, &known) == nil { // otherwise it is no object, and nothing in it has a name
		for _, v := range varying {
			delete(known, v)
		}
		args = encode(known)
	}
	if len(places) > 0 {
		args = slices.Concat(args, encode(places))
	}
	return Answer{name, protocol.DigestOf(args)}
}
