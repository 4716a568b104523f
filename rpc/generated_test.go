package rpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/internal/strictjson"
	"lashd/rpc"
	"lashd/rpc/protocol"
)

// goWords are words that only a Go programmer would recognize in an error message.
var goWords = regexp.MustCompile(`json:|cannot unmarshal|\bprotocol\.|\bengine\.|\bu?int(8|16|32|64)\b|float64|strconv|reflect\.|interface \{|\[\]byte|struct \{|%!|\bnil\b|context (canceled|deadline)|sql:|SQLITE|UNIQUE|runtime error|goroutine|syscall`)

// silent lists methods that would only slow down the test.
var silent = map[string]bool{"rpc/discover": true, "server/diagnostics": true}

// errorLog keeps the daemon's log of internal errors.
type errorLog struct {
	slog.Handler
	mu   *sync.Mutex
	said *bytes.Buffer
}

func newErrorLog() errorLog {
	said := &bytes.Buffer{}
	return errorLog{slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelError}), &sync.Mutex{}, said}
}

func (l errorLog) Handle(ctx context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Handler.Handle(ctx, r)
}

func (l errorLog) WithAttrs([]slog.Attr) slog.Handler { return l }

func (l errorLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.String()
}

// flow sends requests without waiting for each answer. One that has not come when many more requests were sent is cancelled.
type flow struct {
	*wire
	t        *testing.T
	g        *generator
	sent     int
	open     []int // ids in flight, in order
	asked    map[int]string
	outcomes map[string]int
}

const inFlight = 24

func (f *flow) request(method, params string) {
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, f.sent+1, method, params)
	if strictjson.Check([]byte(line), strictjson.Limits{}) != nil {
		f.wire.send(line + "\n")
		f.settleUntil(func() bool { return f.outcomes["parseError"] > 0 })
		f.outcomes["parseError"]--
		f.outcomes["malformed"]++
		return
	}
	f.sent++
	f.open, f.asked[f.sent] = append(f.open, f.sent), line
	f.wire.send(line + "\n")
	if len(f.open) >= inFlight {
		oldest := f.open[0]
		f.cancel(oldest)
		f.settleUntil(func() bool { return f.asked[oldest] == "" })
	}
}

func (f *flow) cancel(id int) {
	f.wire.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":%d}}`+"\n", id))
}

// settleUntil reads responses until at most this many requests are open.
func (f *flow) settleUntil(done func() bool) {
	f.t.Helper()
	for !done() {
		f.SetDeadline(time.Now().Add(2 * time.Minute))
		line, err := f.next()
		if err != nil {
			f.t.Fatalf("no answer to %v: %v", f.asked, err)
		}
		f.g.learn(line)
		if bytes.HasPrefix(line, []byte(`{"jsonrpc":"2.0","method"`)) {
			continue
		}
		f.answer(line)
	}
}

func (f *flow) finish() {
	for _, id := range f.open {
		f.cancel(id)
	}
	f.settleUntil(func() bool { return len(f.asked) == 0 })
	f.usable(f.t)
}

func (f *flow) answer(line []byte) {
	f.t.Helper()
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		f.t.Fatalf("%.300s: %v", line, err)
	}
	id, _ := strconv.Atoi(string(a.ID))
	asked := f.asked[id]
	delete(f.asked, id)
	for i, open := range f.open {
		if open == id {
			f.open = append(f.open[:i], f.open[i+1:]...)
			break
		}
	}
	if a.Error == nil {
		f.outcomes["ok"]++
		return
	}
	f.outcomes[string(a.Error.Data.Kind)]++
	if problem := faulty(&a); problem != "" && f.another(asked, problem) {
		f.t.Errorf("%s: %.1000s\nwas answered %.600s", problem, asked, line)
	}
}

// another reports whether a problem is new for its method.
func (f *flow) another(asked, problem string) bool {
	_, method, _ := strings.Cut(asked, `"method":"`)
	method, _, _ = strings.Cut(method, `"`)
	f.outcomes[problem+" "+method]++
	return f.outcomes[problem+" "+method] == 1
}

// faulty returns the defect of an error response, or "".
func faulty(a *answer) string {
	e := a.Error
	switch {
	case e.Data.Kind == protocol.KindInternal || e.Code == -32603:
		return "an internal error"
	case e.Data.Kind == "" || e.Data.Retry == "" || e.Data.Outcome == "" || e.Message == "":
		return "an error without its data"
	case goWords.MatchString(e.Message):
		return "an error in words of Go"
	case len(e.Message) > 1010:
		return "a long error"
	}
	return ""
}

// stove is a tool that returns at once.
type stove struct{}

func (stove) Tools() []tool.Tool {
	return []tool.Tool{{Manifest: protocol.ToolManifest{Name: "stir", Description: "Stirs.", Kind: protocol.ToolKindExecute}}}
}

func (stove) Execute(context.Context, tool.Invocation) (tool.Result, error) {
	return tool.Result{Output: protocol.Succeed("stirred")}, nil
}

