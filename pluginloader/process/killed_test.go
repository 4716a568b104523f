//go:build unix

package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/proc"
	"lashd/pluginloader/child"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
	"lashd/test/left"
	"lashd/test/wait"
)

// daemonVariable makes the test binary play a daemon whose processes have a nonce.
const daemonVariable = "PROCESS_TEST_DAEMON"

// playDaemon starts plugins, reports that, and waits to be killed.
func playDaemon(nonce string) {
	for _, confine := range []*child.Confinement{nil, {}} {
		f, err := process.New(process.Config{
			ID: "leaver", Argv: []string{os.Args[0]}, Dir: os.TempDir(), Environ: os.Environ(), Nonce: nonce, Confine: confine,
			Set: map[string]string{roleVariable: "initialize:leaves", daemonVariable: ""}, Log: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			err = f.Start(context.Background())
		}
		if err != nil {
			panic(err)
		}
	}
	fmt.Println("ready")
	forever()
}

func TestKilledDaemon(t *testing.T) {
	t.Run("issue/4-7 reliability/P14 no process survives a killed daemon: plugins die with it, and the next start sweeps the rest", func(t *testing.T) {
		pids(t, "leaver") // where that can be seen
		mine := fmt.Sprint(nonce, "-killed")
		daemon := exec.Command(os.Args[0])
		daemon.Env = append(os.Environ(), daemonVariable+"="+mine)
		out, err := daemon.StdoutPipe()
		if err == nil {
			err = daemon.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("the daemon says %q, %v", line, err)
		}
		running := func() []left.Process { return marked(mine, "leaver") }
		wait.Until(t, "two plugins run, and of each at least two others", func() bool { return len(running()) >= 6 })
		if err := daemon.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = daemon.Wait() // it was killed
		wait.Until(t, "the plugins die", func() bool {
			for _, p := range running() {
				if strings.HasPrefix(p.Line, os.Args[0]) {
					return false
				}
			}
			return true
		})
		if _, err := proc.Sweep(mine); err != nil {
			t.Error(err)
		}
		if left := running(); len(left) > 0 {
			t.Errorf("after the sweep of the next daemon there are %q", left)
		}
	})
}

func TestFullPipe(t *testing.T) {
	t.Run("reliability/P14 3.4-18 a plugin that stops reading fails its own calls in time, however much is queued", func(t *testing.T) {
		c := config(t, "session/open:readsNoMore", only(process.Hook{Name: process.BeforeTurn, Timeout: 5 * time.Second}))
		c.Deadlines.Stall, c.Limits.Queue = time.Second, 4<<20
		good := config(t, "good", process.Contributions{Hooks: []process.Hook{{Name: process.Checkpoint}}})
		good.ID = "bystander"
		s := session(t, "ses_1", begin(t, c), begin(t, good))
		bystands(t, s)
		large := []protocol.Message{{Role: protocol.RoleUser, Parts: []protocol.Part{{Kind: protocol.PartText, Text: strings.Repeat("x", 1<<20)}}}}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				began := time.Now()
				_, err := s.BeforeTurn(t.Context(), &plugin.TurnContext{TurnID: "trn_1", View: &plugin.View{}, Input: large})
				e, ok := errors.AsType[*process.Error](err)
				if took := time.Since(began); took > bound || !ok || e.Code != process.TimedOut && e.Code != process.Protocol {
					t.Errorf("after %v: %v", took, err)
				}
			})
		}
		bystands(t, s)
		all.Wait()
		bystands(t, s)
	})
}
