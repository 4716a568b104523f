//go:build unix

package process_test

import (
	"slices"
	"testing"
	"time"

	"lashd/pluginloader/process"
)

// running are the processes that a factory has started and that still run.
func running(c process.Config) (all []int) {
	for _, p := range marked(c.Nonce, c.ID) {
		all = append(all, p.PID)
	}
	return all
}

func TestTry(t *testing.T) {
	t.Run("outside/27 sessions use the process of the trial", func(t *testing.T) {
		c := config(t, "good", only())
		f := begin(t, c)
		if err := f.Try(t.Context()); err != nil {
			t.Fatal(err)
		}
		tried := running(c)
		use(t, f)
		if now := running(c); len(tried) != 1 || !slices.Equal(now, tried) {
			t.Errorf("process %v was tried, and %v serves", tried, now)
		}
	})
	t.Run("outside/27 an unused process is stopped and starts again on demand", func(t *testing.T) {
		c := config(t, "good", only())
		c.Deadlines.Unused = time.Millisecond
		f := begin(t, c)
		if err := f.Try(t.Context()); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(patience); f.Status().State != "idle" || len(running(c)) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the process is %+v, with %v", f.Status(), running(c))
			}
		}
		use(t, f)
		if s := f.Status(); s.State != "running" || s.Error != "" {
			t.Errorf("after a call the process is %+v", s)
		}
	})
	t.Run("outside/27 a process that a session uses is not stopped", func(t *testing.T) {
		c := config(t, "good", only())
		c.Deadlines.Unused = 300 * time.Millisecond
		f := begin(t, c)
		use(t, f) // before the time of the process can be over
		if err := f.Try(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := running(c)
		time.Sleep(2 * c.Deadlines.Unused)
		if now := running(c); f.Status().State != "running" || !slices.Equal(now, before) {
			t.Errorf("process %v has become %v", before, now)
		}
	})
}

// use has a session call the plugin.
func use(t *testing.T, f *process.Factory) {
	t.Helper()
	noted(t, session(t, "ses_1", f), "hello")
}
