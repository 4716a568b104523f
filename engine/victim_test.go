package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lashd/engine/builtin/batch"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/persistence"
	"lashd/rpc/protocol"

	"lashd/engine"
)

// The test binary runs itself again as a victim: an engine that prints a line when it reaches a point, blocks
// there, and is killed by the test.
const (
	victimDir   = "LASHD_TEST_VICTIM_DIR"
	victimPoint = "LASHD_TEST_VICTIM_POINT"

	beforeModel    = "before the model call"
	whileStreaming = "while the reply streams"
	neverStarted   = "after a call was started that must not be repeated"
	safeStarted    = "after a call was started that may be repeated"
	batchPartly    = "after one call of a batch has returned, and another was started"
	batchFinished  = "after the results are stored"
	forApproval    = "while a person is asked"
	beforeCommit   = "before the last commit"
	batchSettled   = "after two calls of a batch have settled, the one that may be repeated first"
	callWaits      = "while a call waits for its completion"
	innerStarted   = "after one call of a batch tool has returned, and another was started"
	grantStarted   = "after one call by a grant has returned, and another was started"
	intentsKept    = "after the result of a call that wants something is stored, and another was started"
	intentsDrained = "after what a call wants is done"
)

const victimSession = protocol.SessionID("ses_victim")

// crashSetup is the setup of the victim and of the daemon that follows it. reached is called at each point; nil: do not block.
func crashSetup(dir, point string, reached func(point string)) setup {
	point, wanting := wantingAt(point)
	at := func(p string) {
		if reached != nil && p == point {
			reached(p)
		}
	}
	first := scripted.Reply{Text: "Let me see.", ChunkSize: 3, ToolCalls: []scripted.Call{{ID: "c1", Name: "never"}, {ID: "c2", Name: "safe"}}}
	if point == innerStarted {
		first = batched(`{"name":"never"},{"name":"safe"}`)
	}
	if point == callWaits {
		first = calls("later")
	}
	if point == batchSettled {
		first = calls("refused", "hangs", "second", "first")
	}
	if point == grantStarted {
		first = calls("maker")
	}
	script := scripted.New(&scripted.Script{
		Turns:     []scripted.Turn{{Match: &scripted.Match{LastUserContains: "go"}, Replies: []scripted.Reply{first, {Text: "done"}}}},
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}},
	})
	var mu sync.Mutex
	asked := 0
	model := modelFunc(func(ctx context.Context, req *provider.Request, yield func(provider.Chunk, error) bool) {
		mu.Lock()
		asked++
		n := asked
		mu.Unlock()
		if n == 1 {
			at(beforeModel)
		} else {
			at(batchFinished)
		}
		for chunk, err := range script.Stream(ctx, req) {
			if !yield(chunk, err) {
				return
			}
			if n == 1 && chunk.Text != "" {
				at(whileStreaming)
			}
		}
	})
	never := toolFunc{name: "never", run: func(_ context.Context, call tool.Invocation) (tool.Result, error) {
		count(dir, "never")
		at(neverStarted)
		if point == safeStarted && reached != nil {
			select {} // the call's result must not be stored before the kill
		}
		return tool.Result{Output: protocol.Succeed("once"), Intents: wanting}, nil
	}}
	safe := toolFunc{name: "safe", contract: protocol.ToolContract{Replay: protocol.ReplaySafe}, run: func(_ context.Context, call tool.Invocation) (tool.Result, error) {
		count(dir, "safe-"+strings.ReplaceAll(string(call.CallID), "/", "-"))
		at(safeStarted)
		if (point == batchPartly || point == innerStarted || point == grantStarted) && reached != nil {
			select {}
		}
		return tool.Result{Output: protocol.Succeed("again")}, nil
	}}
	settled := make(chan struct{})
	earlier := toolFunc{name: "first", contract: protocol.ToolContract{Replay: protocol.ReplaySafe}, run: func(context.Context, tool.Invocation) (tool.Result, error) {
		count(dir, "first")
		time.AfterFunc(100*time.Millisecond, func() { close(settled) })
		return tool.Result{Output: protocol.Succeed("first")}, nil
	}}
	second := toolFunc{name: "second", run: func(context.Context, tool.Invocation) (tool.Result, error) {
		<-settled
		return tool.Result{Output: protocol.Succeed("second")}, nil
	}}
	hangs := toolFunc{name: "hangs", contract: protocol.ToolContract{Replay: protocol.ReplaySafe}, run: func(context.Context, tool.Invocation) (tool.Result, error) {
		if reached != nil {
			select {}
		}
		return tool.Result{Output: protocol.Succeed("hangs")}, nil
	}}
	later := toolFunc{name: "later", contract: protocol.ToolContract{MayDefer: true}, run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
		count(dir, "later")
		key, err := call.Host.CompletionKey(ctx, protocol.Deferral{})
		return tool.Result{Pending: true}, errors.Join(err, os.WriteFile(filepath.Join(dir, "key"), []byte(key), 0o600))
	}}
	return setup{
		model: model, tools: []tool.Provider{never, safe, later, earlier, second, hangs, making("vault-never", "vault-safe"), &vault{with: func(name string) toolFunc {
			if name == "vault-never" {
				return never
			}
			return safe
		}}}, plugins: []plugin.Factory{batch.Factory{}}, driver: lastDriver{at: func() { at(beforeCommit) }},
		config: func(c *engine.Config) {
			c.Defaults.Unknown.DeadlineMs = new(int64(1))
			if point == forApproval {
				c.Defaults.Approval.Mode = protocol.ApproveAsk
			}
		},
	}
}

