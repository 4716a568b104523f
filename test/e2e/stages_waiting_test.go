package e2e

import (
	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// waitingStages are the stages in which the turn, or the next one, waits for an answer or for its
// place in the queue.
func waitingStages() []stage {
	lost := step(stalls, says("lost"))
	return []stage{
		approvalStage(protocol.ChooseAllowOnce, 1, protocol.OutputSuccess),
		approvalStage(protocol.ChooseReject, 0, protocol.OutputFailure),
		{
			name:    "while an input is queued",
			steps:   []fakemodel.Step{lost, done, step(says("more is done"))},
			reached: (*scene).queueMore,
			after:   (*scene).inOrder,
			calls:   3, lost: 1,
		},
		{
			name:    "while an input is on its way into the turn",
			steps:   []fakemodel.Step{lost, step(says("done?")), done},
			reached: (*scene).steer,
			after:   (*scene).steeredOnce,
			calls:   3, lost: 1,
		},
	}
}

func approvalStage(choice protocol.DecisionChoice, ran int, result protocol.OutputStatus) stage {
	var asked protocol.Decision
	return stage{
		name:     "while a call waits for a person, who then says " + string(choice),
		approval: "ask",
		steps:    []fakemodel.Step{runs, done},
		reached: func(s *scene) {
			e := s.peer.event("the question", func(e protocol.Event) bool { return e.Type == protocol.EventDecisionOpened })
			asked = *e.Decision
		},
		after: func(s *scene) {
			d := s.decision(protocol.DecisionApproval)
			if d.ID != asked.ID || d.ArgsHash != asked.ArgsHash || d.DeadlineMs != asked.DeadlineMs {
				s.t.Errorf("reliability/P28 the question was %+v and is now %+v", asked, d)
			}
			s.answer(d, choice)
		},
		calls: 2, tools: 1, ran: ran, result: result,
	}
}

// queueMore queues another input.
func (s *scene) queueMore() {
	s.asked(1)
	r := s.peer.start(s.session, "more")
	if r.State != protocol.TurnQueued {
		s.t.Errorf("the second input's turn is %s", r.State)
	}
	s.more = append(s.more, r.TurnID)
}

// inOrder checks that the turns end in the order in which they were accepted.
func (s *scene) inOrder() {
	first, second := s.peer.completed(s.turn), s.peer.completed(s.more[0])
	if first.Seq > second.Seq || second.Outcome.Text != "more is done" {
		s.t.Errorf("reliability/P5 the first turn ended with seq %d, the second with %d, saying %q", first.Seq, second.Seq, second.Outcome.Text)
	}
}

const steered = "and mind the gap"

func (s *scene) steer() {
	s.asked(1)
	ask[protocol.TurnSteerResult](s.peer, "turn/steer", protocol.TurnSteerParams{TurnID: s.turn, Input: text(steered)})
}

// steeredOnce checks that the model reads the input exactly once.
func (s *scene) steeredOnce() {
	s.asked(3)
	shown := 0
	for _, m := range s.model.Requests()[2].Chat.Messages {
		if string(m.Content) == steered {
			shown++
		}
	}
	if shown != 1 {
		s.t.Errorf("reliability/P1 the model reads the steered input %d times", shown)
	}
}
