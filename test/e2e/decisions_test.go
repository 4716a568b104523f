package e2e

import (
	"sync"
	"testing"

	"lashd/rpc/protocol"
)

func opened(e protocol.Event) bool   { return e.Type == protocol.EventDecisionOpened }
func resolved(e protocol.Event) bool { return e.Type == protocol.EventDecisionResolved }

// pair is two clients of one session in which a call waits for approval.
type pair struct {
	*world
	starter, other *peer
	turn           protocol.TurnID
	question       protocol.Decision
}

func newPair(t *testing.T) *pair {
	t.Helper()
	w := newWorld(t, "ask", runs, done)
	w.serve()
	p := &pair{world: w, starter: w.dial("cli_starter"), other: w.dial("cli_other")}
	id := p.starter.session(w.home)
	p.other.attach(id, 0)
	p.turn = p.starter.start(id, "go").TurnID
	p.question = *p.starter.event("the question", opened).Decision
	if seen := p.other.event("the question", opened).Decision; seen.ID != p.question.ID {
		t.Errorf("one client was asked %s, the other %s", p.question.ID, seen.ID)
	}
	return p
}

func (p *pair) respond(by *peer, choice protocol.DecisionChoice) (protocol.DecisionRespondResult, error) {
	return try[protocol.DecisionRespondResult](by, "decision/respond", protocol.DecisionRespondParams{
		DecisionID: p.question.ID, Choice: choice, ArgsHash: p.question.ArgsHash,
	})
}

// told checks that both clients receive this answer and no other.
func (p *pair) told(want protocol.DecisionAnswer) {
	p.t.Helper()
	for _, c := range []*peer{p.starter, p.other} {
		c.completed(p.turn)
		n := 0
		for _, e := range c.log(p.question.SessionID) {
			if !resolved(e.Event) {
				continue
			}
			n++
			if a := e.Decision.Answer; a.Choice != want.Choice || a.By != want.By {
				p.t.Errorf("%s received an answer by %s: %s; want %s with %s", c.init.ClientID, a.By, a.Choice, want.By, want.Choice)
			}
		}
		if n != 1 {
			p.t.Errorf("%s received %d answers", c.init.ClientID, n)
		}
	}
}

func TestAnotherClientAnswers(t *testing.T) {
	p := newPair(t)
	r, err := p.respond(p.other, protocol.ChooseAllowOnce)
	if err != nil || !r.Won {
		t.Fatalf("the answer returned %+v, %v", r, err)
	}
	p.told(protocol.DecisionAnswer{Choice: protocol.ChooseAllowOnce, By: "cli_other"})
	if p.size("ran") != 1 {
		t.Errorf("the allowed command ran %d times", p.size("ran"))
	}
}

func TestTwoAnswersAtOnce(t *testing.T) {
	p := newPair(t)
	answers := []struct {
		by     *peer
		choice protocol.DecisionChoice
		result protocol.DecisionRespondResult
	}{{by: p.starter, choice: protocol.ChooseReject}, {by: p.other, choice: protocol.ChooseAllowOnce}}
	var both sync.WaitGroup
	for i := range answers {
		a := &answers[i]
		both.Go(func() {
			var err error
			if a.result, err = p.respond(a.by, a.choice); err != nil {
				t.Errorf("%s: %v", a.choice, err)
			}
		})
	}
	both.Wait()
	winner, loser := answers[0], answers[1]
	if loser.result.Won {
		winner, loser = loser, winner
	}
	if !winner.result.Won || loser.result.Won {
		t.Fatalf("reliability/P9 answers that won: %t and %t", answers[0].result.Won, answers[1].result.Won)
	}
	want := protocol.DecisionAnswer{Choice: winner.choice, By: string(winner.by.init.ClientID)}
	if got := loser.result.Answer; got.Choice != want.Choice || got.By != want.By {
		t.Errorf("reliability/P9 the losing client got %+v; the winning answer is %+v", got, want)
	}
	p.told(want)
	ran := map[protocol.DecisionChoice]int{protocol.ChooseReject: 0, protocol.ChooseAllowOnce: 1}[winner.choice]
	if p.size("ran") != ran {
		t.Errorf("reliability/P9 %s won, and the command ran %d times", winner.choice, p.size("ran"))
	}
}