// wantingAt is a point, and the intents of the call that must not be repeated.
func wantingAt(point string) (string, []protocol.ToolIntent) {
	same := map[string]string{intentsKept: batchPartly, intentsDrained: batchFinished}
	if same[point] == "" {
		return point, nil
	}
	return same[point], []protocol.ToolIntent{watch("tsk_w"), tick("tsk_w", `{"n":1}`), happens(`{"n":1}`)}
}

// lastDriver is the standard driver and reports when the last commit of a turn is next.
type lastDriver struct {
	standard.Driver
	at func()
}

func (lastDriver) ID() string                                         { return "last" }
func (d lastDriver) Build(plugin.BuildContext) (plugin.Plugin, error) { return d, nil }

func (d lastDriver) Register(r *plugin.Registrar) error {
	r.Protocol().Driver(d)
	return nil
}

func (d lastDriver) Visible(prose string) string {
	d.at()
	return prose
}

// count counts an action in a file, which survives a kill.
func count(dir, what string) {
	f, err := os.OpenFile(filepath.Join(dir, "count-"+what), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	if _, err := f.WriteString("x"); err != nil {
		panic(err)
	}
}

func counted(dir, what string) int {
	data, _ := os.ReadFile(filepath.Join(dir, "count-"+what)) // missing before the first count
	return len(data)
}

// victim runs a turn up to a point, reports it and waits to be killed.
func victim(dir, point string) {
	time.AfterFunc(time.Minute, func() { os.Exit(1) }) // the test that should have killed it is gone
	reached := func(string) {
		fmt.Println("reached")
		select {}
	}
	if strings.HasPrefix(point, triggerPoint) {
		triggerVictim(dir, point, reached)
		return
	}
	if strings.HasPrefix(point, subagentPoint) {
		subagentVictim(dir, point, reached)
	}
	made := crashSetup
	if strings.HasPrefix(point, "switch: ") {
		made = switchSetup
	}
	setup := made(dir, point, reached)
	point, _ = wantingAt(point)
	d, err := setup.open(filepath.Join(dir, "store"))
	if err != nil {
		panic(err)
	}
	go d.store.Run(context.Background())
	go d.Run(context.Background())
	ctx := context.Background()
	if _, err := d.Sessions.New(ctx, &protocol.SessionNewParams{SessionID: victimSession, Cwd: dir}); err != nil {
		panic(err)
	}
	turn, err := d.Turns.Start(ctx, &protocol.TurnStartParams{SessionID: victimSession, Input: text("go")})
	if err != nil {
		panic(err)
	}
	if strings.HasPrefix(point, "switch: ") {
		if _, err := d.Turns.Start(ctx, &protocol.TurnStartParams{SessionID: victimSession, Input: text("waiting")}); err != nil {
			panic(err)
		}
		close(queuedBehind)
	}
	for point == callWaits {
		rows, err := d.store.Effects(ctx, turn.TurnID)
		if err != nil {
			panic(err)
		}
		if slices.ContainsFunc(rows, func(e persistence.Effect) bool { return strings.Contains(string(e.Body), `"parked":true`) }) {
			reached(point)
		}
	}
	for point == batchPartly || point == batchSettled || point == innerStarted || point == grantStarted {
		rows, err := d.store.Effects(ctx, turn.TurnID)
		if err != nil {
			panic(err)
		}
		started := counted(dir, "safe-c1-1") > 0 || counted(dir, "safe-c2") > 0
		if slices.ContainsFunc(rows, func(e persistence.Effect) bool { return e.Kind == "call" && e.Finished }) && (point == batchSettled || started) {
			reached(point)
		}
	}
	if point == forApproval {
		_, sub, err := d.Sessions.Attach(ctx, &protocol.SessionAttachParams{SessionID: victimSession, AfterSeq: new(protocol.Seq)})
		if err != nil {
			panic(err)
		}
		for {
			if _, err := sub.Next(ctx); err != nil {
				panic(err)
			}
			if open, err := d.Decisions.List(ctx, &protocol.DecisionListParams{}); err == nil && len(open.Data) == 2 {
				reached(point)
			}
		}
	}
	time.Sleep(time.Minute) // the kill should have come before
}
