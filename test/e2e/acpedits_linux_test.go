package e2e

import (
	"fmt"
	"strings"
	"testing"
)

func TestACPEditsInTheEditor(t *testing.T) {
	t.Run("part13/8 lashd asks about edits in the editor in a sandbox, unless the mode accepts edits", func(t *testing.T) {
		write := uses("write", map[string]any{"path": "a.txt", "content": "new\n"})
		w := confined(t, step(write), done, step(write), done)
		w.write(w.dir+"/config.toml", strings.Replace(readText(t, w.dir+"/config.toml"), `approval = "allow"`, "", 1))
		defer w.shutdown()
		e := w.npm(everything)
		e.open(w.work)
		end := e.prompt("go")
		asked := e.request(0)
		if asked.Method != "session/request_permission" {
			t.Errorf("the agent asks %s first", asked.Method)
		}
		e.chooses(asked, "allowOnce")
		e.answer(e.request(1), `{}`)
		end()
		e.must("session/set_mode", fmt.Sprintf(`{"sessionId":%q,"modeId":"acceptEdits"}`, e.id), &struct{}{})
		end = e.prompt("go on")
		written := e.request(2)
		if written.Method != "fs/write_text_file" {
			t.Errorf("with acceptEdits the agent asks %s first", written.Method)
		}
		e.answer(written, `{}`)
		if stop := end(); stop != "end_turn" {
			t.Errorf("the turn ends with %s", stop)
		}
	})
}
