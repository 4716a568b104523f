package rpc_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"lashd/rpc"
)

func TestGeneratedFilesAreCurrent(t *testing.T) {
	for path, want := range rpc.Generated() {
		got, err := os.ReadFile(filepath.Join("..", path))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./rpc", path, err)
		}
	}
}
