//go:build unix

package pluginloader_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/pluginloader"
)

// forgetful is a memory in which nothing is.
type forgetful struct{}

func (forgetful) PluginFacts(context.Context) ([]persistence.PluginFact, error) { return nil, nil }

func (forgetful) Commit(context.Context, *persistence.Commit) (persistence.Result, error) {
	return persistence.Result{}, nil
}

func TestBegin(t *testing.T) {
	t.Run("issue/4-5 an unreadable database fails every request at once with the reason", func(t *testing.T) {
		home := t.TempDir()
		if err := os.WriteFile(filepath.Join(home, "plugins"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var log bytes.Buffer
		l := pluginloader.New(pluginloader.Config{
			Base: must(plugin.NewHost([]plugin.Factory{standard.Factory{}}, nil)).of(t), Driver: standard.ID, Home: home,
			Memory: forgetful{}, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			if err := l.Run(ctx); err == nil {
				t.Error("it ends as if nothing had been")
			}
		})
		_, err := l.Host(ctx, t.TempDir())
		told := log.String() // written before anybody is answered
		cancel()
		running.Wait()
		if err == nil || !strings.Contains(err.Error(), "not a directory") || !strings.Contains(told, "not a directory") {
			t.Errorf("asked, it says %v; its log is %q", err, told)
		}
	})
}
