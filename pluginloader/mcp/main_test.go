//go:build unix

package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lashd/engine/tool"
	"lashd/pluginloader/child"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/mcp"
	"lashd/rpc/protocol"
	"lashd/test/left"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		slowness = patience
		serveGuest(role)
		return
	}
	goleak.VerifyTestMain(left.Childless{M: m})
}

// nonce marks all processes of the tests.
var nonce = fmt.Sprintf("mcp-test-%d-%d", os.Getpid(), time.Now().UnixNano())

// patience is how long anything may take that does not misbehave, and bound how long it may take until misbehaviour is over.
const (
	patience = 2 * time.Minute
	bound    = 30 * time.Second
)

// pooled is a pool, which leaves nothing behind when the test ends.
func pooled(t testing.TB, more ...string) *mcp.Pool {
	t.Helper()
	return pooledWith(t, mcp.Times{Connect: patience, Stop: 500 * time.Millisecond, Terminate: 300 * time.Millisecond}, more...)
}

func pooledWith(t testing.TB, times mcp.Times, more ...string) *mcp.Pool {
	t.Helper()
	return pooledOf(t, times, func(c *mcp.PoolConfig) { c.Environ = append(c.Environ, more...) })
}

func pooledOf(t testing.TB, times mcp.Times, set func(*mcp.PoolConfig)) *mcp.Pool {
	t.Helper()
	own := fmt.Sprintf("%s-%d-%s", nonce, len(pools), strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' {
			return '_'
		}
		return r
	}, t.Name()))
	c := mcp.PoolConfig{Environ: os.Environ(), Nonce: own, Version: "test", Log: slog.New(slog.DiscardHandler), Times: times}
	set(&c)
	p := mcp.NewPool(c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		began := time.Now()
		if err := p.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > bound {
			t.Errorf("the shutdown took %v", took)
		}
		if left := processes(own); len(left) > 0 {
			t.Errorf("processes are left: %q", left)
		}
	})
	pools[p] = own
	return p
}

// pools are the nonces of pools. Tests of this package do not run at once.
var pools = map[*mcp.Pool]string{}

// processes are those with a nonce, and whatever they have started.
func processes(nonce string) []left.Process { return left.Marked("LASHD_CHILD=" + nonce + "/") }

// guest is the test binary as a server.
func guest(role string, more ...string) manifest.Server {
	env := map[string]string{roleVariable: role, "GORACE": "atexit_sleep_ms=0"}
	for i := 0; i+1 < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return manifest.Server{Command: os.Args[0], Env: env}
}

// config is a plugin with servers.
func config(t testing.TB, servers map[string]manifest.Server) mcp.Config {
	return mcp.Config{
		Plugin: "notes", Root: t.TempDir(), Digest: "d", Servers: servers, Output: child.NewLog(slog.New(slog.DiscardHandler)),
	}
}

// begin starts a part.
func begin(t testing.TB, p *mcp.Pool, c mcp.Config) *mcp.Part {
	t.Helper()
	part, err := p.Part(c)
	if err != nil {
		t.Fatal(err)
	}
	part.Start(t.Context())
	return part
}

// one is a part with one server, x.
func one(t testing.TB, s manifest.Server) *mcp.Part {
	t.Helper()
	return begin(t, pooled(t), config(t, map[string]manifest.Server{"x": s}))
}

func names(p *mcp.Part) (all []string) {
	for _, x := range p.Tools() {
		all = append(all, x.Manifest.Name)
	}
	return all
}

// call calls a tool, in a turn of a session.
func call(ctx context.Context, p *mcp.Part, name, args string, host tool.Host) (protocol.ToolOutput, error) {
	r, err := p.Execute(ctx, tool.Invocation{
		SessionID: "ses_1", TurnID: "trn_1", CallID: "call_1", Attempt: 1, ToolID: name, Name: name, Args: []byte(args), Host: host,
	})
	return r.Output, err
}

// code is the code of a failed call, or what it came to.
func code(out protocol.ToolOutput) string {
	if out.Failure == nil {
		return string(out.Status) + ": " + out.Text
	}
	return out.Failure.Code
}

func said(c mcp.Config) string {
	var all []string
	for _, l := range c.Output.Newest() {
		all = append(all, l.Text)
	}
	return strings.Join(all, "\n")
}
