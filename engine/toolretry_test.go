package engine_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func TestToolRetry(t *testing.T) {
	busy := protocol.Fail(protocol.FailUnavailable, "busy", "try later", protocol.FromTool)
	busy.Failure.Retry = true
	for _, c := range []struct {
		name      string
		replay    protocol.Replay
		attempts  int // number of attempts that fail
		ran       int
		took      time.Duration
		exhausted bool
	}{
		{"a safe call is tried until it succeeds, with waits that double", protocol.ReplaySafe, 2, 3, 300 * time.Millisecond, false},
		{"a safe call is tried no more often than its contract says", protocol.ReplayIdempotent, 9, 4, 550 * time.Millisecond, true},
		{"a call that must not be repeated is not", protocol.ReplayNever, 9, 1, 0, false},
	} {
		t.Run("runtime/T09 plugin/TL-20 "+c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran, seen := 0, 0
				work := toolFunc{
					name: "work", contract: protocol.ToolContract{Replay: c.replay, Retry: &protocol.ToolRetry{Attempts: 4, BaseMs: 100, CapMs: 250}},
					run: func(context.Context, tool.Invocation) (tool.Result, error) {
						if ran++; ran <= c.attempts {
							return tool.Result{Output: busy}, nil
						}
						return tool.Result{Output: protocol.Succeed("at last")}, nil
					},
				}
				watch := hooked{"a", func(r *plugin.Registrar) {
					r.ToolResults().After(func(context.Context, *plugin.ToolResultContext) ([]plugin.Directive, error) { seen++; return nil, nil })
				}}
				d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{work}, plugins: plugins(watch)})
				began := time.Now()
				report := d.turn(t, d.session(t), "go")
				if ran != c.ran || seen != c.ran || report.ToolCalls[0].Output.Exhausted != c.exhausted {
					t.Errorf("ran %d times, hooks saw %d, output %+v", ran, seen, report.ToolCalls[0].Output)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
			})
		})
	}
	for asked, took := range map[int64]time.Duration{30_000: 30 * time.Second, 3_600_000: time.Minute, math.MaxInt64: time.Minute, math.MinInt64: 250 * time.Millisecond} {
		t.Run(fmt.Sprintf("issue/2 a tool that asks for %d ms before it is tried again holds its turn for %v", asked, took), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				work := toolFunc{
					name: "work", contract: protocol.ToolContract{Replay: protocol.ReplaySafe, Retry: &protocol.ToolRetry{Attempts: 2, BaseMs: math.MaxInt64, CapMs: 250}},
					run: func(context.Context, tool.Invocation) (tool.Result, error) {
						if ran++; ran > 1 {
							return tool.Result{Output: protocol.Succeed("at last")}, nil
						}
						out := protocol.Fail(protocol.FailUnavailable, "busy", "try later", protocol.FromTool)
						out.Failure.Retry, out.Failure.AfterMs = true, asked
						return tool.Result{Output: out}, nil
					},
				}
				d := start(t, setup{model: replies(calls("work"), scripted.Reply{Text: "done"}), tools: []tool.Provider{work}})
				began := time.Now()
				d.turn(t, d.session(t), "go")
				if waited := time.Since(began); ran != 2 || waited != took {
					t.Errorf("it ran %d times, after %v", ran, waited)
				}
			})
		})
	}
}
