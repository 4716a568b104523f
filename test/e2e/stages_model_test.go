package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lashd/test/fakemodel"
)

// modelStages are the stages around model calls.
var modelStages = []stage{
	{
		name:    "accepted, and the model was not reached",
		steps:   []fakemodel.Step{done},
		prepare: func(s *scene) { s.door.close() },
		reached: func(s *scene) { s.knocked() },
		calls:   1,
	},
	{
		name:    "the model has not answered yet",
		steps:   []fakemodel.Step{step(stalls, says("lost")), done},
		reached: func(s *scene) { s.asked(1) },
		calls:   2, lost: 1,
	},
	{
		name:    "in the middle of the stream",
		steps:   []fakemodel.Step{step(says("not "), says("all "), stalls, says("of it")), done},
		reached: func(s *scene) { s.peer.streamed("not all ") },
		calls:   2, lost: 1,
	},
	{
		name:    "the stream has ended, and no tool was started",
		steps:   []fakemodel.Step{step(says("I run it."), stalls, shell(once)), runs, done},
		reached: (*scene).beforeDispatch,
		killed:  func(s *scene) { s.unlock() },
		calls:   3, lost: 1, ran: 1, tools: 1,
	},
	{
		name:    "between the result of a tool and the next call of the model",
		steps:   []fakemodel.Step{step(stalls, shell(once)), done},
		reached: (*scene).betweenCalls,
		calls:   2, ran: 1, tools: 1,
	},
	{
		name:    "in the second call of the model",
		steps:   []fakemodel.Step{runs, step(says("half"), stalls), done},
		reached: func(s *scene) { s.peer.streamed("I run it.half") },
		calls:   3, lost: 1, ran: 1, tools: 1,
	},
}

// beforeDispatch lets the reply end while nothing can be committed, up to the moment at which the
// daemon would start its calls.
func (s *scene) beforeDispatch() {
	s.peer.streamed("I run it.")
	s.unlock = s.locked()
	s.model.Release()
	eventually(s.t, "the batch has begun", func() error {
		trace, err := os.ReadFile(filepath.Join(s.dir, "trace.jsonl"))
		if err == nil && !strings.Contains(string(trace), `"kind":"tools"`) {
			err = fmt.Errorf("not in the trace of %d bytes", len(trace))
		}
		return err
	})
	if n := s.size("ran"); n != 0 {
		s.t.Errorf("reliability/P7 the command ran before its start was committed")
	}
}

// betweenCalls shuts the door after the first call. The second call begins only when the result is
// stored.
func (s *scene) betweenCalls() {
	s.asked(1)
	s.door.close()
	s.model.Release()
	s.knocked()
}
