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

// TestVSCodeExtension runs those tests of the extension that need no editor. Some of them kill lashd.
func TestVSCodeExtension(t *testing.T) {
	dir := extension(t)
	t.Setenv("LASHD", filepath.Join(bin, "lashd"))
	for _, script := range []string{"test", "live"} {
		t.Run("issue/6-1 npm run "+script, func(t *testing.T) {
			t.Logf("%s", command(t, dir, 4*patience, "npm", "run", "--silent", script))
		})
	}
}

// TestVSCodeClient runs the unmodified JSON-RPC library of VS Code against lashd stdio.
func TestVSCodeClient(t *testing.T) {
	dir := extension(t)
	w := newWorld(t, "allow", step(says("hel"), says("lo")), step(stalls))
	defer w.shutdown()
	lashd := w.command("stdio")
	out := command(t, dir, patience, "node", append([]string{"test/jsonrpc.mjs", w.work}, lashd.Args...)...)
	t.Logf("%s", out)
	if err := w.model.Check(); err != nil {
		t.Error(err)
	}
}

// extension returns the directory of the extension after installing its packages.
func extension(t *testing.T) string {
	t.Helper()
	_, err := exec.LookPath("node")
	skip.Unless(t, "NODE", err == nil, "node is not installed")
	dir, err := filepath.Abs("../../editors/vscode")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "esbuild")); err != nil {
		command(t, dir, 8*patience, "npm", "ci")
	}
	return dir
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
