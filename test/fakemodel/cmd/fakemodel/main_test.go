package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMain lets the test binary be the command.
func TestMain(m *testing.M) {
	if os.Getenv("FAKEMODEL_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestServesScriptUntilInputEnds(t *testing.T) {
	script := filepath.Join(t.TempDir(), "steps.json")
	if err := os.WriteFile(script, []byte(`[{"parts":[{"text":"from the file"}]}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-script", script)
	cmd.Env = append(os.Environ(), "FAKEMODEL_MAIN=1")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(strings.TrimSpace(url)+"/chat/completions", "application/json", strings.NewReader(`{"messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); !strings.Contains(string(b), "from the file") {
		t.Errorf("reply = %s, want the script's text", b)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("after the end of input: %v", err)
	}
}

func TestEndsAfterTTL(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-ttl", "10ms")
	cmd.Env = append(os.Environ(), "FAKEMODEL_MAIN=1")
	stdin, err := cmd.StdinPipe() // stays open
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Run(); err != nil {
		t.Errorf("Run = %v, want it to end by itself", err)
	}
}
