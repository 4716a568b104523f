package engine

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

func TestLookThatIsCutOff(t *testing.T) {
	t.Run("runtime/B14 when the daemon stops, files that it did not come to are not told as gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.txt"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			all, err := glob.Compile("*")
			if err != nil {
				t.Fatal(err)
			}
			tr := newTriggers(&Engine{})
			life, stop := context.WithCancel(t.Context())
			stop()
			tr.life = life
			d := &watchedDir{looked: true}
			tr.files.dirs = map[string]*watchedDir{dir: d}
			tr.known["trg_a"] = &trigger{glob: all, seen: fileStamps{}, Trigger: persistence.Trigger{Trigger: protocol.Trigger{
				Enabled: true, TriggerSpec: protocol.TriggerSpec{Source: protocol.TriggerSource{File: &protocol.FileSource{Dir: dir}}},
			}}}
			told, end := 0, make(chan struct{})
			go func() {
				for {
					select {
					case <-tr.mail:
						told++
					case <-end:
						return
					}
				}
			}()
			for range 100 {
				d.looking = false
				tr.look([]string{dir})
				synctest.Wait()
			}
			close(end)
			synctest.Wait()
			if told > 0 {
				t.Errorf("%d looks tell of files, though nothing was looked at", told)
			}
		})
	})
}
