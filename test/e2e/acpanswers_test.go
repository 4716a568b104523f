package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	"lashd/rpc/protocol"
)

// TestACPAnswers has an editor send invalid responses. The call ends at once and says why.
func TestACPAnswers(t *testing.T) {
	answers := []struct{ what, result, want string }{
		{"of more than a line may have", `{"content":"` + strings.Repeat("x", 10<<20) + `"}`, "read a.txt: the message is longer than 10485759 bytes"},
		{"of more than the daemon takes", `{"content":"` + strings.Repeat("x", 2<<20) + `"}`, "the editor's response has 2097160 bytes; the limit is 1048576"},
		{"that is no JSON", `{"content":"\ud800"}`, "read a.txt: the message is not valid JSON"},
	}
	w := newWorld(t, "allow")
	defer w.shutdown()
	r := w.rawACP()
	r.answer(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true}}}}`)
	session := r.session(w)
	for i, a := range answers {
		w.model.Push(step(uses("read", map[string]any{"path": "a.txt"})), step(says("Read.")))
		r.write(prompts(10+i, session, "read"))
		asked := r.read()
		for asked.Method != sdk.ClientMethodFsReadTextFile {
			asked = r.read()
		}
		if _, err := fmt.Fprintf(r.stdin, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", asked.ID, a.result); err != nil {
			t.Fatal(err)
		}
		for m := r.next(); string(m.ID) != fmt.Sprint(10+i); {
			m = r.next() // the answer was rejected
		}
		read := ask[protocol.SessionReadResult](w.dial(""), "session/read", protocol.SessionReadParams{SessionID: protocol.SessionID(session)})
		if out := read.Data[len(read.Data)-2].Output; out == nil || !strings.HasPrefix(out.Text, a.want) {
			t.Errorf("issue/6-3 after an answer %s, the model reads %.200v", a.what, out)
		}
	}
	m := r.answer(prompts(20, session, strings.Repeat("x", 9<<20)))
	if got := m.problem(); got != "20 -32013 tooLarge" {
		t.Errorf("issue/6-3 a prompt of 9 MiB is answered with %s", got)
	}
}

// TestACPLinks has the model use editor tools on links that lead out of the workspace.
func TestACPLinks(t *testing.T) {
	w := newWorld(t, "allow",
		step(uses("write", map[string]any{"path": "out/a.txt", "content": "x"})),
		step(uses("write", map[string]any{"path": "dangling", "content": "x"})),
		step(uses("write", map[string]any{"path": "in/new/a.txt", "content": "x"})), step(says("Done.")))
	defer w.shutdown()
	if err := os.Mkdir(w.work+"/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"out": w.home.dir, "dangling": w.home.dir + "/none", "in": "sub"} {
		if err := os.Symlink(target, w.work+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	e := w.editor(sdk.ClientCapabilities{Fs: sdk.FileSystemCapabilities{WriteTextFile: true}})
	e.open(w.work)
	e.says("go")
	if len(e.files) != 1 || e.files[w.work+"/in/new/a.txt"] != "x" {
		t.Errorf("issue/6-3 files in the editor: %q\n%s", e.files, e.story())
	}
}
