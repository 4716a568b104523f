package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"lashd/test/skip"
)

// TestVSCodeClient runs the JSON-RPC library of VS Code, as it is, against lashd stdio.
func TestVSCodeClient(t *testing.T) {
	_, err := exec.LookPath("node")
	skip.Unless(t, "NODE", err == nil, "node is not installed")
	dir, err := filepath.Abs("../../editors/vscode")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "vscode-jsonrpc")); err != nil {
		command(t, dir, 8*patience, "npm", "ci")
	}
	w := newWorld(t, "allow", step(says("hel"), says("lo")), step(stalls))
	defer w.shutdown()
	lashd := w.command("stdio")
	out := command(t, dir, patience, "node", append([]string{"test/jsonrpc.mjs", w.work}, lashd.Args...)...)
	t.Logf("%s", out)
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}

func command(t *testing.T, dir string, limit time.Duration, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return out
}
