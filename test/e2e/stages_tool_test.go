package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

type grepArgs struct {
	Pattern string `json:"pattern"`
}

// toolStages are the stages in which a repeatable tool runs.
var toolStages = []stage{
	{
		name:    "while a tool reads files",
		steps:   []fakemodel.Step{step(uses("grep", grepArgs{"(a|aa)*[bc]{20}z"})), done},
		prepare: (*scene).muchToRead,
		reached: func(s *scene) { s.peer.event("the call", callStarted) },
		killed:  (*scene).littleToRead,
		calls:   2, tools: 1,
	},
	{
		name:    "while a client has a call of a tool that may be repeated",
		steps:   []fakemodel.Step{step(uses("look", struct{}{})), done},
		prepare: (*scene).offerTool,
		reached: func(s *scene) { s.call = s.requested() },
		after:   (*scene).answerTool,
		calls:   2, tools: 1,
	},
}

func callStarted(e protocol.Event) bool {
	return e.Type == protocol.EventItemStarted && e.Item.Kind == protocol.ItemToolCall
}

// muchToRead gives the search work for some seconds.
func (s *scene) muchToRead() {
	line := strings.Repeat("a", 99) + "\n"
	for i := range 4 {
		s.write(filepath.Join(s.work, fmt.Sprint("big", i)), strings.Repeat(line, 90_000))
	}
}

// littleToRead checks that the search was killed while it ran, and makes its repetition quick.
func (s *scene) littleToRead() {
	if n := number(s.t, s.database("ro"), "SELECT count(*) FROM effects WHERE kind = 'call' AND state = 'started'"); n != 1 {
		s.t.Errorf("%d calls are started and not finished: the daemon was not killed in one", n)
	}
	for i := range 4 {
		s.write(filepath.Join(s.work, fmt.Sprint("big", i)), strings.Repeat("b", 20)+"z\n")
	}
}

// offerTool has the client provide a read-only tool.
func (s *scene) offerTool() {
	tool := protocol.ClientTool{Replay: protocol.ReplaySafe}
	tool.Name, tool.Description, tool.Input = "look", "Look.", []byte(`{"type":"object"}`)
	ask[protocol.SessionOverlayResult](s.peer, "session/setOverlay", protocol.SessionOverlayParams{SessionID: s.session, Tools: []protocol.ClientTool{tool}})
}

// requested waits until the client is asked to run its tool.
func (s *scene) requested() protocol.CallID {
	e := s.peer.event("the request", func(e protocol.Event) bool { return e.Type == protocol.EventToolRequested })
	return e.ToolCall.CallID
}

// answerTool answers the request of the next daemon, which must be for the same call.
func (s *scene) answerTool() {
	if again := s.requested(); again != s.call {
		s.t.Errorf("reliability/P8 call %s was repeated as %s", s.call, again)
	}
	seen := protocol.Succeed("a tree")
	r := ask[protocol.ToolRespondResult](s.peer, "tool/respond", protocol.ToolRespondParams{SessionID: s.session, CallID: s.call, Output: &seen})
	if !r.Accepted {
		s.t.Error("reliability/P8 the answer was not accepted")
	}
}

// outcomeStages are the stages in which a command runs that must not be repeated: one for each answer
// about its outcome.
func outcomeStages() []stage {
	answers := []struct {
		choice protocol.DecisionChoice
		ran    int
		result protocol.OutputStatus
	}{
		{protocol.ChooseTellModel, 1, protocol.OutputUnknown},
		{protocol.ChooseHappened, 1, protocol.OutputSuccess},
		{protocol.ChooseNotHappened, 1, protocol.OutputFailure},
		{protocol.ChooseRunAgain, 2, protocol.OutputSuccess},
	}
	var stages []stage
	for _, a := range answers {
		stages = append(stages, stage{
			name:    "while a command runs, and the answer is " + string(a.choice),
			steps:   []fakemodel.Step{step(shell("echo $$ > pid; " + once + "; test -e go || exec sleep 600")), done},
			reached: func(s *scene) { eventually(s.t, "the command runs", s.ran) },
			after:   func(s *scene) { s.judge(a.choice) },
			calls:   2, tools: 1, ran: a.ran, result: a.result,
		})
	}
	return stages
}

func (s *scene) ran() error {
	if s.size("ran") == 0 {
		return os.ErrNotExist
	}
	return nil
}

// judge answers the question about the outcome of the command.
func (s *scene) judge(choice protocol.DecisionChoice) {
	d := s.decision(protocol.DecisionOutcome)
	all := []protocol.DecisionChoice{protocol.ChooseTellModel, protocol.ChooseHappened, protocol.ChooseNotHappened, protocol.ChooseRunAgain}
	if !slices.Equal(d.Choices, all) || d.Default != protocol.ChooseTellModel {
		s.t.Errorf("reliability/P9 choices %v, default %s", d.Choices, d.Default)
	}
	if runtime.GOOS == "linux" {
		s.orphanGone()
	}
	s.write(filepath.Join(s.work, "go"), "")
	s.answer(d, choice)
}

// orphanGone checks that the command of the killed daemon has ended.
func (s *scene) orphanGone() {
	pid, err := os.ReadFile(filepath.Join(s.work, "pid"))
	if err != nil {
		s.t.Fatal(err)
	}
	left, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "cmdline"))
	if err == nil && len(left) > 0 { // the command line of a zombie is empty
		s.t.Errorf("reliability/I12 the command of the killed daemon is running: %q", left)
	}
}

// decision returns the only open decision, which the client must have received.
func (s *scene) decision(kind protocol.DecisionKind) protocol.Decision {
	s.t.Helper()
	s.peer.until("the question", func([]told) bool {
		return len(ask[protocol.DecisionListResult](s.peer, "decision/list", protocol.DecisionListParams{SessionID: s.session}).Data) > 0
	})
	open := ask[protocol.DecisionListResult](s.peer, "decision/list", protocol.DecisionListParams{SessionID: s.session}).Data
	if len(open) != 1 || open[0].Kind != kind {
		s.t.Fatalf("reliability/P28 open decisions: %+v", open)
	}
	return open[0]
}

func (s *scene) answer(d protocol.Decision, choice protocol.DecisionChoice) {
	s.t.Helper()
	r := ask[protocol.DecisionRespondResult](s.peer, "decision/respond", protocol.DecisionRespondParams{DecisionID: d.ID, Choice: choice, ArgsHash: d.ArgsHash})
	if !r.Won || r.Answer.Choice != choice {
		s.t.Errorf("reliability/P9 the answer %s returned %+v", choice, r)
	}
}
