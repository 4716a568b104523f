package e2e

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/rpc/protocol"
	"lashd/test/fakemodel"
)

// refuses is a rejection with a Retry-After.
func refuses(status int, after string) fakemodel.Step {
	return fakemodel.Step{Status: status, RetryAfter: after}
}

// fits makes a step answer one prompt only.
func fits(prompt string, st fakemodel.Step) fakemodel.Step {
	st.When.User = prompt
	return st
}

// twoModels creates a world in which the model first falls back to second, which reads only text. Both have the same server, as two
// providers, of which that of the first has limits.
func twoModels(t *testing.T, limits string, steps ...fakemodel.Step) *world {
	model, d := serveModel(t, steps...)
	config := fmt.Sprintf(`model = "first"
approval = "allow"
key_env = "LASHD_E2E_NO_KEY"
[[models]]
name = "first"
provider = "a"
id = "one"
inputs = ["image"]
fallback = "second"
[[models]]
name = "second"
provider = "b"
id = "two"
inputs = ["text"]
fallback = "first"
[[models]]
name = "alone"
provider = "a"
id = "one"
[providers.a]
base_url = "http://%[1]s/v1"
%s
[providers.b]
base_url = "http://%[1]s/v1"
`, d.Addr(), limits)
	return &world{newHome(t, map[string]string{"config.toml": config}), model, d}
}

// attempts spells the attempts of a call: outcome, status and decision of each.
func attempts(c protocol.CallRecord) string {
	var list []string
	for _, a := range c.Attempts {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %d %s", a.Outcome, a.Status, a.Retry)))
	}
	return strings.Join(list, ", ")
}

// models spells the models that the server was asked for.
func (w *world) models() string {
	var list []string
	for _, r := range w.model.Requests() {
		list = append(list, r.Chat.Model)
	}
	return strings.Join(list, " ")
}

// retrying waits for the n-th announcement of a wait in a turn, from 1.
func (p *peer) retrying(id protocol.TurnID, n int) *protocol.RetryStatus {
	p.t.Helper()
	var found *protocol.RetryStatus
	p.until(fmt.Sprintf("wait %d of the turn", n), func(all []told) bool {
		seen := 0
		for _, e := range all {
			if e.Type == protocol.EventRetryStatus && e.TurnID == id {
				if seen++; seen == n {
					found = e.Retry
				}
			}
		}
		return found != nil
	})
	return found
}

func TestRetryAfter(t *testing.T) {
	t.Run("runtime/M11 a throttled call waits as long as the server asks, in seconds or until a date, and uses up no attempts", func(t *testing.T) {
		t.Parallel()
		s := &scene{world: twoModels(t, "")}
		s.begin()
		date := time.Now().Add(4 * time.Second).UTC().Format(http.TimeFormat)
		s.model.Push(refuses(429, "1"), refuses(429, date), refuses(429, "0.2"), refuses(429, "soon"), done)
		turn := s.peer.start(s.session, "go").TurnID
		if first := s.peer.retrying(turn, 1); first.WaitMs != 1000 || first.Counted || first.Attempt != 1 || first.Status != 429 {
			t.Errorf("the first wait is %+v", first)
		}
		if second := s.peer.retrying(turn, 2); second.WaitMs <= 0 || second.WaitMs > 4000 || second.Counted {
			t.Errorf("the second wait is %+v", second)
		}
		if third := s.peer.retrying(turn, 3); third.WaitMs != 200 || third.Counted {
			t.Errorf("the third wait is %+v", third)
		}
		if fourth := s.peer.retrying(turn, 4); fourth.WaitMs != 2000 || fourth.Counted {
			t.Errorf("the fourth wait is %+v", fourth)
		}
		r := s.peer.wait(turn)
		const throttled = "failed 429 throttled"
		want := strings.Join([]string{throttled, throttled, throttled, throttled, "completed 0"}, ", ")
		if r.State != protocol.TurnCompleted || len(r.Calls) != 1 || attempts(r.Calls[0]) != want {
			t.Errorf("the turn is %s: %+v with calls %+v", r.State, r.Outcome, r.Calls)
		}
		if err := s.model.Check(); err != nil || s.models() != "one one one one one" {
			t.Errorf("the server was asked for %s: %v", s.models(), err)
		}
	})
	t.Run("runtime/M11 a server that asks for an absurd wait is left at once, for the fallback or with an error", func(t *testing.T) {
		t.Parallel()
		s := &scene{world: twoModels(t, "")}
		s.begin()
		for i, absurd := range []string{"99999999999999999999", "86400", "Fri, 31 Dec 9999 23:59:59 GMT", "+Inf"} {
			s.model.Push(refuses(429, absurd), done)
			r := s.peer.turn(s.session, fmt.Sprint("turn ", i))
			if len(r.Calls) != 2 || attempts(r.Calls[0]) != "failed 429 asked to wait too long" || r.Calls[1].Model != "two" {
				t.Errorf("Retry-After %s: calls %+v", absurd, r.Calls)
			}
		}
		s.peer.uses(s.session, "alone")
		s.model.Push(refuses(503, "86400"))
		r := s.peer.wait(s.peer.start(s.session, "alone").TurnID)
		if r.Outcome.Kind != protocol.OutcomeProviderError || !strings.Contains(fmt.Sprint(r.Issues), "the server asks to wait 24h0m0s, which is longer than lashd waits (10m0s)") {
			t.Errorf("the turn ended as %+v with %+v", r.Outcome, r.Issues)
		}
	})
}

