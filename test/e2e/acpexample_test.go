package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestACPExampleClient runs the unmodified example client of the SDK.
func TestACPExampleClient(t *testing.T) {
	client := filepath.Join(t.TempDir(), "client")
	command(t, ".", 8*patience, "go", "build", "-o", client, "github.com/coder/acp-go-sdk/example/client")
	w := newWorld(t, "ask", step(says("I write."), uses("write", map[string]string{"path": "hello.txt", "content": "hello\n"})), step(says("Written.")))
	defer w.shutdown()
	cmd := exec.Command(client, w.command("acp").Args...)
	cmd.Dir, cmd.Env, cmd.Stdin = w.work, append(os.Environ(), "HOME="+w.user), strings.NewReader("1\n")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Connected to agent (protocol v1)", "Created session: ses_", "Write hello.txt", "1. Allow once (allow_once)", "Written.", "Agent completed"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("issue/6-3 the example client does not say %q:\n%s", want, out)
		}
	}
	if w.text("hello.txt") != "hello\n" {
		t.Errorf("issue/6-3 the client wrote %q", w.text("hello.txt"))
	}
}
