package e2e

import (
	"encoding/json"
	"sync"
	"testing"

	"lashd/rpc/protocol"
)

func TestFiftyClientsStartOneDaemon(t *testing.T) {
	h := newHome(t, nil)
	var wg sync.WaitGroup
	pids := make([]int, 50)
	for i := range pids {
		wg.Go(func() {
			out, err := h.command("call", "server/status").Output()
			var r protocol.StatusResult
			if err == nil {
				err = json.Unmarshal(out, &r)
			}
			if err != nil {
				t.Errorf("reliability/P20 client %d: %v", i, err)
			}
			pids[i] = r.Pid
		})
	}
	wg.Wait()
	for i, pid := range pids {
		if pid != pids[0] {
			t.Errorf("reliability/P20 client %d was served by %d, client 0 by %d", i, pid, pids[0])
		}
	}
	h.shutdown()
}
