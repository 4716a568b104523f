package trigger

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"lashd/internal/glob"
	"lashd/persistence"
	"lashd/rpc/protocol"
)

func TestScanCutOff(t *testing.T) {
	t.Run("runtime/B14 when the daemon stops, files that a scan did not reach are not reported as gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := glob.Compile("*")
			if err != nil {
				t.Fatal(err)
			}
			l := newLoop(Config{})
			life, stop := context.WithCancel(t.Context())
			stop()
			l.life = life
			d := &watchedDir{scanned: true}
			l.files.dirs = map[string]*watchedDir{dir: d}
			l.triggers["trg_a"] = &active{glob: all, files: fileStamps{}, Trigger: persistence.Trigger{Trigger: protocol.Trigger{
				Enabled: true, TriggerSpec: protocol.TriggerSpec{Source: protocol.TriggerSource{File: &protocol.FileSource{Dir: dir}}},
			}}}
			posted, end := 0, make(chan struct{})
			go func() {
				for {
					select {
					case <-l.mail:
						posted++
					case <-end:
						return
					}
				}
			}()
			for range 100 {
				d.scanning = false
				l.scan([]string{dir})
				synctest.Wait()
			}
			close(end)
			synctest.Wait()
			if posted > 0 {
				t.Errorf("%d scans that were cut off report files", posted)
			}
		})
	})
}
