package approval

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"lashd/engine/change"
	"lashd/internal/termtext"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

// Component is the name of a session's Standing in the store.
const Component = "approvals"

// Standing holds a person's answers that stay valid in a session. Only the actor of the session uses it.
type Standing []Answer

// Remember adds a standing answer to the change that answers the decision d, if the person chose one. cwd is the
// session's workspace. asked means that the session was created on another one's request; then other policies apply in
// it too, so an answer for the workspace is also stored for the session.
func (s *Standing) Remember(c *change.Change, d protocol.Decision, given *protocol.DecisionAnswer, cwd string, asked bool) {
	if d.Kind != protocol.DecisionApproval {
		return
	}
	answer := answerAbout(d.Call.Name, d.Call.Args, d.Varying, d.Places)
	answer.About = termtext.OneLine(termtext.Args(d.Call.Args), 200)
	if given.Width != nil {
		answer = Answer{Rule: d.Detail.Widths[*given.Width].Rule}
	}
	always := given.Choice == protocol.ChooseAllowAlways
	if always {
		c.Approve = []persistence.Approval{answer.stored(cwd, given.By)}
	}
	// Askers may come from other workspaces, for which the person has not answered.
	if given.Choice == protocol.ChooseAllowSession || always && asked {
		next := append(slices.Clip(*s), answer)
		c.Component = append(c.Component, persistence.Component{Name: Component, Body: encode(next)})
		c.Then(func() { *s = next })
	}
}

// Forget removes the answers for which is returns true, in the change c. It returns false if there are none.
func (s *Standing) Forget(c *change.Change, is func(Answer) bool) bool {
	next := slices.DeleteFunc(slices.Clone(*s), is)
	if len(next) == len(*s) {
		return false
	}
	c.Component = append(c.Component, persistence.Component{Name: Component, Body: encode(next)})
	c.Then(func() { *s = next })
	return true
}

// Store reads the answers that apply to a workspace.
type Store interface {
	Approvals(ctx context.Context, cwd ...string) ([]persistence.Approval, error)
}

// Answers are the standing answers that apply to a call.
type Answers struct {
	session []Answer            // given in the session
	always  map[string][]Answer // given for a workspace, by its directory
}

// For returns the answers for a set of policies: those given in the session and those given for the workspaces of the
// policies.
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
		a.always[p.Cwd] = []Answer{}
		for _, known := range stored {
			if known.Tool != "" { // rules without a tool are among those of the policy
				a.always[p.Cwd] = append(a.always[p.Cwd], StoredAnswer(known))
			}
		}
	}
	return a, nil
}

// to returns the answers that apply to a policy.
func (a Answers) to(p Policy) []Answer {
	return append(slices.Clip(a.session), a.always[p.Cwd]...)
}

// encode returns the JSON of one of our own types, which cannot fail.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("encode our own type: " + err.Error())
	}
	return b
}

// Answer is an answer of a person that applies beyond its call: to calls of the same tool with the same arguments, as
// long as their paths lead to the same places as when the person answered.
type Answer struct {
	Tool string          `json:"tool"`
	Args protocol.Digest `json:"args"` // of the arguments except varying ones, and of the places
	// About has the beginning of the arguments of the call that the person saw, so that people can tell answers apart. It decides nothing.
	About string `json:"about,omitempty"`
	// Rule is the width of an answer that covers more than one call; then there is neither a tool nor a digest.
	Rule *protocol.ApprovalRule `json:"rule,omitempty"`
}

// covers reports whether an answer is about the same call as another one.
func (a Answer) covers(b Answer) bool { return a.Rule == nil && a.Tool == b.Tool && a.Args == b.Args }

// StoredAnswer returns the answer that a row with a tool has.
func StoredAnswer(row persistence.Approval) Answer {
	args, about, _ := strings.Cut(row.Subject, " ")
	return Answer{Tool: row.Tool, Args: protocol.Digest(args), About: about}
}

// stored returns the row of an answer that is given for a workspace. The row of a rule has no tool.
func (a Answer) stored(cwd, by string) persistence.Approval {
	subject := string(a.Args) + " " + a.About
	if a.Rule != nil {
		subject = string(encode(a.Rule))
	}
	return persistence.Approval{Cwd: cwd, Tool: a.Tool, Subject: subject, By: by}
}

// standingRules returns the widths of answers as rules; nil if there are none.
func standingRules(dir string, answers []Answer) *Rules {
	var rules []protocol.ApprovalRule
	for _, a := range answers {
		if a.Rule != nil {
			rules = append(rules, *a.Rule)
		}
	}
	return Compile(dir, protocol.LevelSession, "the session", rules)
}

// answerAbout returns the key of an answer about a call. Arguments that the tool declares as varying are left out.
func answerAbout(name string, args json.RawMessage, varying, places []string) Answer {
	var known map[string]json.RawMessage
	if json.Unmarshal(args, &known) == nil { // otherwise it is not an object and has no named arguments
		for _, v := range varying {
			delete(known, v)
		}
		args = encode(known)
	}
	if len(places) > 0 {
		args = slices.Concat(args, encode(places))
	}
	return Answer{Tool: name, Args: protocol.DigestOf(args)}
}