func TestOverloadStorm(t *testing.T) {
	const sessions, limit = 50, 4
	lasts := fakemodel.Part{PauseMS: 100} // so that requests overlap
	t.Run("runtime/M09 runtime/M11 50 sessions outlast an overloaded server within the limit of its provider, each with one reply", func(t *testing.T) {
		t.Parallel()
		var steps []fakemodel.Step
		for i := range sessions {
			prompt := fmt.Sprintf("storm-%02d.", i)
			refusal := []fakemodel.Step{refuses(529, ""), refuses(503, "1"), refuses(429, "1")}[i%3]
			refusal.Parts = []fakemodel.Part{lasts}
			steps = append(steps, fits(prompt, refusal), fits(prompt, step(lasts, says("reply to "+prompt))))
		}
		w := twoModels(t, fmt.Sprintf("limits.concurrency = %d", limit), steps...)
		w.serve()
		p := w.dial("the-client")
		turns := make([]protocol.TurnID, sessions)
		for i := range turns {
			turns[i] = p.start(p.session(w.home), fmt.Sprintf("storm-%02d.", i)).TurnID
		}
		for i, id := range turns {
			r := p.wait(id)
			want := []string{"failed 529 retryable", "failed 503 retryable", "failed 429 throttled"}[i%3] + ", completed 0"
			if r.State != protocol.TurnCompleted || r.Output.Safe != fmt.Sprintf("reply to storm-%02d.", i) || attempts(r.Calls[0]) != want {
				t.Errorf("turn %d is %s: %+v, output %+v, calls %+v; want %s", i, r.State, r.Outcome, r.Output, r.Calls, want)
			}
		}
		if err := w.model.Check(); err != nil {
			t.Error(err)
		}
		if n := len(w.model.Requests()); n != 2*sessions {
			t.Errorf("the server got %d requests, want %d", n, 2*sessions)
		}
		if most := atOnce(w.model.Requests()); most > limit || most < 2 {
			t.Errorf("%d requests ran at the same time, want %d at most", most, limit)
		}
	})
}