var kitchen = plugin.Static("kitchen", func(r *plugin.Registrar) error {
	r.Tools().Add(stove{})
	r.Triggers().Event(plugin.TriggerEvent{ResourceType: "dish", Alias: "kitchen", Event: "ready"})
	return nil
})

// generated is a daemon under test, with a session of each kind.
func generated(t *testing.T, seed uint64, wildness float64) (*flow, errorLog) {
	log := newErrorLog()
	script, err := scripted.Parse([]byte(strings.Replace(asking, "deploy", "stir", 1)))
	if err != nil {
		t.Fatal(err)
	}
	script.Otherwise = &script.Turns[0]
	s := startLogged(t, slog.New(log), []plugin.Factory{&counter{}, kitchen, &deployer{began: make(chan struct{}, 1<<20)}}, models.Model{
		Name: "asking", Spec: protocol.ModelSpec{Provider: "p", ID: "asking"}, Provider: scripted.New(script),
	})
	p := s.dial(t, false)
	return &flow{
		wire: &wire{Conn: p.Conn, in: p.in}, t: t, g: newGenerator(t, seed), asked: map[int]string{}, outcomes: map[string]int{},
	}, log
}

// TestGeneratedParams sends each method params with values at and past each bound. LASHD_LONG=1 sends 100,000 requests, and
// LASHD_SEED repeats a run.
func TestGeneratedParams(t *testing.T) {
	rounds, perRound := 3, 4000
	if os.Getenv("LASHD_LONG") != "" {
		rounds, perRound = 25, 4000
	}
	seed, _ := strconv.ParseUint(os.Getenv("LASHD_SEED"), 10, 64)
	if seed == 0 {
		seed = 11
	}
	methods := slices.DeleteFunc(slices.Sorted(maps.Keys(rpc.Methods())), func(name string) bool { return silent[name] })
	for round := range rounds {
		t.Run(fmt.Sprintf("outside/11 no params reach an internal error, seed %d", seed+uint64(round)), func(t *testing.T) {
			f, log := generated(t, seed+uint64(round), []float64{0.02, 0.08, 0.3}[round%3])
			for n := range perRound {
				if n%150 == 0 {
					all := f.g.fresh()
					for i := 0; i < len(all); i += 2 {
						f.request(all[i], all[i+1])
					}
				}
				method := pick(f.g, methods)
				if method == "session/delete" && !f.g.chance(0.1) {
					continue
				}
				f.request(method, f.g.params(rpc.Methods()[method].Params))
			}
			f.finish()
			if said := log.text(); strings.Contains(said, "request failed") || strings.Contains(said, "panic") {
				t.Errorf("the daemon logged %.4000s", said)
			}
			t.Logf("%v", f.outcomes)
		})
	}
}

// TestGeneratedRefusals compares the outcome in errors with the database: after outcome none it is unchanged.
func TestGeneratedRefusals(t *testing.T) {
	t.Run("outside/11 a request with outcome none has stored nothing", func(t *testing.T) {
		f := newFixture(t)
		w, g := f.dialSocket(t), newGenerator(t, 11)
		g.wildness = 0.15
		for prefix, word := range map[string]string{"ses": "$idle", "trn": "$done", "nod": "$root", "dec": "$decision"} {
			g.ids[prefix] = []string{f.words.Replace(word)}
		}
		g.ids["ses"] = append(g.ids["ses"], f.words.Replace("$busy"), f.words.Replace("$archived"))
		methods := slices.DeleteFunc(slices.Sorted(maps.Keys(rpc.Methods())), func(name string) bool {
			// A monitor changes the database on its own, again and again.
			return silent[name] || name == "session/delete" || name == "server/attach" || name == "monitor/start"
		})
		refused := 0
		for range 1500 {
			method := pick(g, methods)
			line := call(method, g.params(rpc.Methods()[method].Params))
			if strictjson.Check([]byte(line), strictjson.Limits{}) != nil {
				continue
			}
			if !f.changes(t, w, line, &refused) {
				continue
			}
			// A concurrent change, such as that of a turn from an earlier request, may have been stored. That does not happen each time.
			again := f.changes(t, w, line, &refused)
			if third := f.changes(t, w, line, &refused); again && third {
				t.Errorf("it is answered that nothing was done, and changes the database: %.1000s", line)
			}
		}
		t.Logf("%d requests were refused", refused)
	})
}

// changes sends a request, and reports whether the response claims outcome none although the database changed.
func (f *fixture) changes(t *testing.T, w *wire, line string, refused *int) bool {
	t.Helper()
	before := f.stored.dump(t)
	w.send(line)
	var method struct{ Method string }
	json.Unmarshal([]byte(line), &method)
	if rpc.Methods()[method.Method].Waits {
		w.send(`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}` + "\n")
	}
	var a answer
	if err := json.Unmarshal(w.frame(t), &a); err != nil {
		t.Fatal(err)
	}
	w.events = nil
	if a.Error == nil || a.Error.Data.Outcome != protocol.EffectNone {
		return false
	}
	*refused++
	return f.stored.dump(t) != before
}
