package sandbox_test

import (
	"testing"

	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
)

// TestRefusedDocker has what docker says if there is no socket, and if it must not use it.
func TestRefusedDocker(t *testing.T) {
	const want = "it does not use sockets of other programs, such as that of Docker"
	for _, said := range []string{
		"Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
		"permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
	} {
		if got := sandbox.Refused(protocol.SandboxWorkspace, said, true); got != want {
			t.Errorf("issue/20-2 of %q it says %q, want %q", said, got, want)
		}
	}
	if got := sandbox.Refused(protocol.SandboxFullAccess, "Cannot connect to the Docker daemon", true); got != "" {
		t.Errorf("issue/20-2 without a sandbox it says %q", got)
	}
}