// atOnce returns how many requests ran at the same time, at most.
func atOnce(requests []fakemodel.Request) (most int) {
	for _, at := range requests {
		n := 0
		for _, r := range requests {
			if !r.Start.After(at.Start) && r.End.After(at.Start) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestDeadServer(t *testing.T) {
	t.Run("runtime/M11 a dead server fails calls at once after three of them, and is used again once it is back", func(t *testing.T) {
		t.Parallel()
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close() // nothing listens there from now on
		h := newHome(t, map[string]string{"config.toml": fmt.Sprintf("model = \"fake\"\nbase_url = \"http://%s/v1\"\nkey_env = \"LASHD_E2E_NO_KEY\"\n", address)})
		h.serve()
		p := h.dial("the-client")
		var three sync.WaitGroup
		for range 3 {
			id := p.start(p.session(h), "hello").TurnID
			three.Go(func() {
				if r := p.wait(id); len(r.Issues) != 1 || r.Issues[0].Code != "connect_failed" {
					t.Errorf("the turn ended as %+v with %+v", r.Outcome, r.Issues)
				}
			})
		}
		three.Wait()
		id := p.session(h)
		began := time.Now()
		r := p.wait(p.start(id, "hello").TurnID)
		if took := time.Since(began); len(r.Issues) != 1 || r.Issues[0].Code != "server_down" || took > 2*time.Second {
			t.Errorf("after %v the turn ended with %+v", took, r.Issues)
		}
		model := fakemodel.New(step(says("back")))
		if l, err = net.Listen("tcp", address); err != nil {
			t.Fatal("another process has taken the port: ", err)
		}
		server := &http.Server{Handler: model}
		var served sync.WaitGroup
		served.Go(func() { server.Serve(l) }) // always returns ErrServerClosed
		defer func() { server.Close(); model.Close(); served.Wait() }()
		eventually(t, "the server is used again", func() error {
			if r := p.wait(p.start(id, "hello").TurnID); r.State != protocol.TurnCompleted || r.Output.Safe != "back" {
				return fmt.Errorf("the turn is %s with %+v", r.State, r.Issues)
			}
			return nil
		})
		if n := len(model.Requests()); n != 1 {
			t.Errorf("the server got %d requests, want 1", n)
		}
	})
}

func TestFallbackOfDaemon(t *testing.T) {
	down := []fakemodel.Step{refuses(401, "")}
	t.Run("part9/fallback the second model gets what it can read, and the record says what it does not get", func(t *testing.T) {
		t.Parallel()
		s := &scene{world: twoModels(t, "", append(down, done)...)}
		s.begin()
		input := append(text("look"), protocol.InputPart{Type: protocol.InputAttachment, Attachment: &protocol.Attachment{Type: "image/png", Name: "dot.png", Data: []byte(dot)}})
		r := s.peer.wait(ask[protocol.TurnStartResult](s.peer, "turn/start", protocol.TurnStartParams{SessionID: s.session, Input: input}).TurnID)
		if r.State != protocol.TurnCompleted || len(r.Calls) != 2 || fmt.Sprint(fates(r.Calls[0]), fates(r.Calls[1])) != "[] [{attachments omittedUnsupported}]" {
			t.Fatalf("the turn is %s: %+v, calls %+v", r.State, r.Outcome, r.Calls)
		}
		requests := s.model.Requests()
		images := len(requests[0].Chat.Messages[len(requests[0].Chat.Messages)-1].Images)
		last := requests[1].Chat.Messages[len(requests[1].Chat.Messages)-1]
		if s.models() != "one two" || images != 1 || len(last.Images) != 0 || !strings.Contains(string(last.Content), "[attachment dot.png, image/png: this model cannot read it]") {
			t.Errorf("the server was asked for %s, with %d images; the second message is %+v", s.models(), images, last)
		}
	})
	t.Run("part9/fallback a second model that fails as well, or has too small a window, ends the turn", func(t *testing.T) {
		t.Parallel()
		s := &scene{world: twoModels(t, "")}
		s.begin()
		s.model.Push(refuses(401, ""), refuses(401, ""))
		if r := s.peer.wait(s.peer.start(s.session, "go").TurnID); r.Outcome.Kind != protocol.OutcomeProviderError || len(r.Calls) != 2 {
			t.Errorf("the turn ended as %+v with calls %+v", r.Outcome, r.Calls)
		}
		s.model.Push(refuses(401, ""), fakemodel.Step{Status: 400, Body: `{"error":{"code":"context_length_exceeded","message":"too long"}}`})
		r := s.peer.wait(s.peer.start(s.session, "go").TurnID)
		if r.Outcome.Kind != protocol.OutcomeProviderError || len(r.Calls) != 2 || r.Calls[1].Stop != protocol.StopContextLimit {
			t.Errorf("the turn ended as %s %+v with calls %+v", r.State, r.Outcome, r.Calls)
		}
		if s.models() != "one two one two" {
			t.Errorf("the server was asked for %s", s.models())
		}
	})
	t.Run("part9/fallback kill -9 during the second model's call does not ask the first model again", func(t *testing.T) {
		t.Parallel()
		s := &scene{world: twoModels(t, "", append(down, step(says("lost"), stalls), done)...)}
		s.begin()
		turn := s.peer.start(s.session, "go").TurnID
		s.peer.streamed("lost")
		s.daemon.kill()
		s.restart()
		r := s.peer.wait(turn)
		if r.State != protocol.TurnCompleted || r.Output.Safe != "done" || s.models() != "one two two" || len(r.Calls) != 2 {
			t.Fatalf("the turn is %s: %+v after requests for %s, calls %+v", r.State, r.Output, s.models(), r.Calls)
		}
		if got := attempts(r.Calls[0]) + "; " + attempts(r.Calls[1]); got != "failed 401 not retryable; interrupted 0, completed 0" {
			t.Errorf("the attempts are %s", got)
		}
		notices := 0
		for _, e := range s.peer.log(s.session) {
			if e.Type == protocol.EventItemCompleted && e.Item.Kind == protocol.ItemNotice {
				notices++
			}
		}
		if notices > 1 {
			t.Errorf("the fallback is announced %d times", notices)
		}
	})
}

func TestKilledWhileWaiting(t *testing.T) {
	for name, first := range map[string]fakemodel.Step{
		"a throttled server":   refuses(429, "60"),
		"an overloaded server": refuses(529, "60"),
	} {
		t.Run("runtime/M11 kill -9 while a call waits for "+name+" repeats the call once", func(t *testing.T) {
			t.Parallel()
			s := &scene{world: twoModels(t, "", first, step(says("I run it."), shell(once)), done)}
			s.begin()
			turn := s.peer.start(s.session, "go").TurnID
			s.peer.retrying(turn, 1)
			s.daemon.kill()
			s.restart()
			r := s.peer.wait(turn)
			if r.State != protocol.TurnCompleted || r.Output.Safe != "done" || s.size("ran") != 1 || s.models() != "one one one" {
				t.Fatalf("the turn is %s: %+v, output %+v; the command ran %d times; requests for %s", r.State, r.Outcome, r.Output, s.size("ran"), s.models())
			}
			if len(r.Calls) != 2 || attempts(r.Calls[0]) != "interrupted 0, completed 0" || attempts(r.Calls[1]) != "completed 0" {
				t.Errorf("the calls are %+v", r.Calls)
			}
			used := ask[protocol.UsageReadResult](s.peer, "usage/read", protocol.UsageReadParams{SessionID: s.session})
			if want := (protocol.Usage{Input: 2 * inputTokens, Output: 2 * outputTokens}); used.Total != want {
				t.Errorf("the ledger sums to %+v, want %+v", used.Total, want)
			}
		})
	}
}

func TestInterruptedWaits(t *testing.T) {
	for name, c := range map[string]struct {
		limits string
		steps  []fakemodel.Step
		reach  func(s *scene, turn protocol.TurnID)
	}{
		"for a throttled server":   {"", []fakemodel.Step{refuses(429, "60")}, func(s *scene, turn protocol.TurnID) { s.peer.retrying(turn, 1) }},
		"for the next attempt":     {"", []fakemodel.Step{refuses(500, "60")}, func(s *scene, turn protocol.TurnID) { s.peer.retrying(turn, 1) }},
		"for the headers":          {"", []fakemodel.Step{step(stalls)}, func(s *scene, _ protocol.TurnID) { s.asked(1) }},
		"for the rest of a stream": {"", []fakemodel.Step{step(says("half"), stalls)}, func(s *scene, _ protocol.TurnID) { s.peer.streamed("half") }},
		"for a limit of requests": {"limits.requests = 1", []fakemodel.Step{done}, func(s *scene, turn protocol.TurnID) {
			if r := s.peer.retrying(turn, 1); r.Reason != protocol.RetryAdmission {
				s.t.Errorf("the turn waits for %+v", r)
			}
		}},
	} {
		t.Run("runtime/M11 an interrupt ends a wait "+name, func(t *testing.T) {
			t.Parallel()
			s := &scene{world: twoModels(t, c.limits, c.steps...)}
			s.begin()
			if c.limits != "" {
				s.peer.turn(s.session, "first")
			}
			turn := s.peer.start(s.session, "go").TurnID
			c.reach(s, turn)
			began := time.Now()
			ask[protocol.TurnInterruptResult](s.peer, "turn/interrupt", protocol.TurnInterruptParams{TurnID: turn})
			r := s.peer.wait(turn)
			if took := time.Since(began); r.State != protocol.TurnCancelled || took > 3*time.Second {
				t.Errorf("after %v the turn is %s: %+v", took, r.State, r.Outcome)
			}
			if n := len(s.model.Requests()); n != len(c.steps) {
				t.Errorf("the server got %d requests, want %d", n, len(c.steps))
			}
		})
	}
}

func TestModelChangedWhileWaiting(t *testing.T) {
	t.Run("runtime/M11 a turn that waits keeps its model, and the next turn uses the new one", func(t *testing.T) {
		t.Parallel()
		s := &scene{world: twoModels(t, "", refuses(429, "1"), done, done)}
		s.begin()
		turn := s.peer.start(s.session, "go").TurnID
		s.peer.retrying(turn, 1)
		s.peer.uses(s.session, "second")
		if r := s.peer.wait(turn); r.State != protocol.TurnCompleted {
			t.Errorf("the turn is %s: %+v", r.State, r.Outcome)
		}
		if s.peer.turn(s.session, "go on"); s.models() != "one one two" {
			t.Errorf("the server was asked for %s", s.models())
		}
	})
}
