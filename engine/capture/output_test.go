package capture

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// failing is a Host that cannot write artifacts.
type failing struct{ tool.Host }

func (failing) Progress(string) {}

func (failing) WriteArtifact(context.Context, string, []byte) (protocol.ArtifactRef, error) {
	return protocol.ArtifactRef{}, errors.New("disk full")
}

func TestOutput(t *testing.T) {
	t.Run("runtime/K01 without an artifact the text shows more", func(t *testing.T) {
		c := New(failing{})
		defer c.Close()
		c.Write(bytes.Repeat([]byte("0123456\n"), 100_000))
		text, ref := c.Result(t.Context(), make(chan struct{}, 1))
		if ref != nil || len(text) < keepBytes || len(text) > keepBytes+300 || !strings.Contains(text, "disk full") {
			t.Errorf("%d bytes, %v", len(text), ref)
		}
	})
}

func TestRingKeepsTheEnd(t *testing.T) {
	const size = keepBytes / 2
	var r ring
	var all []byte
	for i := range 400 {
		p := bytes.Repeat([]byte{byte(i)}, i*37%5000)
		if i == 300 {
			p = bytes.Repeat([]byte("xyz"), size)
		}
		r.write(p)
		all = append(all, p...)
		if want := all[max(0, len(all)-size):]; !bytes.Equal(r.bytes(), want) {
			t.Fatalf("after write %d the ring differs from the end of what was written", i)
		}
	}
}
